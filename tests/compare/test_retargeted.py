"""Examples of which the targets alone were changed: when the old targets can be applied, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.compare.compare import Comparison, compare
from pytest_lmeval.hashes import hashes_of
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

SAME = ExampleResult("sums", "same", "passed", 1.0, 1.0, "exact_match", "h")
OLD = ExampleResult(
    "sums",
    "a",
    "passed",
    1.0,
    1.0,
    "exact_match",
    "",
    prompt="2 + 2 =",
    outputs=(" Four",),
    predictions=("Four",),
    targets=("Four",),
    post_process="strip_whitespace",
)


def hashed(result: ExampleResult, metric: str = "exact_match", scoring: Mapping[str, Any] | None = None) -> Any:
    """Return the result with the content hash of an example of the registry's ``metric``."""
    return replace(result, hash=hashes_of(result.prompt, result.targets, metric, result.post_process, scoring or {})[0])


def against(old: ExampleResult, new: ExampleResult) -> Comparison:
    return compare([SAME, old], [SAME, new])


def failing(**fields: Any) -> ExampleResult:
    return replace(OLD, **{"score": 0.0, "status": "below", "targets": ("four",), **fields})


def test_an_answer_that_only_the_old_targets_accept_is_named() -> None:
    comparison = against(hashed(OLD), hashed(failing()))
    (found,) = comparison.to_json()["retargeted"]
    assert {
        "task": "sums",
        "id": "a",
        "line": 0,
        "old_targets": ["Four"],
        "targets": ["four"],
        "prediction": "Four",
        "passed_before": True,
        "score": 0.0,
        "passes": False,
        "score_by_old_targets": 1.0,
        "passes_by_old_targets": True,
    } == found
    assert (
        "1 of 1 changed examples were also scored with their old targets, for information: 1 passed before, "
        "0 pass with the new targets, 1 would pass with the old targets",
        "pass with the old targets only: sums: a",
    ) == comparison.coverage[2:]


def test_an_answer_that_only_the_new_targets_accept_is_named() -> None:
    old, new = hashed(failing()), hashed(OLD)
    assert "pass with the new targets only: sums: a" == against(old, new).coverage[-1]


def test_the_word_exact_match_of_a_compact_file_is_the_metric_that_ignores_case() -> None:
    old = hashed(replace(OLD, targets=("FOUR",)), "exact_match_normalized")
    new = hashed(failing(targets=("5",)), "exact_match_normalized")
    (found,) = against(old, new).retargeted
    assert 1.0 == found.score


def test_of_several_answers_the_mean_is_the_score() -> None:
    predictions = ("Four", "four", "4", "four")
    new = hashed(failing(predictions=predictions, score=0.5, threshold=0.5, status="passed"))
    (found,) = against(hashed(OLD), new).retargeted
    assert (0.25, True, False) == (found.score, found.passes, found.passes_by_old_targets)


@each_row(
    ("old", "new"),
    [
        pytest.param(hashed(OLD), hashed(failing(prompt="2+2 =")), id="another prompt"),
        pytest.param(hashed(OLD), hashed(failing(post_process="lower")), id="another rule"),
        pytest.param(hashed(OLD), hashed(failing(metric="accuracy"), "accuracy"), id="another metric"),
        pytest.param(hashed(OLD, scoring={"x": 1}), hashed(failing(), scoring={"x": 1}), id="extras that may decide"),
        pytest.param(hashed(OLD, "mine"), hashed(failing(metric="mine"), "mine"), id="a metric that is not built in"),
        pytest.param(
            hashed(OLD, "code_exec"), hashed(failing(metric="code_exec"), "code_exec"), id="a metric with a sandbox"
        ),
        pytest.param(hashed(OLD), replace(hashed(failing()), prompt=""), id="no prompt recorded"),
        pytest.param(hashed(OLD), replace(hashed(failing()), predictions=()), id="no answer recorded"),
        pytest.param(hashed(OLD), replace(hashed(failing()), score=1.0), id="a score that is not the metric's"),
        pytest.param(
            hashed(OLD), replace(hashed(failing()), score=None, status="error", predictions=()), id="not scored"
        ),
    ],
)
def test_what_is_not_proven_to_differ_in_its_targets_alone_is_not_scored_again(
    old: ExampleResult, new: ExampleResult
) -> None:
    comparison = against(old, new)
    assert (("sums", "a"),) == comparison.of("changed")
    assert () == comparison.retargeted
    assert "0 of 1 changed examples could be scored with their old targets" == comparison.coverage[-1]
