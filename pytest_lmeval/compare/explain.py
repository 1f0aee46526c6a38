"""Describe the reasons for a comparison's verdict, and the examples that it compared or skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_lmeval.compare.changes import TaskChange
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.pairing import Key, Pair, Pairing
from pytest_lmeval.compare.retargeted import Retargeted
from pytest_lmeval.records.boardfile import NOT_COMPARED
from pytest_lmeval.text import printable
from pytest_lmeval.types import OVERALL

_ENOUGH = 0.8
_NAMED = 5
_ORDER = ("regression", "inconclusive", "improvement")
_BY_ONE = {"strict": "strict: each such example counts", "exact": "the adapter always gives the same answer"}


def staleness(pairing: Pairing, criteria: Criteria) -> str:
    """Return the reason why the baseline is stale, or an empty string.

    A baseline is stale if no pair exists, or if fewer than 80 % of the expected pairs exist. With ``strict``, it is
    also stale if an eval function's code changed.
    """
    expected, paired = pairing.expected, pairing.paired
    if paired and paired >= _ENOUGH * expected:
        changed = ", ".join(pairing.functions) if criteria.strict else ""
        return f"stale baseline (strict): the test changed too: {changed}" if changed else ""
    if pairing.only_measured:
        count = len(pairing.of("measured"))
        what = f"{count} examples are measured by aggregations only and have no score"
        return f"nothing could be compared: {what}; set floors instead"
    if not expected:
        return "stale baseline: none of its examples could be compared"
    share = f" ({paired / expected:.0%}; at least {_ENOUGH:.0%} are needed)"
    prompts = "; to compare prompts: --lm-pair-by=id" if paired + pairing.reworded >= _ENOUGH * expected else ""
    return f"stale baseline: {paired} of its {expected} examples could be compared{share}{prompts}"


def explain(
    tasks: Sequence[TaskChange],
    pooled: TaskChange,
    pairing: Pairing,
    criteria: Criteria,
    left_out: Mapping[str, str],
) -> tuple[str, ...]:
    """Return printable lines that give the reasons for a comparison's verdict, with the decisive reason first."""
    # With a single task, the overall change equals that task's change.
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
    verdict = "no regression" if row.verdict == "pass" else row.verdict
    text = f"{row.task}: {verdict}: {row.old:.4f} -> {row.new:.4f}, {_points(row.change)} points"
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
    """Return the bounds of a change in points; bounds that exclude 0 read "at least" and "at most".

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
    return [f"{OVERALL}: {len(worse)} example(s) passed before and do not now; {why}: {_named(worse)}"]


def _hardly_compared(tasks: Iterable[TaskChange], pairing: Pairing) -> list[str]:
    lines = []
    for task in tasks:
        expected = pairing.expected_by_task.get(task.task, 0)
        if task.paired < _ENOUGH * expected:
            lines.append(f"{task.task}: only {task.paired} of its {expected} examples in the baseline were compared")
    return lines


def _points(change: float) -> str:
    return f"{100 * change:+.1f}"


def coverage(pairing: Pairing, by_old_targets: Sequence[Retargeted], gone: str = "removed") -> tuple[str, ...]:
    """Return printable lines about the examples skipped for each reason, and about the effect of new targets.

    ``gone`` is the word for examples that the new run lacks.
    """
    kinds = [kind for kind in _kinds(pairing, gone) if kind.keys]
    counted = [_counted(kind, pairing) for kind in kinds]
    total, paired = len(pairing.before), len(pairing.pairs)
    if counted:
        lines = [f"{NOT_COMPARED}{', '.join(counted)}; compared: {paired} of the baseline's {_examples(total)}"]
    else:
        lines = [_all_compared(total)]
    lines += _other_prompts(pairing.pairs)
    for kind in kinds:
        if kind.is_listed:
            lines.append(f"{kind.what}: {_named(sorted(kind.keys, key=lambda key: not pairing.passed_before(key)))}")
    changed = len(pairing.of("changed"))
    if pairing.reworded:
        how = "--lm-pair-by=id (ini: lm_pair_by; of lmeval diff: --pair-by=id)"
        lines.append(f"{pairing.reworded} of {changed} changed differ in the prompt alone: {how} compares them")
    lines += _new_targets(changed, by_old_targets)
    return tuple(printable(line, keep="") for line in lines)


def _named(keys: Sequence[Key]) -> str:
    names = [f"{task}: {id}" for task, id in keys[:_NAMED]]
    return ", ".join(names) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


class _Kind(NamedTuple):
    """Examples skipped for the same reason."""

    keys: Sequence[Key]
    what: str
    had_score: bool = True
    is_listed: bool = True


def _kinds(pairing: Pairing, gone: str) -> tuple[_Kind, ...]:
    return (
        _Kind(pairing.of("changed"), "changed"),
        _Kind(pairing.of("removed"), gone),
        _Kind(pairing.of("unscored"), "not scored"),
        _Kind(pairing.of("unknown"), "without a score in the baseline", had_score=False),
        _Kind(pairing.of("measured"), "measured by aggregations only", had_score=False),
        _Kind(pairing.of("quarantined"), "quarantined"),
        # Another line names the tasks; the list of unselected examples may be as long as the suite.
        _Kind(pairing.of("left_out"), "in tasks that are left out", is_listed=False),
        _Kind(pairing.of("unselected"), "not selected", is_listed=False),
        _Kind(pairing.of("new"), "new", had_score=False),
    )


def _counted(kind: _Kind, pairing: Pairing) -> str:
    text = f"{len(kind.keys)} {kind.what}"
    return f"{text} ({sum(map(pairing.passed_before, kind.keys))} passed before)" if kind.had_score else text


def _all_compared(total: int) -> str:
    if total < 2:
        return "the baseline's one example was compared" if total else "nothing was compared: the baseline is empty"
    return f"all {total} examples of the baseline were compared"


def _new_targets(changed: int, found: Sequence[Retargeted]) -> list[str]:
    if not changed:
        return []
    if not found:
        return [f"0 of {changed} changed examples could be scored with their old targets"]
    lines = [
        f"{len(found)} of {changed} changed examples were also scored with their old targets, for information: "
        f"{sum(each.passed_before for each in found)} passed before, "
        f"{sum(each.passes for each in found)} pass with the new targets, "
        f"{sum(each.passes_by_old_targets for each in found)} would pass with the old targets"
    ]
    for passes, which in ((True, "new"), (False, "old")):
        pairs = [each.pair for each in found if each.passes is passes and each.passes_by_old_targets is not passes]
        lines += [f"pass with the {which} targets only: {_named([pair.key for pair in pairs])}"] if pairs else []
    return lines


def _other_prompts(pairs: Sequence[Pair]) -> list[str]:
    others = [pair for pair in pairs if pair.differs_in_prompt]
    if not others:
        return []
    tasks = Counter(pair.new.task for pair in others)
    where = ", ".join(f"{task} {count}" for task, count in sorted(tasks.items()))
    return [f"paired by id: the prompts of {len(others)} of {_examples(len(pairs))} differ from the baseline: {where}"]


def _examples(count: int) -> str:
    return "1 example" if count == 1 else f"{count} examples"
