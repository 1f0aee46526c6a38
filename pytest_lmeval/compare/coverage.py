"""Describe which examples a comparison covers, and why it skips the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_lmeval.records.boardfile import NOT_COMPARED
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.compare.pairing import Key, Pair, Pairing
    from pytest_lmeval.compare.retargeted import Retargeted

_NAMED = 5


def coverage(pairing: Pairing, by_old_targets: Sequence[Retargeted], gone: str = "removed") -> tuple[str, ...]:
    """Return printable lines: the skipped examples by reason, and the effect of new targets.

    ``gone`` is the word for examples that are missing from the new run.
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
            lines.append(f"{kind.what}: {named(sorted(kind.keys, key=lambda key: not pairing.passed_before(key)))}")
    if pairing.reworded:
        how = "--lm-pair-by=id (ini: lm_pair_by; of lmeval diff: --pair-by=id)"
        lines.append(
            f"{pairing.reworded} of {len(pairing.changed)} changed differ in the prompt alone: {how} compares them"
        )
    lines += _new_targets(len(pairing.changed), by_old_targets)
    return tuple(printable(line, keep="") for line in lines)


def named(keys: Sequence[Key]) -> str:
    """Return the names of the first five examples, and the number of the others."""
    names = [f"{task}: {id}" for task, id in keys[:_NAMED]]
    return ", ".join(names) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


class _Kind(NamedTuple):
    """Examples that were skipped for one reason."""

    keys: Sequence[Key]
    what: str
    had_score: bool = True
    is_listed: bool = True


def _kinds(pairing: Pairing, gone: str) -> tuple[_Kind, ...]:
    return (
        _Kind(pairing.changed, "changed"),
        _Kind(pairing.removed, gone),
        _Kind(pairing.unscored, "not scored"),
        _Kind(pairing.of("unknown"), "without a score in the baseline", had_score=False),
        _Kind(pairing.of("measured"), "measured by aggregations only", had_score=False),
        _Kind(pairing.of("quarantined"), "quarantined"),
        # The tasks have a line of their own; the list of unselected examples may be as long as the suite.
        _Kind(pairing.of("left_out"), "in tasks that are left out", is_listed=False),
        _Kind(pairing.of("unselected"), "not selected", is_listed=False),
        _Kind(pairing.new, "new", had_score=False),
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
        only = [each.key for each in found if each.passes is passes and each.passes_by_old_targets is not passes]
        lines += [f"pass with the {which} targets only: {named(only)}"] if only else []
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
