"""What a model's page was given of its examples, and the page that compares the models takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.comparison import Compared, compared, render_comparison
from pytest_lmeval.report.html import columns, data, render_report
from pytest_lmeval.report.html.examples import ShownPair, example_fields
from pytest_lmeval.report.html.shown import ShownExamples
from pytest_lmeval.types import ExampleResult
from tests.report.html.samples import conversation, function_run, result

BEFORE = {("sums", "e1"): result("e1", "5")}


def _model(label: str, results: Sequence[ExampleResult], shown: ShownExamples | None) -> Compared:
    """Return a model whose own page was rendered, beside a baseline."""
    board = build_board((), results, RunFacts("t", label, gate={"mode": "none", "verdict": "pass", "reasons": []}))
    render_report(board.to_json(), results, None, BEFORE, shown)
    return Compared(label, board, tuple(results), label, shown=shown)


def _page(*models: Compared) -> str:
    return render_comparison(compared(models, 0, Path()), models)


def _results(count: int = 6, wrong: int = 2, **fields: Any) -> list[ExampleResult]:
    return [
        result(f"e{n}", "5" if n < wrong else "4", line=n + 1, thoughts=("hm",), **fields | {"item": f"e{n}[a]"})
        for n in range(count)
    ]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of examples in the order in which their fields are made."""
    ids: list[str] = []

    def counted(pair: ShownPair, prefix: int) -> dict[str, Any]:
        ids.append(pair.now.id)
        return example_fields(pair, prefix)

    for module in (data, columns):
        monkeypatch.setattr(module, "example_fields", counted)
    return ids


def test_the_fields_of_an_example_are_made_once_for_both_pages(made: list[str]) -> None:
    one, other = _results(), _results(wrong=3, item="")
    shared = _page(*(_model(label, own, ShownExamples(2)) for label, own in zip("ab", (one, other), strict=True)))
    assert sorted([each.id for each in (*one, *other)]) == sorted(made)
    assert _page(_model("a", one, None), _model("b", other, None)) == shared


def test_what_is_shared_is_what_would_be_made(made: list[str]) -> None:
    start = f"{'Worked examples. ' * 20}\n"
    long = [replace(each, prompt=f"{start}{start}{each.prompt}") for each in _results()]
    some = [replace(each, prompt=f"{start}{each.prompt}", hash=f"other {each.id}") for each in _results(4)]
    functions = function_run()[1]
    for one, other in ((long, some), (long[:1], some[:1]), (functions, [conversation(), *functions[:4]])):
        pages = [_page(*(_model(*of, ShownExamples(2)) for of in (("a", one), ("b", other))))]
        pages += [_page(*(_model(*of, None) for of in (("a", one), ("b", other))))]
        assert pages[0] == pages[1]


def test_only_so_much_is_kept_and_each_once() -> None:
    held, other = result("e1"), result("e2")
    few = ShownExamples(4_000)
    few.keep(held, 0, {"id": "e1", "flip": "worse", "before": {}}, 10)
    few.keep(other, 0, {"id": "e2"}, 10)
    assert (None, {"id": "e1"}, None) == (few.take(other, 0), few.take(held, 0), few.take(held, 0))
    large = ShownExamples(2)
    large.keep(held, 0, {"id": "e1"}, 4_000_001)
    large.keep(other, 7, {"id": "e2"}, 4_000_000)
    assert (None, None) == (large.take(held, 0), large.take(other, 0))
