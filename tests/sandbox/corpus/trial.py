"""Running the programs of the corpus, and what the oracles say about each."""

from __future__ import annotations

import json
import resource
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.metrics.code_exec import code_exec, code_exec_expressions
from pytest_lmeval.sandbox import ProgramRun, Sandbox
from pytest_lmeval.types import Score
from tests.sandbox.corpus.programs import MIB, Program
from tests.sandbox.corpus.scene import Scene, Stage

__all__ = ["Outcome", "peak_of", "run_corpus", "within"]

CLAIM = "ESCAPED: "
PATIENCE_S = 60.0
MOST_GROWTH = 96 * MIB
REPEATS = 3
HONEST = 42
LONGEST_REASON = 2000
MOST_CPU_S = 3.0
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one program: how it cheated, got out, hung or was wronged, each empty or None if it did not."""

    program: Program
    forged: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()
    hung: str | None = None
    failure: str | None = None


def run_corpus(sandbox: Sandbox, programs: Iterable[Program], scene: Scene, workers: int = 4) -> list[Outcome]:
    """Run every program that this machine can run; the ones that have to be alone first, the others side by side."""
    able = [program for program in programs if scene.has(program)]
    alone = [program for program in able if "alone" in program.traits]
    others = [program for program in able if "alone" not in program.traits]
    outcomes = [_alone(sandbox, program, scene) for program in alone]
    with ThreadPoolExecutor(workers) as pool:
        return outcomes + list(pool.map(lambda program: _outcome(sandbox, program, scene), others))


def _alone(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    outcomes: list[Outcome] = []
    started = time.process_time()
    grown = peak_of(lambda: outcomes.append(_outcome(sandbox, program, scene)))
    used = time.process_time() - started
    [outcome] = outcomes
    found = [f"the harness grew by {grown // MIB} MiB"] * (grown > MOST_GROWTH)
    found += [f"the harness needed {used:.1f} s of CPU"] * (used > MOST_CPU_S)
    return replace(outcome, escapes=(*outcome.escapes, *found))


def peak_of(function: Callable[[], object]) -> int:
    """Return by how many bytes this process grew at most while ``function`` ran; 0 where that can't be told."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        function()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    before = _memory("VmRSS")
    function()
    return max(0, _memory("VmHWM") - before)


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _outcome(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    trial = TRIALS.get(program.kind, _attack)
    guard = program.limits.hang_guard_s * (REPEATS if program.kind in TRIALS else 1) + PATIENCE_S
    try:
        return within(guard, lambda: trial(sandbox, program, scene))
    except SandboxError as error:
        return Outcome(program, failure=f"the sandbox failed: {error}")
    except TimeoutError:
        return Outcome(program, hung=f"no end after {guard:g} s")


def within(seconds: float, function: Callable[[], Result]) -> Result:
    """Return what ``function`` returns; raise TimeoutError, and let it be, if that takes too long."""
    results: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(function())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


def _attack(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    with scene.stage(program) as stage:
        facts = {**stage.facts, "large": "x" * 10**7 if "argument" in program.traits else ""}
        calls = [[facts]] * program.data("calls", 1)
        started = time.monotonic()
        run = sandbox.call(program.source, "f", calls, program.limits)
        took = time.monotonic() - started
        found = [*_admitted(sandbox, program, run), *_leaks(run, stage), *stage.evidence('"token"' in program.source)]
    late = took > program.limits.hang_guard_s + PATIENCE_S / 2
    return Outcome(program, escapes=tuple(found), hung=f"took {took:.1f} s" if late else None)


def _admitted(sandbox: Sandbox, program: Program, run: ProgramRun) -> Iterable[str]:
    if sandbox.level not in program.words("granted"):
        values = (answer.value for answer in run.answers)
        yield from (value for value in values if isinstance(value, str) and value.startswith(CLAIM))
    if len(run.reason) > LONGEST_REASON:
        yield f"its reason is {len(run.reason)} characters long"
    right = program.words("ends")
    if right and run.status not in right:
        yield f"it ended as {run.status} ({run.reason}), not as {' or '.join(sorted(right))}"


def _leaks(run: ProgramRun, stage: Stage) -> Iterable[str]:
    said = json.dumps([answer.value for answer in run.answers]) + run.stdout + run.stderr + run.reason
    said += "".join(answer.text for answer in run.answers)
    return ["a secret got out"] if any(secret in said for secret in stage.secrets) else []


def _forge(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    secret = f"SECRET{secrets.token_hex(8)}"
    pairs = program.data("pairs", [[3, secret], [[1, 2], secret], ["ab", secret]])
    most = float(program.traits.get("at most", "0"))
    scores = _scores(program, pairs, sandbox)
    # A score that says itself that it could be forged deceives nobody.
    believed = {form: score.value for form, score in scores.items() if "forgeable" not in score.details}
    forged = [f"{form}: {value:g}" for form, value in believed.items() if value > most]
    return Outcome(program, forged=tuple(forged), escapes=tuple(_unwritable(scores)))


def _scores(program: Program, pairs: Sequence[Sequence[Any]], sandbox: Sandbox) -> dict[str, Score]:
    if "tests" in program.traits:
        tests = f"def check(candidate):\n    {program.traits['tests']}\n"
        extras = {"tests": tests, "entry_point": "f", "timeout_s": 1}
        return {"tests": code_exec(program.source, ["ok"], extras, sandbox)}
    forms = program.words("forms") or {"pairs", "tests"}
    return {form: FORMS[form](program.source, pairs, sandbox) for form in sorted(forms)}


def _unwritable(scores: Mapping[str, Score]) -> Iterable[str]:
    for form, score in scores.items():
        try:
            json.dumps(dict(score.details), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            yield f"{form}: the details of the score can't be written out"


def _by_pairs(source: str, pairs: Sequence[Sequence[Any]], sandbox: Sandbox) -> Score:
    return code_exec(source, ["ok"], {"io_pairs": pairs, "timeout_s": 1}, sandbox)


def _by_tests(source: str, pairs: Sequence[Sequence[Any]], sandbox: Sandbox) -> Score:
    asserts = "".join(f"    assert candidate({given!r}) == {expected!r}\n" for given, expected in pairs)
    tests = {"tests": f"def check(candidate):\n{asserts}", "entry_point": "f", "timeout_s": 1}
    return code_exec(source, ["ok"], tests, sandbox)


def _by_expressions(source: str, pairs: Sequence[Sequence[Any]], sandbox: Sandbox) -> Score:
    return code_exec_expressions(source, [f"f({given!r}) == {expected!r}" for given, expected in pairs], {}, sandbox)


def _by_stdout(source: str, pairs: Sequence[Sequence[Any]], sandbox: Sandbox) -> Score:
    return code_exec(source, [str(expected) for _, expected in pairs], {"stdouts": True, "timeout_s": 1}, sandbox)


FORMS: dict[str, Callable[[str, Sequence[Sequence[Any]], Sandbox], Score]] = {
    "expressions": _by_expressions,
    "pairs": _by_pairs,
    "stdouts": _by_stdout,
    "tests": _by_tests,
}


def _honest(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    run = sandbox.call(program.source, "f", [[]], program.limits)
    if (run.status, run.answers[0].value) == ("pass", HONEST):
        return Outcome(program)
    return Outcome(program, failure=_story(run))


def _repeat(sandbox: Sandbox, program: Program, scene: Scene) -> Outcome:
    runs = [sandbox.call(program.source, "f", [[]], program.limits) for _ in range(REPEATS)]
    for run in runs:
        if run.status != "pass" or run.answers[0].kind != "value":
            return Outcome(program, failure=_story(run))
    values = {json.dumps(run.answers[0].value) for run in runs}
    return Outcome(program, failure=f"values differ: {sorted(values)}" if len(values) > 1 else None)


def _story(run: ProgramRun) -> str:
    return f"{run.status}: {run.reason or run.answers[0]} {run.stderr[-300:]}"


TRIALS: dict[str, Callable[[Sandbox, Program, Scene], Outcome]] = {
    "forge": _forge,
    "honest": _honest,
    "nondeterministic": _repeat,
}
