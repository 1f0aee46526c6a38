"""The board of a run: complete or not, what counts, and a digest that only results decide."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board, digest
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.types import ExampleResult, Status
from tests.tables import each_row

FACTS = RunFacts("2026-11-21T08:00:00Z", "toy.v1")
SUMS, WORDS = TaskInfo("sums", "tasks/sums.jsonl"), TaskInfo("words", "tasks/words.jsonl")
A = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", outputs=("5",), category="arithmetic")
B = replace(A, id="b", status="failed", score=0.0, hash="h2", outputs=("6",))
C = replace(A, task="words", id="c", hash="h3", outputs=("x",), category="summary")
ERROR = replace(A, id="d", status="error", score=None, hash="h4", outputs=())
TIMEOUT = replace(ERROR, id="e", status="timeout", hash="h5")
EXCLUDED = replace(ERROR, id="f", status="excluded", hash="h6")
BELOW = replace(A, id="g", status="below", score=0.5, hash="h7")
KEYS = [
    *("schema", "timestamp", "adapter", "adapter_options", "complete"),
    *("overall_score", "overall_ci95", "counts", "selection", "tasks"),
    *("categories", "bad_records", "gate", "manifest", "digest"),
]


def _board(*results: ExampleResult, infos: Sequence[TaskInfo] = (), **facts: Any) -> Leaderboard:
    return build_board(infos, results, replace(FACTS, **facts))


# Remarks


@each_row(
    ("manifest", "expected"),
    [
        ({}, ()),
        ({"model": {"id": "m"}}, ()),
        ({"model": {"remarks": ["one", "a replica was refused", 3]}}, ("one", "a replica was refused", "3")),
        ({"model": {"remarks": "no list"}}, ()),
        ({"model": "no mapping"}, ()),
    ],
)
def test_what_a_model_remarks_is_among_the_remarks_of_the_board(manifest: dict[str, Any], expected: object) -> None:
    assert expected == _board(A, manifest=manifest).remarks
    assert ("one", *(each for each in expected if each != "one")) == _board(
        A, manifest=manifest, remarks=("one",)
    ).remarks


# Scores


def test_the_overall_score_is_the_unweighted_mean_of_the_tasks() -> None:
    board = _board(A, B, C)
    assert [("sums", 0.5), ("words", 1.0)] == [(row.task, row.score) for row in board.tasks]
    assert (True, 0.75) == (board.complete, board.overall_score)


def test_tasks_are_sorted_and_one_without_a_result_has_its_row() -> None:
    board = _board(A, infos=[WORDS, SUMS])
    assert [("sums", 1, "tasks/sums.jsonl"), ("words", 0, "tasks/words.jsonl")] == [
        (row.task, row.total, row.path) for row in board.tasks
    ]


def test_a_result_of_an_unknown_task_has_its_row() -> None:
    assert ["words"] == [row.task for row in _board(C).tasks]


def test_categories_are_broken_down_over_all_tasks() -> None:
    board = _board(A, B, replace(C, category="arithmetic"), replace(C, id="x", category=""))
    assert {"arithmetic": {"score": 2 / 3, "total": 3}} == board.categories


def test_the_overall_score_has_an_interval_around_it_and_none_without_a_score() -> None:
    low, high = _board(A, B, C).overall_ci95 or (1.0, 0.0)
    assert 0.0 < low < (_board(A, B, C).overall_score or 0.0) < high < 1.0
    assert _board(A, ERROR).overall_ci95 is None


def test_an_empty_run_has_no_overall_score() -> None:
    assert _board().overall_score is None


# Complete or not


def test_counts_add_up_to_what_was_collected() -> None:
    unparsed = replace(B, id="h", unparsed=True)
    board = _board(A, B, ERROR, TIMEOUT, EXCLUDED, BELOW, unparsed, missing=["sums::x", "sums::y"], skipped=3)
    assert {
        "collected": 12,
        "scored": 4,
        "errors": 1,
        "timeouts": 1,
        "excluded": 1,
        "skipped": 3,
        "missing": 2,
        "unparsed": 1,
        "below": 1,
    } == board.counts
    unscored = sum(board.counts[kind] for kind in ("errors", "timeouts", "excluded", "skipped", "missing"))
    assert board.counts["collected"] == board.counts["scored"] + unscored


@pytest.mark.parametrize(
    ("results", "facts", "complete"),
    [
        ([A, B], {}, True),
        ([A, EXCLUDED], {}, True),
        ([A], {"skipped": 2}, True),
        ([A, BELOW], {}, True),
        ([A, ERROR], {}, False),
        ([A, TIMEOUT], {}, False),
        ([A, ERROR], {"max_errors": 1}, True),
        ([A, ERROR, TIMEOUT], {"max_errors": 1}, False),
        ([A, ERROR, TIMEOUT], {"max_errors": 2}, True),
        ([A], {"missing": ["sums::b"]}, False),
        ([A], {"missing": ["sums::b"], "max_errors": 5}, False),
        ([A], {"finished": False}, False),
    ],
)
def test_a_board_is_complete_only_if_every_example_is_accounted_for(
    results: list[ExampleResult], facts: dict[str, Any], complete: bool
) -> None:
    board = _board(*results, **facts)
    assert complete == board.complete == (board.overall_score is not None)


def test_faults_within_the_allowance_are_left_out_of_the_score_not_counted_as_wrong() -> None:
    assert 1.0 == _board(A, ERROR, max_errors=1).overall_score


# JSON


def test_the_json_has_the_documented_keys_in_order() -> None:
    board = _board(A, selection={"limit": 1}, bad_records=["x"], gate={"mode": "examples", "verdict": "pass"})
    assert KEYS == list(board.to_json())
    assert "pytest-lmeval/leaderboard/2" == board.to_json()["schema"]


def test_what_was_not_there_is_absent_from_the_json() -> None:
    assert [key for key in KEYS if key not in ("selection", "bad_records", "gate")] == list(_board(A).to_json())


def test_facts_stand_in_the_json() -> None:
    facts: dict[str, Any] = {
        "adapter_options": {"temperature": 0},
        "selection": {"limit": 1},
        "bad_records": ["a:1: bad_json _line: x"],
        "gate": {"mode": "tasks", "verdict": "floor", "reasons": ["sums"]},
        "manifest": {"versions": {}},
    }
    written = _board(A, **facts).to_json()
    assert facts == {key: written[key] for key in facts}
    assert ("toy.v1", "2026-11-21T08:00:00Z") == (written["adapter"], written["timestamp"])


def test_an_incomplete_board_writes_null_for_its_score() -> None:
    written = json.loads(json.dumps(_board(A, ERROR).to_json()))
    assert (False, None) == (written["complete"], written["overall_score"])


# The digest, computed once more from its definition

_RESULTS = st.lists(
    st.builds(
        ExampleResult,
        task=st.sampled_from(["sums", "words", "é"]),
        id=st.text(max_size=3),
        status=st.sampled_from(get_args(Status)),
        metric=st.text(max_size=3),
        score=st.none() | st.floats(0, 1),
        threshold=st.floats(0, 1),
        hash=st.text("0123456789abcdef", min_size=4, max_size=4),
        outputs=st.lists(st.text(st.characters(), max_size=4), max_size=2).map(tuple),
        details=st.just({}),
    ),
    max_size=6,
)


def _by_definition(results: Sequence[ExampleResult]) -> str:
    lines = [
        json.dumps([each.task, each.id, each.hash, list(each.outputs), each.score], separators=(",", ":"))
        for each in results
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode("ascii")).hexdigest()


@settings(deadline=None)
@given(_RESULTS)
def test_the_digest_is_the_documented_one(results: list[ExampleResult]) -> None:
    assert _by_definition(results) == digest(results) == _board(*results).digest


def test_the_digest_of_known_results_never_changes() -> None:
    text = '["sums","a","h1",["5"],1.0]\n["sums","b","h2",["6"],0.0]\n["sums","d","h4",[],null]'
    assert hashlib.sha256(text.encode()).hexdigest() == digest([B, ERROR, A])
    assert hashlib.sha256(b"").hexdigest() == digest([])


def test_the_digest_sorts_results_of_the_same_example_by_what_was_answered() -> None:
    twice = [replace(A, outputs=("b",)), replace(A, outputs=("a",), score=0.0), replace(A, task="sums,")]
    assert _by_definition(twice) == digest(twice)


def test_the_digest_holds_one_large_output_at_a_time() -> None:
    results = [replace(A, id=str(number), outputs=("x" * 500_000,)) for number in range(20)]
    tracemalloc.start()
    digest(results)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


def test_the_digest_survives_the_ledger() -> None:
    results = [A, B, ERROR, replace(C, score=1 / 3, outputs=("\ud800é\u2028",))]
    assert digest(results) == digest([ExampleResult.from_json(result.to_json()) for result in results])


@pytest.mark.parametrize(
    "change",
    [
        *[{"latency_ms": 9.0}, {"threshold": 0.5}, {"status": "below"}, {"adapter": "other"}, {"prompt": "p"}],
        *[{"predictions": ("p",)}, {"error": "e"}, {"details": {"a": 1}}],
    ],
)
def test_nothing_else_decides_it(change: dict[str, Any]) -> None:
    assert digest([A, B]) == digest([replace(A, **change), B])
