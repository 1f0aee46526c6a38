"""A verdict says where the test itself changed since the baseline, and under --lm-strict there is none without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.compare.compare import compare
from pytest_lmeval.compare.gate import GateSettings, decide
from pytest_lmeval.functions.source import FunctionHashes
from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.types import ExampleResult
from tests.conftest import Project

BODY = '''
import pytest_lmeval

class TestAll:
    @pytest_lmeval.eval_task("support")
    def test_ticket(self, lm, row=None):
        """Ask."""
        reply = lm.ask("a", stop=["x"])  # once
        lm.score("right", reply.text == f"{row}")
'''


def _hash(source: str, decisive: str = "", threshold: float = 1.0) -> str:
    return FunctionHashes(source.encode()).of("TestAll.test_ticket", decisive, threshold)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # once", ""),
        ('"""Ask."""', '"""Ask it\n        once."""'),
        ('lm.ask("a", stop=["x"])', "lm.ask(\n            'a',\n            stop=['x'],\n        )"),
        ('"support"', '"other"'),
    ],
)
def test_what_a_function_does_is_the_same_however_it_is_written(old: str, new: str) -> None:
    assert old in BODY
    assert _hash(BODY) == _hash(BODY.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [('"x"', '"y"'), ("==", "!="), ("row=None", "row=0"), ('"right"', '"wrong"'), ("def", "async def")]
)
def test_what_it_does_otherwise_is_a_change(old: str, new: str) -> None:
    assert _hash(BODY) != _hash(BODY.replace(old, new))


def test_what_decides_is_a_part_of_it() -> None:
    assert 3 == len({_hash(BODY), _hash(BODY, "right"), _hash(BODY, threshold=0.5)})


def test_the_hash_of_a_function_is_that_of_every_version_of_python() -> None:
    # ast.dump() of 3.13 leaves out what 3.12 writes; a baseline must outlive an upgrade.
    assert "a32f48b494e01c21" == _hash(BODY)


def _result(id: str, code: str, name: str = "test_ticket", task: str = "support") -> ExampleResult:
    details = {"function": {"name": name, "sha256": code}} if code else {}
    return ExampleResult(task, id, "passed", 1.0, 1.0, "function", f"h-{id}", details=details)


OLD = [_result("a", "1"), _result("b", "1"), _result("c", "3", "test_other")]


@pytest.mark.parametrize(
    ("changes", "functions"),
    [
        ({}, ()),
        ({0: _result("a", "1", "test_renamed")}, ()),
        ({0: _result("a", "2"), 1: _result("b", "2")}, ("test_ticket",)),
        ({1: _result("b", "2"), 2: _result("c", "4", "test_other")}, ("test_other", "test_ticket")),
        ({2: _result("c", "")}, ("test_other",)),
        ({0: replace(_result("a", "2"), hash="another row")}, ()),
    ],
)
def test_the_functions_of_pairs_whose_code_changed_are_named(
    changes: dict[int, ExampleResult], functions: tuple[str, ...]
) -> None:
    new = [changes.get(place, result) for place, result in enumerate(OLD)]
    assert functions == compare(OLD, new).functions


def test_functions_of_one_name_in_two_tasks_are_told_apart() -> None:
    old = [_result("a", "1"), _result("a", "1", task="billing")]
    new = [_result("a", "2"), _result("a", "2", task="billing")]
    assert ("test_ticket (billing)", "test_ticket (support)") == compare(old, new).functions


@pytest.mark.parametrize("mode", ["examples", "tasks", "baseline", "none"])
def test_every_verdict_with_a_baseline_warns_of_it(mode: str) -> None:
    facts = RunFacts("t", "stub.v1")
    baseline = RunFile(
        path=Path("base.json"), kind="leaderboard", facts=facts, complete=True, infos={}, results=tuple(OLD)
    )
    board = build_board((), [_result("a", "2"), *OLD[1:]], facts)
    decision = decide(board, baseline, GateSettings(mode=mode))
    assert "the test changed too: test_ticket" in decision.warnings
    assert ["test_ticket"] == decision.to_json()["comparison"]["functions"]


FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("support", data=[{"said": "a"}, {"said": "b"}])
def test_ticket(row, lm):
    lm.score("right", lm.ask(f"say: {row['said']}").text == row["said"])
"""
WARNING = "the test changed too: test_ticket"


def test_a_changed_function_is_said_on_every_output_of_a_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    test = project.write("test_support.py", FUNCTION)
    options = ("--lm-baseline=base.json", "--lm-gate=baseline", "test_support.py")
    assert 0 == project.run(*options, "--lm-update-baseline").ret
    test.write_text(FUNCTION.replace("say: ", "Now say: ").replace("@eval", "# no change\n@eval"))

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    result = project.run(*options)
    assert 0 == result.ret
    result.stdout.fnmatch_lines([f"*doubtful: {WARNING}"])
    gate = project.board()["gate"]
    assert ("pass", [WARNING]) == (gate["verdict"], gate["warnings"])
    for page in ("summary.md", "reports/leaderboard.md"):
        assert f"Doubtful: {WARNING}" in (project.path / page).read_text().replace("\\", "")

    strict = project.run(*options, "--lm-strict")
    assert (1, "stale") == (strict.ret, project.board()["gate"]["verdict"])
    strict.stdout.fnmatch_lines([f"*stale baseline (strict): {WARNING}", "*to update it: --lm-baseline=*"])
