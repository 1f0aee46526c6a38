"""Whether an answer is the same mathematics as a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.types import Score


@metric(package="sympy", install="pytest-lmeval[math]")
def math_equal(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> Score:
    r"""Return 1.0 if the answer in the prediction equals that in any target, else 0.0.

    ``details.math_status`` is ``equal``, ``different``, ``unparsed`` (the answer is no mathematics, and no target
    word for word), ``undecided`` or ``timeout``, of the target that came nearest. Numbers are compared exactly,
    or to six digits where one is written with a decimal point. Lists and sets have no order, tuples and
    intervals do; units count where both sides have one; ``50%`` equals 50 and 0.5.

    Raises ScoringError where algebra is needed and sympy is not installed, or the process that does it fails.
    """
    # Imported when the first answer is compared: the grammar takes as long as all other metrics together.
    from pytest_lmeval.metrics.parts.math_compare import math_score
    from pytest_lmeval.metrics.parts.worker import shared_worker

    return math_score(prediction, targets, shared_worker())
