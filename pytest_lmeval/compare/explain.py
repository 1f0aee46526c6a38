"""Word the reasons of a comparison's verdict, a line each, the decisive one first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_lmeval.compare.changes import TaskChange
from pytest_lmeval.compare.coverage import named
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.pairing import Pair, Pairing
from pytest_lmeval.text import printable
from pytest_lmeval.types import OVERALL

_ENOUGH = 0.8
_ORDER = ("regression", "inconclusive", "improvement")
_WORDS = {
    "regression": "regression: ",
    "inconclusive": "inconclusive: ",
    "improvement": "improvement: ",
    "pass": "no regression: ",
}
_BY_ONE = {"strict": "strict: each such example counts", "exact": "the adapter always gives the same answer"}


def staleness(pairing: Pairing, criteria: Criteria) -> str:
    """Return why the baseline is stale, or "".

    It is if fewer than 80 % of the expected pairs exist, or none, or, under ``strict``, if eval functions changed.
    """
    expected, paired = pairing.expected, pairing.paired
    if paired and paired >= _ENOUGH * expected:
        changed = ", ".join(pairing.functions) if criteria.strict else ""
        return f"stale baseline (strict): the test changed too: {changed}; update it" if changed else ""
    if pairing.only_measured:
        count = len(pairing.of("measured"))
        what = f"{count} examples are measured by aggregations only and have no score"
        return f"nothing could be compared: {what}; set floors instead"
    if not expected:
        return "stale baseline: none of its examples could be compared; update it"
    share = f" ({paired / expected:.0%}; at least {_ENOUGH:.0%} are needed)"
    prompts = ", or compare prompts with --lm-pair-by=id" if paired + pairing.reworded >= _ENOUGH * expected else ""
    return f"stale baseline: {paired} of its {expected} examples could be compared{share}; update it{prompts}"


def explain(
    tasks: Sequence[TaskChange],
    pooled: TaskChange,
    pairing: Pairing,
    criteria: Criteria,
    left_out: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the reasons of a comparison's verdict, each a printable line: the decisive ones, then tasks left out."""
    # With a single task the overall change is the task's.
    compared = [change for change in tasks if change.paired]
    rows = [*compared, pooled] if len(compared) != 1 else compared
    spoken = [row for verdict in _ORDER for row in rows if row.verdict == verdict]
    rest = [rows[-1]] if rows[-1].verdict == "pass" else []
    lines = [staleness(pairing, criteria), *(_row(row, criteria) for row in [*spoken, *rest])]
    lines += _flips(pairing.pairs, criteria)
    lines += _hardly_compared(tasks, pairing)
    lines += [f"{task}: left out: {why}" for task, why in sorted(left_out.items())]
    return tuple(printable(line, keep="") for line in lines if line)


def _row(row: TaskChange, criteria: Criteria) -> str:
    text = f"{row.task}: {_WORDS[row.verdict]}{row.old:.4f} -> {row.new:.4f}, {_points(row.change)} points"
    text += f" ({may_be(row.interval)})" if row.interval is not None else ""
    text += f", {row.worse} worse and {row.better} better of {row.paired}"
    if row.verdict != "improvement":
        text += _p(row, criteria)
    if row.decided_by and not _leaves_out_zero(row.interval):
        text += f"; single examples decide ({_BY_ONE[row.decided_by]}), not the test"
    if row.verdict in ("inconclusive", "pass"):
        text += f"; {_detectable(row)}"
    if row.verdict == "pass" and row.p_adjusted <= criteria.alpha:
        text += f"; within the tolerance of {100 * criteria.tolerance:.1f} points"
    return text


def _p(row: TaskChange, criteria: Criteria) -> str:
    text, over = f"; p {row.p:.2g}", f" over {criteria.models} models" if criteria.models > 1 else ""
    if row.verdict == "inconclusive" and row.p_alone is not None and row.p_alone <= criteria.alpha:
        return (
            f"{text}; of this model alone it would be a regression (p {row.p_alone:.2g});{over} p is "
            f"{row.p_adjusted:.2g}, not significant"
        )
    return text + (f", {row.p_adjusted:.2g} adjusted{over}" if row.p_adjusted > row.p else "")


def may_be(ends: tuple[float, float]) -> str:
    """Return the bounds of a change in points: "at least" and "at most" if they exclude 0.

    >>> [may_be((-0.588, -0.104)), may_be((-0.356, 0.258)), may_be((-0.3, -0.0001))]
    ['at least 10.4, at most 58.8', '-35.6 to +25.8', 'below 0, at most 30.0']
    """
    if not _leaves_out_zero(ends):
        return f"{_points(ends[0])} to {_points(ends[1])}"
    least, most = sorted(100 * abs(end) for end in ends)
    side = "below" if ends[1] < 0 else "above"
    return f"{f'at least {least:.1f}' if round(least, 1) else f'{side} 0'}, at most {most:.1f}"


def _leaves_out_zero(ends: tuple[float, float] | None) -> bool:
    return ends is not None and (ends[1] < 0 or ends[0] > 0)


def _detectable(row: TaskChange) -> str:
    if row.detectable is None:
        return "too few pairs to detect any drop with 80 % power"
    return f"smallest drop this run would detect with 80 % power: {100 * row.detectable:.1f} points"


def _flips(pairs: Iterable[Pair], criteria: Criteria) -> list[str]:
    worse = [pair.key for pair in pairs if criteria.is_enough(pair)]
    if not worse:
        return []
    why = _BY_ONE["strict" if criteria.strict else "exact"]
    return [f"{OVERALL}: {len(worse)} example(s) passed before and do not now; {why}: {named(worse)}"]


def _hardly_compared(tasks: Iterable[TaskChange], pairing: Pairing) -> list[str]:
    lines = []
    for task in tasks:
        expected = pairing.expected_by_task.get(task.task, 0)
        if task.paired < _ENOUGH * expected:
            lines.append(f"{task.task}: only {task.paired} of its {expected} examples in the baseline were compared")
    return lines


def _points(change: float) -> str:
    return f"{100 * change:+.1f}"
