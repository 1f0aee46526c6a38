"""Whether an answer is the same mathematics as a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.types import Score

if TYPE_CHECKING:
    from pytest_lmeval.metrics.parts.worker import MetricWorker


@metric(package="math_verify", install="pytest-lmeval[math]", binary=True)
def math_equal(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> Score:
    r"""Return 1.0 if the answer in the prediction equals that in any target by math-verify, else 0.0.

    ``details.math_status`` is ``equal``, ``different``, ``unparsed`` (the answer is no mathematics, and no target
    word for word), or ``timeout``, of the target that came nearest. A target of letters alone is compared as a word.

    Raises ScoringError where math-verify is needed and not installed, or the process that runs it fails.
    """
    from pytest_lmeval.metrics.parts.worker import shared_worker

    return math_score(prediction, targets, shared_worker())


def math_score(prediction: str, targets: Sequence[str], worker: MetricWorker) -> Score:
    """Return the score of ``math_equal``; ``worker`` does the mathematics."""
    order = ("equal", "timeout", "different", "unparsed")
    status = min((_compare(prediction, target, worker) for target in targets), key=order.index, default="different")
    return Score(float(status == "equal"), {"math_status": status})


def _compare(prediction: str, target: str, worker: MetricWorker) -> str:
    # Imported when the first answer is compared: most runs have none.
    from pytest_lmeval.metrics.parts.math_text import (
        for_math_verify,
        has_open_box,
        is_cut_off,
        is_words,
        plain_text,
        stated_answers,
    )
    from pytest_lmeval.metrics.parts.worker import TookTooLong

    if has_open_box(prediction):
        return "unparsed"  # an answer before it is one that the model went on from
    stated = stated_answers(prediction)
    wanted, given = plain_text(stated_answers(target)[0]), [plain_text(each) for each in stated]
    if wanted in given:
        return "equal" if wanted else "unparsed"
    if is_words(wanted) or is_words(given[0]):
        return "different" if is_words(wanted) else "unparsed"
    if is_cut_off(stated[-1]):
        return "unparsed"
    try:
        return str(worker.ask("math_equal", for_math_verify(prediction), for_math_verify(target)))
    except TookTooLong:
        return "timeout"
