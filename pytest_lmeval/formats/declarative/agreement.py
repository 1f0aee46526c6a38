"""How far a judge can be believed: whether its replies could be read, and whether people say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.formats.declarative.aggregations import cohen_kappa, confusion
from pytest_lmeval.formats.declarative.scoring.judges import JudgingScorer
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.judged import UNREAD


def judge_notes(
    scorers: Sequence[Scorer], rows: Sequence[Mapping[str, Any]], errors: Sequence[str] = ()
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return agreement as metrics, and ``{"judges": {scorer: ...}}`` with all that is known of each judge.

    The metrics are ``KEY.agreement``, a share, and ``KEY.kappa``, Cohen's, in [-1, 1], where rows have a human label.
    ``errors`` are those of the rows that have no score: a reply that cannot be read may be why.
    """
    metrics: dict[str, float] = {}
    notes: dict[str, Any] = {}
    for scorer in scorers:
        if isinstance(scorer, JudgingScorer):
            notes[scorer.key] = {**_replies(scorer, rows, errors), **_agreement(scorer, rows)}
            metrics |= {f"{scorer.key}.{name}": notes[scorer.key][name] for name in _numbers(notes[scorer.key])}
    return metrics, {"judges": notes} if notes else {}


def _numbers(note: Mapping[str, Any]) -> list[str]:
    return [name for name in ("agreement", "kappa") if note.get(name) is not None]


def _replies(scorer: JudgingScorer, rows: Sequence[Mapping[str, Any]], errors: Sequence[str]) -> dict[str, Any]:
    entries = [entry for row in rows for entry in row.get("judge", ()) if entry["scorer"] == scorer.key]
    judged = [row["scorers"][scorer.key] for row in rows if scorer.key in row["scorers"]]
    unread = sum(error.startswith(f"scorer {scorer.key}: {UNREAD}") for error in errors)
    return {
        "judge": next((entry["judge"] for entry in entries), ""),
        "prompt_hash": scorer.prompt_hash,
        "rows": len(judged) + unread,
        "repaired": sum(entry["repaired"] for entry in entries),
        "unparsed": sum(fields.get(_verdict(scorer)) is None for fields in judged) + unread,
    }


def _agreement(scorer: JudgingScorer, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fields = [row["scorers"][scorer.key] for row in rows if scorer.key in row["scorers"]]
    pairs = [(each["human_label"], each[_verdict(scorer)]) for each in fields if _has_both(each, _verdict(scorer))]
    if not pairs:
        return {}
    people, judged = [_label(person) for person, _ in pairs], [_label(judge) for _, judge in pairs]
    return {
        "labelled": len(pairs),
        "agreement": sum(a == b for a, b in zip(people, judged, strict=True)) / len(pairs),
        "kappa": cohen_kappa(people, judged),
        "confusion": confusion(people, judged),
    }


def _verdict(scorer: JudgingScorer) -> str:
    return "raw_score" if "raw_score" in scorer.fields else "label"


def _has_both(fields: Mapping[str, Any], verdict: str) -> bool:
    return fields.get("human_label") not in (None, "") and fields.get(verdict) is not None


def _label(value: Any) -> str:
    """Return a label as text; 4, 4.0 and "4" are the same one."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value).strip()
