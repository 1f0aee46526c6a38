"""The comparison of several models: the decision, the scores by task, doubts and quarantine, and the words for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.atomic import encode_json
from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.comparison import Compared, compared
from pytest_lmeval.report.comparison_text import comparison_markdown, comparison_table, headline
from pytest_lmeval.types import ExampleResult
from tests.schemas import faults
from tests.tables import each_row

Scores = Sequence[float | None]
RIGHT, HALF = [1.0] * 20, [1.0, 0.0] * 10


def _result(task: str, number: int, score: float | None, cost: float | None) -> ExampleResult:
    status = "error" if score is None else "passed" if score == 1.0 else "below"
    return ExampleResult(
        *(task, f"e{number}", status, score, 1.0, "exact_match", f"{task}{number}"),
        usage={} if cost is None else {"cost": cost},
    )


def _model(label: str, cost: float | None = None, gate: dict[str, Any] | None = None, **tasks: Scores) -> Compared:
    results = [_result(task, number, score, cost) for task in tasks for number, score in enumerate(tasks[task])]
    facts = RunFacts("t", label, gate=gate or {"mode": "none", "verdict": "pass", "reasons": []}, max_errors=99)
    return Compared(label, build_board((), results, facts), tuple(results), label)


def _compared(*models: Compared, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_json(compared(models, 0, **options)))
    assert [] == faults("comparison", found)
    return found


@each_row(
    ("costs", "right", "expected"),
    [
        ((1.0, 0.2), (20, 18), "a is best; b is not shown to be worse (within 31 points) at 0.2 of the cost"),
        ((1.0, 1.0), (20, 18), "a is best; b is not shown to be worse (within 31 points) at the same cost"),
        ((1.0, 3.5), (20, 18), "a is best; b is not shown to be worse (within 31 points) at 3.5 times the cost"),
        ((1.0, None), (20, 18), "a is best; b is not shown to be worse (within 31 points)"),
        ((0.0, 1.0), (20, 18), "a is best; b is not shown to be worse (within 31 points)"),
        ((None, None), (20, 5), "a is best; b is worse (by at least 42 points)"),
        (
            (None, None, None),
            (20, 18, 5),
            "a is best; b is not shown to be worse (within 36 points); c is worse (by at least 33 points)",
        ),
        (
            (1.0, 0.94, 1.2),
            (20, 19, 18),
            "a is best; b and c are not shown to be worse (within 30 and 36 points) at 0.94 and 1.2 times the cost",
        ),
        (
            (None, None),
            (20, 20),
            "a and b have the same score; b is not shown to be worse (within 17 points)",
        ),
        (
            (1.0,) * 6,
            (20, 19, 19, 18, 18, 18),
            "a is best; b, c, d and 2 more are not shown to be worse (each within 43 points)",
        ),
    ],
)
def test_the_decision_is_one_sentence(costs: Sequence[float | None], right: Sequence[int], expected: str) -> None:
    models = [
        _model(label, cost, words=[1.0] * count + [0.0] * (20 - count))
        for label, cost, count in zip("abcdef", costs, right, strict=False)
    ]
    assert expected == _compared(*models)["decision"]


def test_no_model_is_named_best_where_the_ranking_names_none_and_none_is_passed_over() -> None:
    a, b = _model("a", words=RIGHT), _model("b", words=HALF)
    rest = _model("rest", words=[None] * 16 + [1.0] * 4)
    other = _model("other", sums=RIGHT)
    alone = _compared(a, not_asked=["b"])
    assert "no model is named best: fewer than two models have a score" == alone["decision"]
    assert "no model is named best: a and other share no scored example: " in _compared(a, other)["decision"]
    few = [_model("a", words=[None] * 4 + [1.0] * 16), _model("b", words=[1.0] * 16 + [None] * 4)]
    assert "no model is named best: all ranked models have a score for 12 of 20" in _compared(*few)["decision"]
    expected = "a is best; b is worse (by at least 21 points); rest is not ranked; c was not asked"
    assert expected == _compared(a, b, rest, not_asked=["c"])["decision"]


def test_the_table_of_tasks_has_every_model_with_its_n_and_marks_the_best() -> None:
    a, b = _model("a", sums=HALF, words=RIGHT), _model("b", sums=RIGHT, words=[None] + [1.0] * 19)
    down = _model("down", sums=[1.0, None], words=[None] * 20)
    found = _compared(a, b, down)
    # In the second task both have the same score.
    assert [["b"], []] == [task["best"] for task in found["tasks"]]
    assert [
        "task               b             a         down   n",
        "sums   1.0000* of 20  0.5000 of 20  1.0000 of 1",
        "words         1.0000        1.0000            -  19",
    ] == [line for line in comparison_table(found) if line.startswith(("task", "sums", "words"))]
    assert "| words | 1.0000 | 1.0000 | - | 19 |" in comparison_markdown(found)
    # A table of many models is read in parts of eight columns; that of one task would only repeat the rows.
    many = _compared(*(_model(label, sums=HALF, words=RIGHT) for label in "abcdefghijkl"))
    assert 2 == sum(line.startswith("task ") for line in comparison_table(many))
    one = _compared(_model("a", words=RIGHT), _model("b", words=HALF))
    assert not any(line.startswith("task ") for line in comparison_table(one))


def test_doubts_and_quarantine_are_said_of_each_model_or_once_for_all() -> None:
    gate = {"mode": "none", "verdict": "pass", "reasons": [], "warnings": ["every output is empty"]}
    a, b = _model("a", gate=gate, words=RIGHT), _model("b", words=HALF)
    until = {"until": "2026-12-22", "reason": "flips"}
    aside = tuple(
        replace(_result("words", number, 0.0, None), status="quarantined", quarantine=until) for number in range(20, 32)
    )
    both = [_with(model, aside) for model in (a, b)]
    lines = comparison_table(_compared(*both))
    assert "a: doubtful: every output is empty" in lines
    assert "quarantined until 2026-12-22: words: e20 (flips)" in lines
    assert "... and 2 more quarantined" in lines
    assert 11 == sum("quarantined" in line for line in lines)
    lines = comparison_table(_compared(both[0], _with(b, aside[:1])))
    assert "b: quarantined until 2026-12-22: words: e20 (flips)" in lines
    assert "a: ... and 2 more quarantined" in lines


def _with(model: Compared, more: tuple[ExampleResult, ...]) -> Compared:
    results = (*model.results, *more)
    return replace(model, board=build_board((), results, model.board.facts), results=results)


def test_the_headline_names_the_models_that_failed() -> None:
    gates = {
        "a": {"mode": "examples", "verdict": "examples", "reasons": ["one failed"], "decided_by": ["examples"]},
        "b": {"mode": "examples", "verdict": "pass", "reasons": [], "decided_by": ["examples"]},
    }
    a, b = (_model(label, gate=gate, words=RIGHT) for label, gate in gates.items())
    assert "failed: a (examples)" == headline(_compared(a, b))
    assert "passed" == headline(_compared(b, _model("c", words=RIGHT)))
    assert "not gated" == headline(_compared(_model("c", words=RIGHT), _model("d", words=RIGHT)))
