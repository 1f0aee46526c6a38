"""Compare answers that consist of several spans, as in the evaluation of DROP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.metrics.parts.texts import ARTICLE, NO_PUNCTUATION

_EXTRAS = ("answer_tuples",)
_MOST_SPANS = 100


@metric(extras=_EXTRAS, binary=True)
def drop_em(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction has the same spans as any answer, in any order, else 0.0.

    This is the exact match of the DROP benchmark (Dua et al., 2019). Commas separate the spans of a prediction. Each
    answer in ``extras.answer_tuples`` is a list of spans; without ``answer_tuples``, each target is an answer with one
    span. The comparison ignores case, ASCII punctuation and the words a, an and the, and compares numbers by value.
    Raises RecordRefused for malformed ``answer_tuples``.
    """
    given = _spans(prediction)
    return float(any(len(given) == len(each) and set(given) == set(each) for each in _answers(targets, extras)))


@metric(extras=_EXTRAS, threshold=0.5)
def drop_f1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the mean F1 of the spans for the best pairing and the best answer, rounded to two decimal places.

    A span without a partner has an F1 of 0. A span with numbers pairs only with a span that shares a number.
    """
    given = [frozenset(span.split()) for span in _spans(prediction)]
    answers = ([frozenset(span.split()) for span in each] for each in _answers(targets, extras))
    return max((_aligned(given, wanted) for wanted in answers), default=0.0)


def _spans(prediction: str) -> list[str]:
    spans = [span for span in prediction.split(",") if span.strip()] or [prediction]
    return [_normal(span) for span in spans]


def _answers(targets: Sequence[str], extras: Extras) -> list[list[str]]:
    given = extras.get("answer_tuples")
    if given is None:
        given = [[target] for target in targets]
    if not isinstance(given, list | tuple) or not all(_is_answer(each) for each in given):
        wanted = f"a list of answers, each a list of at most {_MOST_SPANS} texts"
        raise RecordRefused("bad_value", "extras.answer_tuples", f"expected {wanted}")
    # The evaluation skips answers whose first span is empty.
    return [[_normal(span) for span in answer] for answer in given if answer and answer[0].strip()]


def _is_answer(answer: Any) -> bool:
    is_list = isinstance(answer, list | tuple) and len(answer) <= _MOST_SPANS
    return is_list and all(isinstance(span, str) for span in answer)


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


def _aligned(given: list[frozenset[str]], wanted: list[frozenset[str]]) -> float:
    # Spans far beyond the longest answer are counted, but not paired.
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
    """Return the largest sum of entries, one per row and at most one per column; rows must not outnumber columns.

    The algorithm is the Hungarian method, with a shortest path for each row. The method takes ``rows ** 2 * columns``
    steps.
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
