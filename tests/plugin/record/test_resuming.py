"""A run that was killed is completed, not repeated: nothing that its ledger holds is asked again."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.records.runfile import read_run
from tests.schemas import faults

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MadeOnce, Project

EXAMPLES = 100
Key = tuple[str, str]


@pytest.fixture
def model(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    project.copy("resuming", "model.py")
    project.usual = ("--lm-adapter=model:Batch", "--lm-batch-size=2")
    monkeypatch.setenv("ROUND", "")
    return project


def asked_in(project: Project, round: str = "") -> Counter[Key]:
    """Return how often each example was asked in a round."""
    return Counter((task, id) for called_in, keys in project.asked() if called_in == round for task, id, _ in keys)


def results(project: Project) -> list[dict[str, Any]]:
    """Return the results in the ledger; a last line that was cut off is none."""
    path = project.path / "reports/ledger.jsonl"
    lines = path.read_text("ascii").split("\n") if path.exists() else []
    records = []
    for number, line in enumerate(lines):
        try:
            records.append(json.loads(line or "{}"))
        except ValueError:
            assert number == len(lines) - 1
    return [record for record in records if "id" in record]


# Killed at random moments


@pytest.mark.parametrize(
    ("adapter", "processes", "pause"),
    [("Batch", "-n0", 0.1), ("Async", "-n0", 0.1), pytest.param("Batch", "-n2", 0.2, marks=pytest.mark.again)],
)
def test_a_run_killed_at_random_moments_is_completed_without_asking_again(
    model: Project, adapter: str, processes: str, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        model.task(f"tasks/{name}.jsonl", *[model.record(f"e{n}", f"{name}{n}") for n in range(EXAMPLES // 2)])
    options = [f"--lm-adapter=model:{adapter}", f"--lm-adapter-arg=pause={pause}", processes]
    options += ["--lm-batch-size=4", "--lm-concurrency=4", "--lm-resume"]
    held: set[Key] = set()

    def holds(size: int) -> Callable[[], bool]:
        return lambda: len(results(model)) >= size

    # The rest takes more than a second, so that a run is killed before its end on a busy machine, too.
    for size in sorted(random.Random(adapter).sample(range(1, 40), 3)):
        monkeypatch.setenv("ROUND", str(size))
        run = model.start(*options)
        run.wait_for(holds(max(size, len(held) + 1)))
        run.stop(signal.SIGKILL, group=True)
        assert not held & asked_in(model, str(size)).keys()
        held = {(each["task"], each["id"]) for each in results(model)}
        assert size <= len(held) < EXAMPLES
    monkeypatch.setenv("ROUND", "last")
    assert 0 == model.run(*options).ret
    assert not held & asked_in(model, "last").keys()
    assert (True, EXAMPLES) == (model.board()["complete"], model.board()["counts"]["scored"])
    assert [1] * EXAMPLES == [*Counter((each["task"], each["id"]) for each in results(model)).values()]
    resumed = model.board()["digest"]
    model.run(*options[:-1], "--lm-adapter-arg=pause=0")
    assert resumed == model.board()["digest"]


# Cut off at a known place


HELD = 5


@pytest.fixture
def complete(model: Project, made_once: MadeOnce) -> Project:
    """Provide a complete run of eight examples, as if nothing had been asked."""
    model.task("tasks/t.jsonl", *[model.record(f"e{number}", f"w{number}") for number in range(8)])

    def fill(folder: Path) -> None:
        model.run().assert_outcomes(passed=8)
        model.asked(forget=True)
        shutil.move(model.path / "reports", folder)

    shutil.copytree(made_once("run-to-resume", fill), model.path, dirs_exist_ok=True)
    return model


@pytest.fixture
def cut_off(complete: Project) -> Project:
    """Provide that run without its board and with a ledger that ends after five examples."""
    ledger = complete.path / "reports/ledger.jsonl"
    lines = ledger.read_text("ascii").splitlines(keepends=True)
    ledger.write_text("".join(lines[: 1 + HELD]))
    (complete.path / "reports/leaderboard.json").unlink()
    return complete


def rewrite(**changes: Any) -> Callable[[Project], None]:
    def change(project: Project) -> None:
        records = [project.record(f"e{number}", f"w{number}") for number in range(8)]
        records[1].update(changes)
        project.task("tasks/t.jsonl", *records)

    return change


def nothing(project: Project) -> None:
    """Change nothing."""


@pytest.mark.parametrize(
    ("change", "options", "expected"),
    [
        pytest.param(nothing, [], "567", id="nothing"),
        pytest.param(nothing, ["-n2"], "567", id="process count"),
        pytest.param(nothing, ["--lm-threshold=t=0.5", "--lm-batch-size=3", "--lm-retries=1"], "567", id="how to run"),
        pytest.param(rewrite(targets=["something else"]), [], "567", id="target"),
        pytest.param(rewrite(prompt="say: what you like"), [], "1567", id="prompt"),
        pytest.param(nothing, ["--lm-adapter=model:Other"], "01234567", id="adapter"),
        pytest.param(nothing, ["--lm-adapter-arg=style=terse"], "01234567", id="adapter option"),
        pytest.param(nothing, ["--lm-repeats=2"], "0011223344556677", id="repeats"),
    ],
)
def test_what_changed_since_is_asked_again_and_nothing_else(
    cut_off: Project, change: Callable[[Project], None], options: list[str], expected: str
) -> None:
    change(cut_off)
    result = cut_off.run("--lm-resume", "--lm-include-per-example", *options)
    assert sorted(expected) == sorted(id.removeprefix("e") for _, id in asked_in(cut_off).elements())
    assert result.ret in (0, 1)
    assert cut_off.board()["complete"]
    rescored = cut_off.examples()["t:e1"]
    assert (rescored["targets"] == [rescored["output"]]) == (rescored["status"] == "passed")
    assert "something else" not in rescored["targets"] or 1 == result.ret


def test_a_last_line_that_was_cut_off_does_no_harm(cut_off: Project) -> None:
    ledger = cut_off.path / "reports/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-40])
    result = cut_off.run("--lm-resume")
    result.assert_outcomes(passed=8)
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["1 line(s) of the ledger could not be read"])
    assert {f"e{number}" for number in (4, 5, 6, 7)} == {id for _, id in asked_in(cut_off)}
    # The whole of the ledger can be replayed but for the line that was cut off.
    lines = ledger.read_bytes().split(b"\n")
    assert 1 == len([line for line in lines if line and not line.endswith(b"}")])


def test_a_run_that_was_killed_in_the_first_line_of_its_ledger_is_completed_and_can_be_read(cut_off: Project) -> None:
    ledger = cut_off.path / "reports/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:20])
    result = cut_off.run("--lm-resume", "-n2")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["1 line(s) of the ledger could not be read"])
    read = read_run(ledger)
    assert (True, True, 8, 1) == (read.complete, read.agrees, len(read.results or ()), read.damaged)


def test_a_ledger_that_no_run_could_be_read_from_is_a_usage_error_before_anything_is_asked(cut_off: Project) -> None:
    ledger = cut_off.path / "reports/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"/ledger/2", b"/ledger/3"))
    before = ledger.read_bytes()
    result = cut_off.run("--lm-resume")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["ERROR: *ledger.jsonl: a newer version wrote pytest-lmeval/ledger/3; *"])
    assert (before, 0) == (ledger.read_bytes(), asked_in(cut_off).total())


def test_without_being_told_to_resume_everything_is_asked_and_the_old_ledger_kept(cut_off: Project) -> None:
    before = (cut_off.path / "reports/ledger.jsonl").read_bytes()
    cut_off.run().assert_outcomes(passed=8)
    assert 8 == asked_in(cut_off).total()
    (aside,) = cut_off.path.glob("reports/ledger-*.jsonl")
    assert before == aside.read_bytes()


def ledgers(project: Project) -> list[str]:
    return sorted(path.name for path in project.path.glob("reports/ledger*.jsonl"))


@pytest.mark.parametrize("with_board", [True, False])
def test_resuming_a_complete_run_asks_nothing_and_writes_its_reports(complete: Project, with_board: bool) -> None:
    before = complete.board()
    if not with_board:
        for name in ("leaderboard.json", "leaderboard.md", "report.html"):
            (complete.path / "reports" / name).unlink()
    result = complete.run("--lm-resume")
    assert 0 == result.ret
    assert not asked_in(complete)
    result.stdout.fnmatch_lines([f"resumed: reused 8 answer(s) of the run of {before['timestamp']}"])
    result.stdout.no_fnmatch_line("*could not be read*")
    assert (True, before["digest"]) == (complete.board()["complete"], complete.board()["digest"])
    assert all((complete.path / "reports" / name).exists() for name in ("leaderboard.md", "report.html"))
    assert [f"e{number}" for number in range(8)] == sorted(record["id"] for record in results(complete))
    assert ["ledger.jsonl"] == ledgers(complete)
    assert read_run(complete.path / "reports/ledger.jsonl").agrees


def test_the_complete_ledger_of_another_model_is_kept_and_not_resumed(complete: Project) -> None:
    before = (complete.path / "reports/ledger.jsonl").read_bytes()
    result = complete.run("--lm-resume", "--lm-adapter=model:Other")
    assert 0 == result.ret
    assert {f"e{number}" for number in range(8)} == {id for _, id in asked_in(complete)}
    new, kept = sorted(ledgers(complete), key=len)
    assert before == (complete.path / "reports" / kept).read_bytes()
    result.stdout.fnmatch_lines(
        [
            "resumed nothing: the 8 result(s) in the ledger are of another adapter, other adapter options or another *",
            f"the older ledger is kept as *{kept}",
        ]
    )
    assert read_run(complete.path / "reports" / new).agrees


def test_the_complete_ledger_of_other_examples_stays_and_is_not_counted(complete: Project) -> None:
    complete.task("tasks/t.jsonl", complete.record("a", "x"), complete.record("b", "y"))
    result = complete.run("--lm-resume")
    assert {("t", "a"): 1, ("t", "b"): 1} == asked_in(complete)
    result.stdout.fnmatch_lines(["resumed nothing: the 8 result(s) in the ledger are of other examples or prompts*"])
    held = read_run(complete.path / "reports/ledger.jsonl")
    assert (10, 2, True) == (len(results(complete)), len(held.results or ()), held.agrees)


def test_resuming_a_part_of_a_complete_run_leaves_that_alone_and_asks_nothing(complete: Project) -> None:
    digest = complete.board()["digest"]
    asked_in(complete)
    assert 0 == complete.run("--lm-resume", "-k", "e1 or e2").ret
    assert not asked_in(complete)
    ledger = complete.path / "reports/ledger.jsonl"
    held = read_run(complete.path / "reports/selection/ledger.jsonl")
    assert (2, True) == (len(held.results or ()), held.agrees)
    assert [] == faults("ledger", *map(json.loads, filter(None, ledger.read_text("ascii").splitlines())))
    assert 0 == complete.run("--lm-resume").ret
    assert not asked_in(complete)
    assert digest == complete.board()["digest"]
    assert read_run(ledger).agrees


def test_what_ended_in_an_error_or_was_not_reached_is_asked_again(model: Project) -> None:
    words = ["x", "frail1", "y", "frail2", "z"]
    model.task("tasks/t.jsonl", *[model.record(word, word) for word in words])
    model.write("broken", "")
    assert 3 == model.run().ret
    (model.path / "broken").unlink()
    model.asked(forget=True)
    result = model.run("--lm-resume")
    assert 0 == result.ret
    result.assert_outcomes(passed=5)
    assert {("t", "frail1"): 1, ("t", "frail2"): 1} == asked_in(model)


def test_a_run_that_was_stopped_at_its_first_failure_can_be_completed(model: Project) -> None:
    records = [model.record(f"e{n}", f"w{n}", target="other" if n == 4 else None) for n in range(40)]
    model.task("tasks/t.jsonl", *records)
    assert 1 == model.run("-x").ret
    before = {(record["task"], record["id"]) for record in results(model)}
    assert 5 == len(before)
    model.asked(forget=True)
    result = model.run("--lm-resume")
    assert 1 == result.ret
    result.assert_outcomes(passed=39, failed=1)
    assert not before & asked_in(model).keys()
    # What was answered ahead of its turn is not asked again either, but what was under way then is.
    assert 40 - 5 - 4 <= asked_in(model).total() <= 35
    assert model.board()["complete"]


BROKEN_METRIC = """
def pytest_lmeval_register(registry):
    registry.add_metric("mine", lambda prediction, targets, extras: {expression})
"""


def test_answers_that_could_not_be_scored_are_scored_once_the_metric_is_mended(model: Project) -> None:
    model.write("conftest.py", BROKEN_METRIC.format(expression="1 / 0"))
    model.task("tasks/t.jsonl", *[model.record(f"e{n}", f"w{n}", metric="mine") for n in range(4)])
    assert 3 == model.run().ret
    model.asked(forget=True)
    model.write("conftest.py", BROKEN_METRIC.format(expression="1.0"))
    result = model.run("--lm-resume")
    assert 0 == result.ret
    result.assert_outcomes(passed=4)
    assert not asked_in(model)
