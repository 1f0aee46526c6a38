"""Answers of several spans, as the DROP evaluation compares them: span by span, numbers as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric

_EXTRAS = ("answer_tuples",)


@metric(extras=_EXTRAS, binary=True)
def drop_em(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction has the spans of any answer, in any order, else 0.0.

    Dua et al. (2019), "DROP: A reading comprehension benchmark". The spans of a prediction are between its commas.
    ``extras.answer_tuples`` are the answers, each a list of spans; without it each target is an answer of one span.
    Spans are compared without case, ASCII punctuation and the words a, an and the, numbers by their value.
    Raises RecordRefused for other extras.
    """
    from pytest_lmeval.metrics.parts.spans import answers_of, spans_of

    given = spans_of(prediction)
    answers = answers_of(targets, extras)
    return float(any(len(given) == len(wanted) and set(given) == set(wanted) for wanted in answers))


@metric(extras=_EXTRAS, threshold=0.5)
def drop_f1(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return the mean F1 of the spans, paired so that it is highest, to two digits; of the best answer.

    Spans without a partner count 0. A span with numbers is only paired with one that has one of them.
    """
    from pytest_lmeval.metrics.parts.spans import aligned, answers_of, spans_of

    given = [frozenset(span.split()) for span in spans_of(prediction)]
    answers = ([frozenset(span.split()) for span in wanted] for wanted in answers_of(targets, extras))
    return max((aligned(given, wanted) for wanted in answers), default=0.0)
