"""What GitHub is told: within its limits, and with no command of the model's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_lmeval.report.github import ANNOTATIONS, add_step_summary, annotation, commands
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

FAILED = ExampleResult(
    "sums", "a", "failed", 0.0, 1.0, "exact_match", "h", predictions=("5",), targets=("4",), line=7
)  # fmt: skip
ACTIONS = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/repo"}


def test_an_annotation_stands_at_the_line_of_its_example() -> None:
    expected = (
        "::error file=tasks/sums.jsonl,line=7,title=sums%3A a failed::scored 0, threshold 1; said '5', wanted '4'"
    )
    assert expected == annotation(FAILED, "tasks/sums.jsonl")


@each_row(("output", "said"), [({}, "; assert 1 == 2"), ({"output": "two"}, "; assert 1 == 2; said 'two'")])
def test_an_annotation_of_a_function_says_why_it_failed(output: dict[str, str], said: str) -> None:
    details = {"function": {"name": "test_a", "sha256": ""}, "reason": "assert 1 == 2", **output}
    failed = replace(FAILED, metric="function", predictions=(), targets=(), details=details)
    assert annotation(failed, "t").endswith(f"::scored 0, threshold 1{said}")


@each_row(("calls", "wanted"), [(["f(a=1)", "g()"], ", wanted f(a=1), g()"), ([], ", wanted no call"), (None, "")])
def test_an_annotation_names_the_calls_that_were_expected(calls: list[str] | None, wanted: str) -> None:
    called = replace(FAILED, metric="tool_calls", targets=(), details={} if calls is None else {"expected": calls})
    assert annotation(called, "t").endswith(f"; said '5'{wanted}")


def test_paths_are_those_of_the_repository() -> None:
    found = commands([FAILED], {"sums": "tasks/sums.jsonl"}, Path("/repo/evals"), ACTIONS)
    assert [True] == [line.startswith("::error file=evals/tasks/sums.jsonl,line=7,") for line in found]


def test_there_are_no_more_than_are_shown() -> None:
    assert ANNOTATIONS == len(commands([FAILED] * 50, {"sums": "s"}, Path("/repo"), ACTIONS))


def test_an_example_without_a_line_has_none() -> None:
    assert [] == commands([replace(FAILED, line=0)], {"sums": "s"}, Path("/repo"), ACTIONS)


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
    (line,) = commands([FAILED], {"sums": "s.jsonl"}, Path("/repo"), ACTIONS, "warning")
    assert line.startswith("::warning file=s.jsonl,line=7,")
