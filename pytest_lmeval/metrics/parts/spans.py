"""The spans of answers, as the DROP evaluation makes them alike, and pairs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.parts.texts import ARTICLE, NO_PUNCTUATION

_MOST_SPANS = 100


def spans_of(prediction: str) -> list[str]:
    """Return the spans of a prediction, which its commas separate, made alike."""
    spans = [span for span in prediction.split(",") if span.strip()] or [prediction]
    return [_normal(span) for span in spans]


def answers_of(targets: Sequence[str], extras: Mapping[str, Any]) -> list[list[str]]:
    """Return the answers, each as its spans; raise RecordRefused for other extras."""
    given = extras.get("answer_tuples")
    if given is None:
        given = [[target] for target in targets]
    if not isinstance(given, list | tuple) or not all(_is_answer(each) for each in given):
        wanted = f"a list of answers, each a list of at most {_MOST_SPANS} texts"
        raise RecordRefused("bad_value", "extras.answer_tuples", f"expected {wanted}")
    # An answer whose first span is empty is no answer.
    return [[_normal(span) for span in answer] for answer in given if answer and answer[0].strip()]


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, list | tuple)
        and len(answer) <= _MOST_SPANS
        and all(isinstance(span, str) for span in answer)
    )


def _normal(span: str) -> str:
    words = (_normal_word(word) for word in re.split("[ -]", span.lower()))
    return " ".join(" ".join(words).split())


def _normal_word(word: str) -> str:
    if (number := _number(word)) is None:
        word = word.translate(NO_PUNCTUATION)
        number = _number(word)
    return ARTICLE.sub(" ", word if number is None else str(number))


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def aligned(given: list[frozenset[str]], wanted: list[frozenset[str]]) -> float:
    """Return the mean F1 of the best pairs of spans, to two digits."""
    # What is beyond any answer that is asked for is paired with nothing; it counts all the same.
    rows, columns = sorted((given[: 10 * _MOST_SPANS], wanted), key=len)
    numbers = {each: {word for word in each if _number(word) is not None} for each in (*rows, *columns)}
    swapped = rows is wanted
    pairs = [[(other, each) if swapped else (each, other) for other in columns] for each in rows]
    worth = [
        [_f1(mine, theirs) if not numbers[theirs] or numbers[theirs] & numbers[mine] else 0.0 for mine, theirs in row]
        for row in pairs
    ]
    return round(best_sum(worth) / max(len(given), len(wanted)), 2)


def _f1(given: frozenset[str], wanted: frozenset[str]) -> float:
    common = len(given & wanted)
    precision = common / len(given) if given else 1.0
    recall = common / len(wanted) if wanted else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def best_sum(worth: list[list[float]]) -> float:
    """Return the largest sum of one entry from each row, no two from one column; there are no more rows than columns.

    The Hungarian method by shortest paths, each from one more row: rows squared times columns.
    """
    columns = len(worth[0]) if worth else 0
    row_price, column_price = [0.0] * len(worth), [0.0] * columns
    owner: list[int | None] = [None] * columns
    for start in range(len(worth)):
        distance, before, done = [float("inf")] * columns, [-1] * columns, [False] * columns
        row, last, here = start, -1, 0.0
        while True:
            for column in range(columns):
                cost = here - worth[row][column] - row_price[row] - column_price[column]
                if not done[column] and cost < distance[column] - 1e-12:
                    distance[column], before[column] = cost, last
            last = min((column for column in range(columns) if not done[column]), key=distance.__getitem__)
            here, done[last] = distance[last], True
            if (taken := owner[last]) is None:
                break
            row = taken
        row_price[start] += here
        for column in range(columns):
            if done[column] and column != last and (held := owner[column]) is not None:
                row_price[held] += here - distance[column]
                column_price[column] -= here - distance[column]
        while before[last] >= 0:
            owner[last], last = owner[before[last]], before[last]
        owner[last] = start
    return sum(worth[row][column] for column, row in enumerate(owner) if row is not None)
