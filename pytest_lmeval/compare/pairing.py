"""Pair the results of two runs, and classify the examples that form no pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import FUNCTION, METRIC
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.leaderboard.rows import TaskInfo, in_data
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.records.runfile import RunFile

Key = tuple[str, str]
"""The task and the id of an example."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same example in two runs."""

    old: ExampleResult
    new: ExampleResult

    @property
    def key(self) -> Key:
        """The task and the id of the example."""
        return self.new.task, self.new.id

    @property
    def old_score(self) -> float:
        """The score in the old run; raise ValueError if the example has no score."""
        return self._score(self.old)

    @property
    def new_score(self) -> float:
        """The score in the new run; raise ValueError if the example has no score."""
        return self._score(self.new)

    @property
    def cluster(self) -> str:
        """The example's cluster."""
        return self.new.cluster or self.old.cluster

    @property
    def row(self) -> str:
        """The task or named score that the pair counts for."""
        return self.new.task

    @property
    def differs_in_prompt(self) -> bool:
        """True if the prompts differ; only pairing by id allows this."""
        return self.old.hash != self.new.hash

    @property
    def worse(self) -> bool:
        """True if the example passed only in the old run."""
        return self._passes(self.old) and not self._passes(self.new)

    @property
    def better(self) -> bool:
        """True if the example passed only in the new run."""
        return self._passes(self.new) and not self._passes(self.old)

    def _score(self, result: ExampleResult) -> float:
        if result.score is None:
            raise ValueError(f"{result.task}: {result.id} has no score, so it cannot form a pair")
        return result.score

    def _passes(self, result: ExampleResult) -> bool:
        # The status of a quarantined example does not say whether it passed, so compare its score with the threshold.
        return result.status == "passed" or (result.status == "quarantined" and reaches(result))


@dataclass(frozen=True, slots=True)
class Pairing:
    """The examples of two runs, sorted into kinds.

    A ``pair`` has a score and the same content in both runs. A ``new`` example is only in the new run, and a
    ``removed`` one only in the old run. A ``changed`` example has other content in the new run, or its score comes from
    another field. A ``measured`` example is scored only by aggregations. A ``quarantined`` example is in quarantine in
    the new run. The new run has no score for an ``unscored`` example, and the old run has none for an ``unknown``
    example. The new run did not select an ``unselected`` example. A ``left_out`` example's task must not be compared.

    ``before`` and ``after`` are the results of the old and the new run; ``after`` omits tasks that are left out.
    ``expected_by_task`` counts the scored examples of the old run that should form pairs.
    """

    kinds: Mapping[Key, str]
    before: Mapping[Key, ExampleResult]
    after: Mapping[Key, ExampleResult]
    pairs: tuple[Pair, ...]
    expected_by_task: Mapping[str, int]

    def of(self, kind: str) -> tuple[Key, ...]:
        """Return the examples of one kind, in the order of the data."""
        keys = (key for key, found in self.kinds.items() if found == kind)
        return tuple(sorted(keys, key=lambda key: in_data(self.after.get(key) or self.before[key])))

    def passed_before(self, key: Key) -> bool:
        """Return True if an example passed in the old run."""
        return key in self.before and self.before[key].status == "passed"

    @property
    def paired(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    @property
    def expected(self) -> int:
        """The number of examples in the old run that should form pairs."""
        return sum(self.expected_by_task.values())

    @property
    def worse(self) -> tuple[Pair, ...]:
        """The pairs that passed only in the old run, in the order of the data."""
        return tuple(sorted((pair for pair in self.pairs if pair.worse), key=lambda pair: in_data(pair.new)))

    @property
    def better(self) -> tuple[Pair, ...]:
        """The pairs that passed only in the new run, in the order of the data."""
        return tuple(sorted((pair for pair in self.pairs if pair.better), key=lambda pair: in_data(pair.new)))

    @property
    def changed_pairs(self) -> tuple[Pair, ...]:
        """The results of both runs for each changed example."""
        return tuple(Pair(self.before[key], self.after[key]) for key in self.of("changed"))

    @property
    def reworded(self) -> int:
        """The number of changed examples that pairing by id would compare, because only the prompt changed."""
        return sum(
            pair.old.scoring_hash == pair.new.scoring_hash != "" and not _differ_in_score_field(pair.old, pair.new)
            for pair in self.changed_pairs
        )

    @property
    def only_measured(self) -> bool:
        """True if only aggregations score the examples, so that updating the baseline would not help."""
        return bool(self.of("measured")) and not self.pairs and not self.expected

    @property
    def functions(self) -> tuple[str, ...]:
        """The paired examples' eval functions whose code differs between the two runs."""
        codes = [(pair.new.task, _code(pair.old), _code(pair.new)) for pair in self.pairs]
        found = {(task, new[0] or old[0]) for task, old, new in codes if old[1] != new[1]}
        of = Counter(name for _, name in found)
        return tuple(sorted(name if of[name] == 1 else f"{name} ({task})" for task, name in found))


def pair_up(
    old: Iterable[ExampleResult],
    new: Iterable[ExampleResult],
    left_out: Collection[str],
    outside: Callable[[str, str], bool],
    by: str = "content",
) -> Pairing:
    """Pair the results of all tasks except the tasks in ``left_out``; ``by`` is one of PAIR_BY.

    ``outside(task, id)`` returns True if an example of the old run was not selected in the new run.
    """
    before = {(result.task, result.id): result for result in old}
    after = {(result.task, result.id): result for result in new if result.task not in left_out}

    def kind_of(key: Key) -> str:
        if key[0] in left_out:
            return "left_out"
        kind = _kind(before.get(key), after.get(key), by)
        return "unselected" if kind == "removed" and outside(*key) else kind

    kinds = {key: kind_of(key) for key in sorted(before.keys() | after.keys())}
    expected = Counter(
        key[0]
        for key, kind in kinds.items()
        if kind not in ("left_out", "unselected", "quarantined") and key in before and before[key].score is not None
    )
    pairs = tuple(Pair(before[key], after[key]) for key, kind in kinds.items() if kind == "pair")
    return Pairing(kinds, before, after, pairs, expected)


def content_of(result: ExampleResult, by: str) -> str:
    """Return the hash that two results must share to form a pair; ``by`` is one of PAIR_BY."""
    return result.scoring_hash if by == "id" else result.hash


def check_pairing(run: RunFile, by: str, called: object) -> None:
    """Raise UsageError if a run lacks hashes or ids that pairing needs; the message calls the run ``called``."""
    if by != "id":
        return
    if not all(result.scoring_hash for result in run.results or ()):
        raise UsageError(
            f"{called}: pairs by id need the scoring_hash of each example, which earlier versions did not write; "
            "to renew it, run that state again with this version"
        )
    check_ids(run.infos.values(), called)


def check_ids(infos: Iterable[TaskInfo], called: object) -> None:
    """Raise UsageError if a task's rows have no ids, because a new row would renumber other rows."""
    if numbered := sorted(info.name for info in infos if info.numbered and info.selected != 0):
        raise UsageError(
            f"{called}: pairs by id need ids, and the rows of {', '.join(numbered)} have no ids: add a column id (in a "
            "data file, id: and a template does as well)"
        )


def _kind(old: ExampleResult | None, new: ExampleResult | None, by: str) -> str:
    if old is None:
        return "new"
    if new is None:
        return "removed"
    if new.status == "quarantined":
        return "quarantined"
    if content_of(old, by) != content_of(new, by) or _differ_in_score_field(old, new):
        return "changed"
    if old.status == new.status == "measured":
        return "measured"
    if old.score is None:
        return "unknown"
    return "pair" if new.score is not None else "unscored"


def _differ_in_score_field(old: ExampleResult, new: ExampleResult) -> bool:
    """Return True if the two results' scores come from different fields of the task's scorers."""
    if not (old.is_scored and new.is_scored):
        return False
    if "measured" in (old.status, new.status):
        return old.status != new.status
    return _score_field(old.details) != _score_field(new.details)


def _score_field(details: Mapping[str, Any]) -> object:
    # All responses to an example, and all rows of a response, take the score from the same field.
    for name in ("repeats", "rows"):
        parts = details.get(name)
        if isinstance(parts, list) and parts and isinstance(parts[0], Mapping):
            details = parts[0]
    return details.get("score_field")


def _code(result: ExampleResult) -> tuple[str, str]:
    function = result.details.get(FUNCTION)
    if result.metric != METRIC or not isinstance(function, Mapping):
        return "", ""
    return str(function.get("name")), str(function.get("sha256"))
