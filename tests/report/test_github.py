"""What GitHub is told: within its limits, and with no command of the model's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.leaderboard.board import build_board
from pytest_lmeval.report.github import ANNOTATIONS, add_step_summary, annotation, commands
from pytest_lmeval.types import ExampleResult
from tests.records.run_files import FACTS, infos_of
from tests.tables import each_row

FAILED = ExampleResult(
    "sums", "a", "failed", 0.0, 1.0, "exact_match", "h", prompt="Add.\n\nWhat is 20 + 2?",
    predictions=("5",), targets=("4",), line=7,
)  # fmt: skip
ACTIONS = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/repo"}
GATE = {"mode": "examples", "verdict": "examples"}


def _commands(*results: ExampleResult, gate: dict[str, Any] = GATE, label: str = "") -> list[str]:
    board = build_board(infos_of(results), results, replace(FACTS, gate=gate))
    return commands(board, Path("/repo/evals"), ACTIONS, label)


def test_an_annotation_stands_at_the_line_of_its_example() -> None:
    message = "scored 0, threshold 1%0Aquestion: What is 20 + 2?%0Awanted: 4%0Asaid: 5 (score 0)"
    assert f"::error file=tasks/sums.jsonl,line=7,title=sums%3A a failed::{message}" == annotation(
        FAILED, "tasks/sums.jsonl"
    )


@each_row(
    ("output", "said"),
    [({}, "%0Asaid: assert 1 == 2"), ({"output": "two"}, "%0Asaid: two (assert 1 == 2)")],
)
def test_an_annotation_of_a_function_says_why_it_failed(output: dict[str, str], said: str) -> None:
    details = {"function": {"name": "test_a", "sha256": ""}, "reason": "assert 1 == 2", **output}
    failed = replace(FAILED, metric="function", prompt="{}", predictions=(), targets=(), details=details)
    assert annotation(failed, "t").endswith(f"::scored 0, threshold 1{said}")


@each_row(("calls", "wanted"), [(["f(a=1)", "g()"], "f(a=1) | g()"), ([], "no call"), (None, "")])
def test_an_annotation_names_the_calls_that_were_expected(calls: list[str] | None, wanted: str) -> None:
    called = replace(FAILED, metric="tool_calls", targets=(), details={} if calls is None else {"expected": calls})
    assert (f"%0Awanted: {wanted}%0Asaid: 5" in annotation(called, "t")) == bool(wanted)
    assert ("wanted" in annotation(called, "t")) == bool(wanted)


def test_an_example_that_got_worse_has_both_answers() -> None:
    flip = {
        "task": "sums",
        "id": "a",
        "question": "2 + 2?",
        "targets": ["4"],
        "old": {"prediction": "4", "score": 1.0},
        "new": {"prediction": "5", "score": 0.0},
    }
    gate = {"mode": "baseline", "verdict": "regression", "comparison": {"worse": [flip]}}
    (line,) = _commands(replace(FAILED, status="below"), gate=gate, label="small")
    assert line.endswith("question: 2 + 2?%0Awanted: 4%0Asaid before: 4 (score 1)%0Asays now: 5 (score 0)")
    assert ",title=sums%3A a[small] below::" in line


def test_paths_are_those_of_the_repository() -> None:
    assert [True] == [line.startswith("::error file=evals/tasks/sums.jsonl,line=7,") for line in _commands(FAILED)]


def test_there_are_no_more_than_are_shown() -> None:
    assert ANNOTATIONS == len(_commands(*[replace(FAILED, id=f"e{number}") for number in range(50)]))


def test_an_example_without_a_line_has_none() -> None:
    assert [] == _commands(replace(FAILED, line=0))


@each_row("text", ["a\n::warning::b", "a\r::stop-commands::x", "%0A::error::x", "a\x1b[2J"])
def test_what_the_model_wrote_stays_inside_its_annotation(text: str) -> None:
    line = annotation(replace(FAILED, task=text, score=None, status="error", error=text), "a,b:c.jsonl")
    assert 1 == len(line.splitlines())
    assert line.startswith("::error file=a%2Cb%3Ac.jsonl,line=7,title=")
    assert "%0A::" not in line.replace("%250A::", "") or "%0A::" in line.partition("::")[2]
    assert "\x1b" not in line


def test_the_summary_is_added_to_what_the_step_has_written_already(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    add_step_summary("# Board", path)
    assert "before\n# Board\n" == path.read_text()


def test_a_summary_that_would_be_thrown_away_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("x" * 1_000_000)
    add_step_summary("line\n" * 100_000, path)
    assert 1 << 20 >= path.stat().st_size > 1_040_000
    add_step_summary("line\n" * 100_000, path)
    assert 1 << 20 >= path.stat().st_size


def test_a_run_that_passes_warns() -> None:
    (line,) = _commands(FAILED, gate={"mode": "none", "verdict": "pass"})
    assert line.startswith("::warning file=evals/tasks/sums.jsonl,line=7,")
