"""The corpus of programs that cheat, break out, take too much or are honest, at the levels of the sandbox."""

from __future__ import annotations

import os
import platform
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_lmeval.sandbox import Limits, open_sandbox, require_level
from tests.sandbox.corpus.bystanders import Terminal, Victim, leftovers, survivors
from tests.sandbox.corpus.canaries import plant
from tests.sandbox.corpus.listeners import Listeners
from tests.sandbox.corpus.programs import CLASSES, MIB, Program, load_programs, parse_programs
from tests.sandbox.corpus.scene import Scene, scene_in
from tests.sandbox.corpus.trial import Outcome, peak_of, run_corpus, within

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the oracles look at /proc")
# CAP_SYS_ADMIN; containers give root less.
ADMIN = 21
# Their programs are run at every level; of the others, the ones whose success is sure.
AT_EVERY_LEVEL = ("forge", "honest", "resource")
# The default run has every so many of what is alike; --all has the product of programs and levels.
SOME = 8
FEW = 24


def run_at(level: str, programs: Iterable[Program], folder: Path) -> list[Outcome]:
    """Run programs at a level, and check that this leaves nothing."""
    with scene_in(folder) as scene:
        with open_sandbox(level) as sandbox:
            outcomes = run_corpus(sandbox, programs, scene)
        assert [] == scene.litter()
    return outcomes


def of_process() -> list[Program]:
    """Return the programs that are worth a run at the level ``process``.

    Those that have to be alone test what the parent does with its ends of the pipes, the same at every level.
    """
    tried = (program for program in load_programs() if program.kind in AT_EVERY_LEVEL or "noticed" in program.traits)
    return [program for program in tried if "alone" not in program.traits or "noticed" in program.traits]


def sample(programs: Iterable[Program], step: int) -> list[Program]:
    """Return every ``step``-th program of each class and each set of traits, beginning with the first."""
    alike: dict[tuple[str, frozenset[str]], list[Program]] = {}
    for program in programs:
        alike.setdefault((program.kind, frozenset(program.traits)), []).append(program)
    return [program for found in alike.values() for program in found[::step]]


def gets_through(program: Program) -> bool:
    """Whether the program is sure to succeed where nothing but limits is in its way."""
    noticed = program.traits.get("noticed")
    return noticed == "always" or (noticed == "root" and is_privileged())


def is_privileged() -> bool:
    return os.geteuid() == 0 and bool(int(status_of_process("CapEff"), 16) >> ADMIN & 1)


def status_of_process(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def names(outcomes: Iterable[Outcome], fault: str) -> list[str]:
    return sorted(
        f"{outcome.program.kind}: {outcome.program.name}: {getattr(outcome, fault)}"
        for outcome in outcomes
        if getattr(outcome, fault)
    )


@LINUX
@pytest.mark.parametrize(
    "step", [FEW, pytest.param(SOME, marks=pytest.mark.again), pytest.param(1, marks=pytest.mark.slow)]
)
def test_nothing_gets_through_at_the_level_confined(step: int, tmp_path: Path) -> None:
    missing = require_level("confined")
    if missing:
        pytest.skip(missing)

    outcomes = run_at("confined", sample(load_programs(), step), tmp_path)

    assert [] == names(outcomes, "forged")
    assert [] == names(outcomes, "escapes")
    assert [] == names(outcomes, "hung")
    assert [] == names(outcomes, "failure")


@LINUX
@pytest.mark.parametrize("step", [pytest.param(FEW, marks=pytest.mark.again), pytest.param(1, marks=pytest.mark.slow)])
def test_the_level_process_holds_what_it_promises_and_the_oracles_notice_what_it_does_not(
    step: int, tmp_path: Path
) -> None:
    if status_of_process("Seccomp") != "0":
        pytest.skip("a filter on this process's system calls stops what the oracles are to notice")

    outcomes = run_at("process", sample(of_process(), step), tmp_path)

    assert [] == names(outcomes, "hung")
    assert [] == names(outcomes, "failure")
    assert [] == [o.program.name for o in outcomes if gets_through(o.program) and not (o.escapes or o.forged)]
    assert [] == names((o for o in outcomes if "noticed" not in o.program.traits), "forged")
    assert [] == names((o for o in outcomes if "noticed" not in o.program.traits), "escapes")


def test_the_corpus_has_every_class_and_each_name_once() -> None:
    programs = load_programs()

    counted = Counter(program.kind for program in programs)
    assert set(CLASSES) == set(counted)
    assert len(programs) == len({(program.kind, program.name) for program in programs})
    assert min(counted.values()) >= 30


def test_a_sample_has_every_class_and_every_set_of_traits() -> None:
    for programs, step in ((load_programs(), SOME), (of_process(), FEW)):
        sampled = sample(programs, step)

        assert {(p.kind, *sorted(p.traits)) for p in programs} == {(p.kind, *sorted(p.traits)) for p in sampled}
        assert len(programs) / step <= len(sampled) <= len(programs) / 5
        assert len(programs) == len(sample(programs, 1))


def test_a_program_is_a_name_traits_and_a_source() -> None:
    text = "%% one\n% noticed: always\n% at most: 0.5\n% alone\nx = 1\n% 2\n%% two\n"

    one, two = parse_programs("honest", text)

    assert ("one", {"noticed": "always", "at most": "0.5", "alone": ""}) == (one.name, one.traits)
    assert "x = 1\n% 2\n" == one.source
    assert ("two", {}, "\n") == (two.name, two.traits, two.source)


def test_a_trait_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"honest\.txt: one: unknown traits \['notised'\]"):
        list(parse_programs("honest", "%% one\n% notised: always\nx = 1\n"))


def test_limits_are_those_of_the_class_and_the_program() -> None:
    text = "%% one\n% limits: wall_s=0.5\nx = 1\n%% two\n% ends: error timeout\nx = 1\n"
    one, two = parse_programs("resource", text)

    assert Limits(cpu_s=2, wall_s=0.5, memory_bytes=128 * MIB) == one.limits
    assert Limits(cpu_s=0.15, wall_s=20, memory_bytes=128 * MIB) == two.limits


CHANGES = {
    "content": "path.write_text('x')",
    "mode": "path.chmod(0o777)",
    "read": "os.utime(path, (1, path.stat().st_mtime))",
    "written": "os.utime(path, (path.stat().st_atime, 1))",
    "changed": "path.chmod(0o640)",
    "links": "os.link(path, path.with_name('again'))",
    "inode": "data = path.read_bytes(); path.unlink(); path.with_name('other').touch(); path.write_bytes(data)",
    "is new": "path.with_name('new').touch()",
    "is gone": "path.unlink()",
}


@pytest.mark.parametrize(("trace", "act"), CHANGES.items(), ids=CHANGES)
def test_canaries_notice(trace: str, act: str, tmp_path: Path) -> None:
    canaries, paths = plant(tmp_path / "base", tmp_path / "scratches", "token", "secret")
    assert [] == canaries.changes()

    exec(act, {"path": Path(paths["file"]), "os": os})

    assert any(trace in change for change in canaries.changes())


def test_canaries_do_not_mind_being_read(tmp_path: Path) -> None:
    canaries, paths = plant(tmp_path / "base", tmp_path / "scratches", "token", "secret")

    assert "secret" in Path(paths["task"]).read_text()
    assert [] == canaries.changes()


@LINUX
def test_a_listener_that_was_not_spoken_to_heard_nothing() -> None:
    with Listeners(f"test{os.getpid()}") as listeners:
        assert [] == listeners.heard("token")


@LINUX
def test_a_process_with_the_token_is_a_survivor_and_is_ended() -> None:
    token = f"lm{os.getpid():010x}"
    with subprocess.Popen(["sh", "-c", "echo; sleep 60; true", token], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # by now its command line is its own

        try:
            assert [f"process {process.pid} outlived the run"] == survivors(token, patience_s=0.1)
            assert -9 == process.wait()
        finally:
            process.kill()
    assert [] == survivors(token)


@LINUX
def test_a_victim_and_a_terminal_left_alone_have_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    victim, terminal = Victim(tmp_path, tmp_path / "file", "secret"), Terminal()

    try:
        assert [] == victim.changes() + terminal.changes("token")
    finally:
        victim.close()
        terminal.close()


@LINUX
def test_leftovers_are_found_and_removed() -> None:
    token = f"lm{os.getpid():010x}"
    path = Path("/dev/shm", token)
    path.touch()

    assert [f"{path} was left"] == leftovers(token, 1)
    assert [] == leftovers(token, 1)


@LINUX
def test_the_growth_of_this_process_is_noticed_also_if_it_was_larger_before() -> None:
    assert peak_of(lambda: bytearray(100 * MIB)) > 90 * MIB
    assert peak_of(lambda: bytearray(100 * MIB)) > 90 * MIB
    assert peak_of(lambda: None) < 10 * MIB


def test_what_does_not_end_is_left_behind() -> None:
    with pytest.raises(TimeoutError):
        within(0.05, lambda: time.sleep(1))
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)
    assert 1 == within(60, lambda: 1)


WRONG = {
    "a wrong ending": ("%% x\n% ends: timeout\ndef f(x): pass\n", "signal", "escapes"),
    "an admission": ('%% x\ndef f(x): return escaped("y")\n', "signal", "escapes"),
    "a secret": ('%% x\ndef f(x): raise ValueError(open(x["file"]).read())\n', "signal", "escapes"),
    "a secret that is printed": ('%% x\ndef f(x): print(open(x["file"]).read())\n', "signal", "escapes"),
    "a right answer": ("%% x\n% pairs: [[1, 2]]\ndef f(x): return 2\n", "forge", "forged"),
    "another answer": ("%% x\ndef f(): return 41\n", "honest", "failure"),
    "no answer": ("%% x\ndef f(): raise ValueError\n", "honest", "failure"),
    "answers that differ": ("%% x\nimport os\ndef f(): return os.urandom(9).hex()\n", "nondeterministic", "failure"),
}


@LINUX
@pytest.mark.parametrize(("text", "kind", "fault"), WRONG.values(), ids=WRONG)
def test_the_judgement_of_a_run_notices(text: str, kind: str, fault: str, tmp_path: Path) -> None:
    [outcome] = run_at("process", parse_programs(kind, text), tmp_path)

    faults = {name for name in ("forged", "escapes", "hung", "failure") if getattr(outcome, name)}
    assert {fault} == faults


@LINUX
def test_what_a_level_grants_is_no_escape_but_its_traces_are(tmp_path: Path) -> None:
    claim = '%% x\n% granted: process\ndef f(x): return escaped("y")\n'
    trace = '%% y\n% granted: process\ndef f(x): os.unlink(x["file"])\n'

    granted, traced = run_at("process", parse_programs("signal", claim + trace), tmp_path)

    assert () == granted.escapes
    assert ["is gone" in escape for escape in traced.escapes if "canary" in escape] == [True]


@LINUX
def test_a_program_that_needs_another_machine_is_left_out(tmp_path: Path) -> None:
    [elsewhere] = parse_programs("signal", "%% x\n% needs: pdp11\ndef f(x): pass\n")
    [here] = parse_programs("signal", f"%% x\n% needs: {platform.machine()}\ndef f(x): pass\n")

    with scene_in(tmp_path) as scene:
        assert isinstance(scene, Scene)
        assert (False, True) == (scene.has(elsewhere), scene.has(here))


@LINUX
def test_the_benchmark_prints_a_row_per_class_and_level(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    script = runpy.run_path(str(folder / "corpus.py"))
    few = [program for program in load_programs() if program.kind == "network"][:5]
    others = [program for program in load_programs() if program.kind != "network"]
    script["main"].__globals__["load_programs"] = lambda: (*few, *others)
    monkeypatch.setattr(sys, "argv", ["corpus.py", "--level", "process", "--class", "network", "--names"])

    script["main"]()

    text = capsys.readouterr().out
    header, _, row, *_ = [line for line in text.splitlines() if line.startswith("|")]
    assert ["class", "level", "programs", "forged", "escaped", "hung", "false failures"] == cells(header)
    assert ["network", "process", "5"] == cells(row)[:3]
    assert int(cells(row)[4]) >= 4
    assert "network at process: connects over TCP: tcp heard it" in text


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
