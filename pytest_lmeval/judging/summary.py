"""Summarize a judge's replies: the number that could not be read, and the agreement with people's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def judge_note(
    entries: Sequence[Mapping[str, Any]], prompt_hash: str, unread: int, verdicts: Sequence[tuple[Any, Any]]
) -> dict[str, Any]:
    """Return the note on the board about a judge and its prompt.

    ``entries`` are the records of the judge's replies. ``verdicts`` lists pairs of the judge's and a person's verdict,
    with None for a missing verdict. ``unread`` is the number of examples that are errors because of the judge's
    replies; the number of rows includes them.
    """
    pairs = [(person, judge) for judge, person in verdicts if judge is not None and person not in (None, "")]
    return {
        "judge": next((entry["judge"] for entry in entries), ""),
        "prompt_hash": prompt_hash,
        "rows": len(verdicts) + unread,
        "repaired": sum(bool(entry["repaired"]) for entry in entries),
        "unparsed": sum(judge is None for judge, _ in verdicts) + unread,
        **_agreement([_as_text(person) for person, _ in pairs], [_as_text(judge) for _, judge in pairs]),
    }


def measures_of(notes: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return ``NAME.agreement``, a share, and ``NAME.kappa``, Cohen's kappa in [-1, 1], for each judge."""
    kinds = ("agreement", "kappa")
    return {
        f"{name}.{kind}": note[kind] for name, note in notes.items() for kind in kinds if note.get(kind) is not None
    }


def _agreement(people: Sequence[str], judged: Sequence[str]) -> dict[str, Any]:
    if not people:
        return {}
    return {
        "labelled": len(people),
        "agreement": sum(a == b for a, b in zip(people, judged, strict=True)) / len(people),
        "kappa": cohen_kappa(people, judged),
        "confusion": confusion(people, judged),
    }


def _as_text(label: Any) -> str:
    """Return a label as text; 4, 4.0 and "4" are the same label."""
    if isinstance(label, bool):
        return str(label).lower()
    try:
        return f"{float(label):g}"
    except (TypeError, ValueError):
        return str(label).strip()


def confusion(true: Sequence[str], predicted: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return ``{label: {predicted label: count}}`` without zeros, sorted by label."""
    table: dict[str, Counter[str]] = {label: Counter() for label in sorted(set(true))}
    for label, guess in zip(true, predicted, strict=True):
        table[label][guess] += 1
    return {label: dict(sorted(row.items())) for label, row in table.items()}


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Return the agreement beyond chance, in [-1, 1], of two people who labelled the same rows.

    The formula is ``(observed - expected) / (1 - expected)`` (Cohen, "A Coefficient of Agreement for Nominal Scales",
    1960). Return None if both people gave all rows the same label, because chance would give the same agreement.
    """
    n = len(first)
    if not n:
        return None
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    left, right = Counter(first), Counter(second)
    expected = sum(left[label] * right[label] for label in left) / (n * n)
    return None if expected == 1.0 else (observed - expected) / (1.0 - expected)
