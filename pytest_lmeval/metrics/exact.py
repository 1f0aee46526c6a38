"""Score equality, containment or a choice as 1.0 or 0.0."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.metrics.parts.declare import Extras, metric


@metric(binary=True)
def exact_match(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction equals any target, ignoring surrounding whitespace, else 0.0."""
    stripped = prediction.strip()
    return 1.0 if any(stripped == target.strip() for target in targets) else 0.0


@metric(binary=True)
def accuracy(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the score of ``exact_match``; its mean over a task is the task's accuracy."""
    return exact_match(prediction, targets, extras)


@metric(binary=True)
def completion_accuracy(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction equals any target exactly, else 0.0.

    This metric neither strips nor normalizes the text, for tasks that clean the completion themselves.
    """
    return 1.0 if prediction in targets else 0.0


@metric(binary=True)
def exact_match_normalized(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction equals any target, ignoring case and extra whitespace, else 0.0."""
    normalized = _normalize(prediction)
    return 1.0 if any(normalized == _normalize(target) for target in targets) else 0.0


@metric(binary=True)
def substring_contains(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if any target occurs in the prediction, ignoring case and extra whitespace, else 0.0.

    A blank target never counts, because every text contains it.
    """
    normalized = _normalize(prediction)
    wanted = filter(None, map(_normalize, targets))
    return float(any(target in normalized for target in wanted))


@metric(binary=True)
def multiple_choice(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction starts with the first character of any target, ignoring case, else 0.0.

    Leading whitespace has no effect, and a blank prediction or target never matches.
    """
    choice = _first_character(prediction)
    return float(choice != "" and any(choice == _first_character(target) for target in targets))


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())


def _first_character(text: str) -> str:
    return text.strip()[:1].upper()
