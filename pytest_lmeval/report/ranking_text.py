"""Describe a ranking: the models that are not worse than the best, the shared examples and the unranked models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.compare.decision import SELECTION
from pytest_lmeval.compare.explain import may_be
from pytest_lmeval.report.tables import Row
from pytest_lmeval.report.wording import QUARANTINED

INTERVAL = "interval: confidence interval of the difference; it excludes 0 exactly if that is significant"


def standing_row(standing: Row) -> Row:
    """Return a ranked model's table row; the best model's row has no p-value."""
    return standing if standing["difference"] is not None else {**standing, "p_adjusted": None}


def ranking_remarks(ranking: Mapping[str, Any], *, is_selection: bool = False) -> list[str]:
    """Return the lines below a ranking's table; ``ranking`` holds JSON values."""
    remarks = [f"{each['name']}: not ranked: {each['reason']}" for each in ranking["unranked"]]
    if ranking["reason"]:
        remarks += [ranking["reason"], *(_pair(pair, len(ranking["pairs"])) for pair in ranking["pairs"])]
    else:
        remarks += [_standing(ranking, is_selection=is_selection), _over(ranking), INTERVAL]
    return [*remarks, *ranking["not_scored"]]


def comparison_remarks(comparison: Mapping[str, Any]) -> list[str]:
    """Return the lines below the table of a multi-model run."""
    doubts = [f"{model['label']}: doubtful: {each}" for model in comparison["models"] for each in model["warnings"]]
    not_asked = [f"{label}: not asked: no example of it was selected" for label in comparison.get("not_asked", ())]
    rest = [*doubts, *_quarantined(comparison["models"]), *not_asked]
    if comparison["ranking"] is None:
        return [f"not ranked: {comparison['reason']}", *rest]
    is_selection = any("selection" in model for model in comparison["models"])
    return [*ranking_remarks(comparison["ranking"], is_selection=is_selection), *rest]


def _quarantined(models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines on quarantined examples: one list if it is the same for all models, otherwise one list per model."""
    lists = [model["quarantined"] for model in models]
    if all(each == lists[0] for each in lists):
        yield from _quarantine(lists[0] if lists else ())
        return
    for model in models:
        yield from (f"{model['label']}: {line}" for line in _quarantine(model["quarantined"]))


def _quarantine(entries: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for entry in entries[:QUARANTINED]:
        yield f"quarantined until {entry.get('until')}: {entry['task']}: {entry['id']} ({entry.get('reason')})"
    if len(entries) > QUARANTINED:
        yield f"... and {len(entries) - QUARANTINED} more quarantined"


def _standing(ranking: Mapping[str, Any], *, is_selection: bool) -> str:
    if is_selection:
        return SELECTION
    sure = f"{100 * (1 - ranking['alpha']):g} %"
    return f"not significantly worse than the best ({sure}, Holm): {', '.join(ranking['not_worse'])}"


def _over(ranking: Mapping[str, Any]) -> str:
    shared = sum(ranking["examples"].values())
    tasks = ", ".join(f"{task} {count}" for task, count in ranking["examples"].items())
    of = f" of {ranking['selected']}" if shared < ranking["selected"] else ""
    return f"scores are over the {shared}{of} example(s) that all ranked models have a score for: {tasks}"


def _pair(pair: Mapping[str, Any], pairs: int) -> str:
    ends = f" ({may_be(pair['interval'])})" if pair["interval"] else ""
    over = f" adjusted for {pairs} pairs" if pairs > 1 else ""
    return (
        f"{pair['one']} vs. {pair['other']}: {100 * pair['difference']:+.1f} points{ends} on {pair['n']} examples, "
        f"p {pair['p_adjusted']:.2g}{over}"
    )
