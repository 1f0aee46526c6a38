"""Compare answers with targets mathematically."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.types import Score


@metric(package="math_verify", install="pytest-lmeval[math]", binary=True)
def math_equal(prediction: str, targets: Sequence[str], extras: Extras) -> Score:
    r"""Return 1.0 if math-verify finds the prediction's answer equal to the answer in any target, else 0.0.

    ``details.math_status`` is ``equal``, ``timeout``, ``different`` or ``unparsed``. With several targets, the status
    is the first of these four that any target gets. An answer that is cut off, or that is not mathematics and does not
    repeat a target, is ``unparsed``. A target of three or more letters is compared as a word.

    Raises ScoringError if math-verify is needed but not installed, or if the process that runs math-verify fails.
    """
    order = ("equal", "timeout", "different", "unparsed")
    status = min((_compare(prediction, target) for target in targets), key=order.index, default="different")
    return Score(float(status == "equal"), {"math_status": status})


def _compare(prediction: str, target: str) -> str:
    # Imported late: most runs compare no mathematics.
    from pytest_lmeval.metrics.parts import math_text as text
    from pytest_lmeval.metrics.parts.worker import TookTooLong, shared_worker

    if text.has_open_box(prediction):
        return "unparsed"  # the model continued after any earlier answer
    stated = text.stated_answers(prediction)
    wanted, given = text.plain_text(text.stated_answers(target)[0]), [text.plain_text(each) for each in stated]
    if wanted in given:
        return "equal" if wanted else "unparsed"
    if text.is_words(wanted) or text.is_words(given[0]):
        return "different" if text.is_words(wanted) else "unparsed"
    if text.is_cut_off(stated[-1]):
        return "unparsed"
    try:
        sides = text.for_math_verify(prediction), text.for_math_verify(target)
        return str(shared_worker().ask("math_equal", *sides))
    except TookTooLong:
        return "timeout"
