"""The responses in a result: the details and the confidence of each, the score of the first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.tool_calls import expected_in
from pytest_lmeval.types import ExampleResult


def details_of(result: ExampleResult) -> Sequence[Mapping[str, Any]]:
    """Return the details of every response to an example, in order: of one, unless it was asked several times."""
    repeats = result.details.get("repeats") if result.details else None
    if not repeats or not isinstance(repeats, Sequence):
        return (result.details,)
    return [details if isinstance(details, Mapping) else {} for details in repeats]


def first_details(result: ExampleResult) -> Mapping[str, Any]:
    """Return the details of the first response."""
    return details_of(result)[0]


def first_score(result: ExampleResult) -> float | None:
    """Return the score of the first response; None if the example has no score."""
    scores = result.details.get("scores") if len(result.predictions) > 1 else None
    return float(scores[0]) if scores else result.score


def shown_response(result: ExampleResult) -> int:
    """Return which response to show of an example: the first, or the first of the lowest score of one under threshold.

    What was right does not explain why an example of several responses failed.
    """
    scores = _scores(result)
    if len(scores) < 2 or result.score is None or result.score >= result.threshold:
        return 0
    return scores.index(min(scores))


def responses_under(result: ExampleResult) -> str:
    """Return how many responses are under the threshold, as in ``1 of 3``; "" of an example with one response."""
    scores = _scores(result)
    return f"{sum(score < result.threshold for score in scores)} of {len(scores)}" if len(scores) > 1 else ""


def _scores(result: ExampleResult) -> Sequence[float]:
    found = result.details.get("scores")
    is_whole = isinstance(found, Sequence) and len(found) == len(result.outputs) == len(result.predictions)
    return found if is_whole and found is not None else ()


def wanted_of(result: ExampleResult) -> Sequence[str]:
    """Return what was wanted of the model: the targets, or the calls of a record that has calls instead."""
    return result.targets or expected_in(result.metric, first_details(result))


def wanted_text(result: ExampleResult, *, quoted: bool = True) -> str:
    """Return what was wanted in one text: any of the targets, ``quoted`` or not, or all of the calls."""
    if not result.targets:
        return ", ".join(wanted_of(result))
    return " | ".join(map(repr, result.targets) if quoted else result.targets)


def answers_in(output: str) -> Sequence[str]:
    """Return the answers that the output of a conversation is made of, in order; of any other, itself."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return (output,)
    is_list = isinstance(found, list) and all(isinstance(answer, str) for answer in found)
    return found if is_list else (output,)


def confidence_of(details: Mapping[str, Any]) -> float | None:
    """Return the confidence that ``details`` have, in [0, 1]; None if they have none."""
    value = details.get("confidence")
    is_share = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if is_share and value is not None else None


def confidences(result: ExampleResult) -> list[float | None]:
    """Return the confidence in each of the result's outputs, None where it is unknown."""
    found = [confidence_of(details) for details in details_of(result)]
    return found if len(found) == len(result.outputs) else [None] * len(result.outputs)
