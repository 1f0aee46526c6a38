"""Two runs over the same examples: what changed, and whether it got worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from pytest_lmeval.compare.changes import Criteria, TaskChange, Verdict, overall_change, task_changes
from pytest_lmeval.compare.coverage import coverage
from pytest_lmeval.compare.explain import explain, is_only_measured, staleness
from pytest_lmeval.compare.pairing import Key, Pair, pair_up
from pytest_lmeval.compare.retargeted import Retargeted, retargeted
from pytest_lmeval.leaderboard.functions import is_function, said_of
from pytest_lmeval.leaderboard.responses import shown_response, wanted_of
from pytest_lmeval.types import ExampleResult

Flip = Pair
"""An example that passes in one of the runs only."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_DEFAULT = Criteria()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that two runs' results say about each other; all lists in order of task and id.

    ``worse`` passed and now do not, ``better`` the opposite. ``new``, ``changed``, ``removed`` and ``unscored``
    examples, as (task, id), have no pair; those that ``passed_before`` are named. ``retargeted`` are the changed ones
    that were scored by their old targets, too. ``other_prompts`` counts, by task, the pairs that were asked with
    different prompts. ``left_out`` tells why tasks were not looked at. ``paired`` of
    ``expected`` examples of the old run, those that were scored and that the new run was to ask, have a pair.
    ``verdict`` is the first that holds of ``stale``, ``regression``, ``inconclusive``, ``improvement`` and ``pass``;
    ``reasons`` hold those of all of them, ``coverage`` says what was compared and what was not. ``only_measured`` says
    that nothing could be compared because no example has a score. ``functions`` are the eval functions whose code
    changed between the runs.
    """

    tasks: tuple[TaskChange, ...]
    pooled: TaskChange
    worse: tuple[Flip, ...]
    better: tuple[Flip, ...]
    new: tuple[Key, ...]
    changed: tuple[Key, ...]
    removed: tuple[Key, ...]
    unscored: tuple[Key, ...]
    passed_before: frozenset[Key]
    retargeted: tuple[Retargeted, ...]
    left_out: Mapping[str, str]
    paired: int
    expected: int
    verdict: Verdict
    reasons: tuple[str, ...]
    coverage: tuple[str, ...]
    criteria: Criteria
    only_measured: bool = False
    other_prompts: Mapping[str, int] = field(default_factory=dict)
    quarantined: tuple[Key, ...] = ()
    functions: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values; flips with prompt, targets and what was said in both runs."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "coverage": list(self.coverage),
            "criteria": asdict(self.criteria),
            "paired": self.paired,
            "expected": self.expected,
            "tasks": [_change_record(change) for change in self.tasks],
            "pooled": _change_record(self.pooled),
            "worse": [_flip_record(flip) for flip in self.worse],
            "better": [_flip_record(flip) for flip in self.better],
            "new": [_key_record(key) for key in self.new],
            "changed": self._old_records(self.changed),
            "removed": self._old_records(self.removed),
            "unscored": self._old_records(self.unscored),
            "retargeted": [each.to_json() for each in self.retargeted],
            "left_out": dict(self.left_out),
            **({"quarantined": [_key_record(key) for key in self.quarantined]} if self.quarantined else {}),
            **({"other_prompts": dict(self.other_prompts)} if self.other_prompts else {}),
            **({"functions": list(self.functions)} if self.functions else {}),
        }

    def _old_records(self, keys: Sequence[Key]) -> list[dict[str, Any]]:
        return [{**_key_record(key), "passed_before": key in self.passed_before} for key in keys]


def compare(
    old: Sequence[ExampleResult],
    new: Sequence[ExampleResult],
    criteria: Criteria = _DEFAULT,
    *,
    left_out: Mapping[str, str] = _NOTHING,
    outside: Callable[[str, str], bool] = lambda task, id: False,
    gone: str = "removed",
) -> Comparison:
    """Return the paired comparison of a run with an older one, the order of their results being of no matter.

    Results pair by task, id and equal content hash, or scoring hash, as ``criteria`` say, where both have a score.
    ``left_out`` names tasks that must not be compared, and why. ``outside(task, id)`` tells that an example of the old
    run which the new one lacks was not selected: it is neither removed nor expected. ``gone`` is the word for the
    others that the new one lacks.
    """
    pairing = pair_up(old, new, left_out, outside, criteria.pair_by)
    changed = tuple(pair.key for pair in pairing.changed)
    by_old_targets = retargeted(pairing.changed)
    keys = (
        *pairing.quarantined,
        *pairing.new,
        *changed,
        *pairing.removed,
        *pairing.unscored,
        *pairing.unknown,
        *pairing.measured,
    )
    tasks = task_changes((task for task, _ in keys), pairing.pairs, criteria)
    pooled = overall_change(pairing.pairs, criteria)
    return Comparison(
        tasks=tasks,
        pooled=pooled,
        worse=tuple(pair for pair in pairing.pairs if pair.worse),
        better=tuple(pair for pair in pairing.pairs if pair.better),
        new=pairing.new,
        changed=changed,
        removed=pairing.removed,
        unscored=pairing.unscored,
        passed_before=frozenset(key for key, result in pairing.before.items() if result.status == "passed"),
        retargeted=by_old_targets,
        left_out=dict(left_out),
        paired=len(pairing.pairs),
        expected=sum(pairing.expected.values()),
        verdict="stale" if staleness(pairing, criteria) else _first([*tasks, pooled]),
        reasons=explain(tasks, pooled, pairing, criteria, left_out),
        coverage=coverage(pairing, by_old_targets, gone),
        criteria=criteria,
        only_measured=is_only_measured(pairing),
        quarantined=pairing.quarantined,
        other_prompts=dict(Counter(pair.new.task for pair in pairing.pairs if pair.differs_in_prompt)),
        functions=pairing.functions,
    )


def _first(changes: Sequence[TaskChange]) -> Verdict:
    verdicts: tuple[Verdict, ...] = ("regression", "inconclusive", "improvement")
    found = {change.verdict for change in changes}
    return next((verdict for verdict in verdicts if verdict in found), "pass")


def _change_record(change: TaskChange) -> dict[str, Any]:
    return asdict(change) | {"interval": None if change.interval is None else list(change.interval)}


def _flip_record(flip: Flip) -> dict[str, Any]:
    return {
        "task": flip.new.task,
        "id": flip.new.id,
        "line": flip.new.line,
        "prompt": flip.new.prompt or flip.old.prompt,
        **({"old_prompt": flip.old.prompt} if flip.differs_in_prompt else {}),
        "targets": list(wanted_of(flip.new)),
        "old": _answer_record(flip.old),
        "new": _answer_record(flip.new),
    }


def _answer_record(result: ExampleResult) -> dict[str, Any]:
    if is_function(result):
        # It has no one answer: what it says for itself stands for that.
        return {"output": None, "prediction": said_of(result), "score": result.score, "status": result.status}
    number = shown_response(result)
    return {
        "output": result.outputs[number] if result.outputs else None,
        "prediction": result.predictions[number] if result.predictions else None,
        "score": result.score,
        "status": result.status,
    }


def _key_record(key: Key) -> dict[str, str]:
    return {"task": key[0], "id": key[1]}
