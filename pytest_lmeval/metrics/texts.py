"""Score a text as 1.0 or 0.0 by the patterns, parts or last number that it contains.

Case matters unless ``extras.ignore_case`` is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import Score

__all__ = ["contains_all", "contains_any", "number", "regex", "starts_with"]

_MOST_DIGITS = 400
# A comma separates thousands only if each group after it has three digits.
_NUMBER = re.compile(
    r"(?<![\w.])([+\-\u2212]?)[$\u20ac\u00a3\u00a5]?([+\-\u2212]?)"
    r"(\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)([eE][+\-]?\d{1,3})?(?!\w)"
)


def check_patterns(targets: Sequence[str], extras: Extras) -> None:
    """Raise RecordRefused for a target that is not a regular expression, and for an invalid ``ignore_case``."""
    from pytest_lmeval.metrics.parts.patterns import compiled

    _check_flag(extras)
    for place, pattern in enumerate(targets):
        try:
            compiled(pattern)
        except ValueError as error:
            detail = f"expected regular expressions, got {pattern!r:.80} at index {place}: {error}"
            raise RecordRefused("bad_value", "targets", detail) from None


def check_parts(targets: Sequence[str], extras: Extras) -> None:
    """Raise RecordRefused for an empty target, which every text contains, and for an invalid ``ignore_case``."""
    _check_flag(extras)
    if "" in targets:
        raise RecordRefused("bad_value", "targets", "every text contains an empty target; give a text to look for")


def check_numbers(targets: Sequence[str], extras: Extras) -> None:
    """Raise RecordRefused for a target without a number, and for a tolerance that is negative or not a number."""
    for place, target in enumerate(targets):
        if last_number(target) is None:
            detail = f"expected a number in each target, got {target!r:.80} at index {place}"
            raise RecordRefused("bad_value", "targets", detail)
    for name in ("tolerance", "relative"):
        given = extras.get(name, 0)
        if not is_number(given) or given < 0:
            raise RecordRefused("bad_value", f"extras.{name}", f"expected a number of at least 0, got {given!r:.80}")


@metric(extras=("ignore_case",), check=check_patterns, binary=True)
def regex(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if any target, a Python regular expression, matches anywhere in the prediction, else 0.0.

    A search that may be slow runs in a separate process. If the process takes more than five seconds of CPU time, it is
    killed, and the metric raises TookTooLong, a ScoringError.
    """
    from pytest_lmeval.metrics.parts.patterns import compiled

    flags = re.IGNORECASE if extras.get("ignore_case") else 0
    return float(any(compiled(pattern, flags).search(prediction) for pattern in targets))


@metric(extras=("ignore_case",), check=check_parts, binary=True)
def contains_all(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction contains every target, else 0.0."""
    fold = _folded(extras)
    text = fold(prediction)
    return float(all(fold(target) in text for target in targets))


@metric(extras=("ignore_case",), check=check_parts, binary=True)
def contains_any(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction contains any target, else 0.0."""
    fold = _folded(extras)
    text = fold(prediction)
    return float(any(fold(target) in text for target in targets))


@metric(extras=("ignore_case",), check=check_parts, binary=True)
def starts_with(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction starts with any target, ignoring leading whitespace, else 0.0."""
    fold = _folded(extras)
    text = fold(prediction.lstrip())
    return float(any(text.startswith(fold(target)) for target in targets))


@metric(extras=("tolerance", "relative"), check=check_numbers, binary=True)
def number(prediction: str, targets: Sequence[str], extras: Extras) -> Score:
    """Return 1.0 if the last number in the prediction equals the last number in any target, else 0.0.

    A number may have a sign, commas between thousands, decimals and an exponent. A currency sign before the number and
    a percent sign after it have no effect. Two numbers are equal if they differ by at most ``extras.tolerance``, or by
    at most ``extras.relative`` times the target; both extras are 0 by default. A prediction without a number counts as
    unparsed.
    """
    given = last_number(prediction)
    if given is None:
        return Score(0.0, unparsed=True)
    wanted = [each for target in targets if (each := last_number(target)) is not None]
    return Score(float(any(_is_near(given, each, extras) for each in wanted)), {"number": str(given)})


def last_number(text: str) -> Decimal | None:
    """Return the last number in ``text``, or None if there is no number or the last one has more than 400 digits."""
    found = None
    for match in _NUMBER.finditer(text):
        found = match
    if found is None or len(found[3]) > _MOST_DIGITS:
        return None
    is_negative = (found[1] or found[2]) in ("-", "\u2212")
    value = Decimal(found[3].replace(",", "") + (found[4] or ""))
    return -value if is_negative else value


def _is_near(given: Decimal, wanted: Decimal, extras: Extras) -> bool:
    allowed = max(_exact(extras.get("tolerance", 0)), _exact(extras.get("relative", 0)) * abs(wanted))
    return abs(given - wanted) <= allowed


def _exact(value: float) -> Decimal:
    # Convert the text of the number: 0.1 is a tenth, not the nearest binary fraction.
    return Decimal(repr(value))


def _folded(extras: Extras) -> Callable[[str], str]:
    return str.casefold if extras.get("ignore_case") else str


def _check_flag(extras: Extras) -> None:
    given = extras.get("ignore_case", False)
    if not isinstance(given, bool):
        raise RecordRefused("bad_type", "extras.ignore_case", f"expected true or false, got {given!r:.80}")
