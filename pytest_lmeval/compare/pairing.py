"""Which results of two runs may be compared with each other, and which may not, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.functions import changed_functions
from pytest_lmeval.types import ExampleResult

Key = tuple[str, str]
"""Task and id of an example."""
PAIR_BY = ("content", "id")
"""What two results of one task and id must share to be a pair: their content hash, or their scoring hash."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same example in two runs."""

    old: ExampleResult
    new: ExampleResult

    @property
    def key(self) -> Key:
        """Task and id."""
        return self.new.task, self.new.id

    @property
    def old_score(self) -> float:
        """The score of the old run, of an example that has one."""
        return _scored(self.old)

    @property
    def new_score(self) -> float:
        """The score of the new run, of an example that has one."""
        return _scored(self.new)

    @property
    def cluster(self) -> str:
        """The cluster that the example belongs to."""
        return self.new.cluster or self.old.cluster

    @property
    def differs_in_prompt(self) -> bool:
        """Whether the model was asked with another prompt; only where pairs are made by id."""
        return self.old.hash != self.new.hash

    @property
    def worse(self) -> bool:
        """Whether it passed and now does not."""
        return _passed(self.old) and not _passed(self.new)

    @property
    def better(self) -> bool:
        """Whether it did not pass and now does."""
        return _passed(self.new) and not _passed(self.old)


def _passed(result: ExampleResult) -> bool:
    # What was in quarantine then, and is no more, counts as it was scored.
    was_held = result.status == "quarantined" and result.score is not None
    return result.status == "passed" or (was_held and _scored(result) >= result.threshold)


def _scored(result: ExampleResult) -> float:
    if result.score is None:
        raise ValueError(f"{result.task}: {result.id} has no score: it is no part of a pair")
    return result.score


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two runs have in common. All in order of task and id.

    ``pairs`` are scored on both sides, with the same content. ``new`` stands in the new run only, ``removed`` in the
    old one only, ``changed`` in both with different content, or scored by another field. ``measured`` have no score in
    either run: only aggregations score them. ``quarantined`` are so in the new run. ``unscored`` had a score and now
    has none, ``unknown`` had none to compare with. Of the old run's examples, the new one did not select those
    ``unselected``, and those ``left_out`` are of tasks that must not be compared. ``expected`` counts, by task, the old
    run's scored examples that should have a pair. ``before`` holds all of the old run's results.
    """

    pairs: tuple[Pair, ...]
    new: tuple[Key, ...]
    changed: tuple[Pair, ...]
    removed: tuple[Key, ...]
    unscored: tuple[Key, ...]
    unknown: tuple[Key, ...]
    measured: tuple[Key, ...]
    quarantined: tuple[Key, ...]
    unselected: tuple[Key, ...]
    left_out: tuple[Key, ...]
    expected: Mapping[str, int]
    before: Mapping[Key, ExampleResult]

    @property
    def functions(self) -> tuple[str, ...]:
        """The eval functions of pairs whose code is another in the new run."""
        return changed_functions((pair.old, pair.new) for pair in self.pairs)


def pair_up(
    old: Iterable[ExampleResult],
    new: Iterable[ExampleResult],
    left_out: Collection[str],
    outside: Callable[[str, str], bool],
    by: str = "content",
) -> Pairing:
    """Return which results are pairs, ``by`` one of PAIR_BY. Tasks that are ``left_out`` are not looked at.

    ``outside(task, id)`` tells of an example that only the old run has that the new one was not meant to ask it.
    """
    before = {(result.task, result.id): result for result in old}
    after = {(result.task, result.id): result for result in new if result.task not in left_out}
    content = partial(content_of, by=by)
    kinds = {key: _kind(before.get(key), after.get(key), content) for key in sorted(before.keys() | after.keys())}
    for key, kind in kinds.items():
        if key[0] in left_out:
            kinds[key] = "left_out"
        elif kind == "removed" and outside(*key):
            kinds[key] = "unselected"
    expected: dict[str, int] = {}
    for key, kind in kinds.items():
        if kind not in ("left_out", "unselected", "quarantined") and key in before and before[key].score is not None:
            expected[key[0]] = expected.get(key[0], 0) + 1

    def of(kind: str) -> tuple[Key, ...]:
        return tuple(key for key in kinds if kinds[key] == kind)

    return Pairing(
        pairs=tuple(Pair(before[key], after[key]) for key in of("pair")),
        new=of("new"),
        changed=tuple(Pair(before[key], after[key]) for key in of("changed")),
        removed=of("removed"),
        unscored=of("unscored"),
        unknown=of("unknown"),
        measured=of("measured"),
        quarantined=of("quarantined"),
        unselected=of("unselected"),
        left_out=of("left_out"),
        expected=expected,
        before=before,
    )


def content_of(result: ExampleResult, by: str) -> str:
    """Return what makes a result a pair with another one of its task and id, ``by`` one of PAIR_BY."""
    return result.scoring_hash if by == "id" else result.hash


def check_pairing(results: Iterable[ExampleResult], by: str, called: object) -> None:
    """Raise UsageError where ``results``, of a run ``called`` so, lack what pairs are made ``by``."""
    if by == "id" and not all(result.scoring_hash for result in results):
        raise UsageError(
            f"{called}: pairs by id need the scoring_hash of each example, which earlier versions did not write; "
            "renew it: run that state again with this version"
        )


def _kind(old: ExampleResult | None, new: ExampleResult | None, content: Callable[[ExampleResult], str]) -> str:
    if old is None:
        return "new"
    if new is None:
        return "removed"
    if new.status == "quarantined":
        return "quarantined"
    if content(old) != content(new) or _scored_otherwise(old, new):
        return "changed"
    if old.status == new.status == "measured":
        return "measured"
    if old.score is None:
        return "unknown"
    return "pair" if new.score is not None else "unscored"


def _scored_otherwise(old: ExampleResult, new: ExampleResult) -> bool:
    """Tell whether another field of the task's scorers is the score, or only one of the results has such a field."""
    if not (old.is_scored and new.is_scored):
        return False
    if "measured" in (old.status, new.status):
        return old.status != new.status
    return _score_field(old.details) != _score_field(new.details)


def _score_field(details: Mapping[str, Any]) -> object:
    # Of several responses, and of several rows of one, all have the same.
    for name in ("repeats", "rows"):
        parts = details.get(name)
        if isinstance(parts, list) and parts and isinstance(parts[0], Mapping):
            details = parts[0]
    return details.get("score_field")
