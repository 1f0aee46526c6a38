"""Select the runs that can be ranked: complete runs that scored most of the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from pytest_lmeval.compare.pairing import check_pairing, content_of
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.records.runfile import RunFile, examples_of

ENOUGH = 0.8
"""The minimum share of examples that a run must score."""
Key = tuple[str, str, str]
"""An example's task, id and content."""
_Name = tuple[str, str]


class OwnScore(NamedTuple):
    """The score of an example in one run, its cluster, and True if it passed."""

    score: float
    cluster: str
    is_right: bool


@dataclass(frozen=True, slots=True)
class Entrant:
    """A run to rank: its scores, and the tasks and ids of its unscored examples, grouped by reason."""

    name: str
    run: RunFile
    scores: Mapping[Key, OwnScore]
    quarantined: frozenset[_Name]
    excluded: frozenset[_Name]
    failed: frozenset[_Name]


@dataclass(frozen=True, slots=True)
class AskedExamples:
    """The examples of all runs: ``scored`` in some run, or ``failed`` with an error in some run and scored in none."""

    scored: frozenset[Key]
    failed: frozenset[_Name]

    def missing(self, entrant: Entrant) -> list[Key]:
        """Return the examples that another run scored and this run neither scored nor excluded."""
        return sorted(key for key in self.scored.difference(entrant.scores) if key[:2] not in entrant.excluded)

    def total(self, entrant: Entrant) -> int:
        """Return the number of examples that the run should have scored."""
        names = {key[:2] for key in self.scored} | self.failed
        return len(self.scored) + len(self.failed) - len(names & entrant.excluded)


def entrants_of(runs: Sequence[RunFile], pair_by: str) -> list[Entrant]:
    """Name the runs and collect their scores.

    Raise UsageError for fewer than two runs, for a run given twice, or for a run without the hashes or ids that
    ``pair_by`` needs.
    """
    names = _names(runs)
    for run in runs:
        check_pairing(run, pair_by, run.path)
    return [_entrant(name, run, pair_by) for name, run in zip(names, runs, strict=True)]


def asked_of(entrants: Sequence[Entrant]) -> AskedExamples:
    """Return the examples of all runs, except examples that are in quarantine in any run."""
    aside = frozenset().union(*(entrant.quarantined for entrant in entrants))
    scored = frozenset(key for entrant in entrants for key in entrant.scores if key[:2] not in aside)
    failed = frozenset().union(*(entrant.failed for entrant in entrants))
    return AskedExamples(scored, failed.difference(aside, {key[:2] for key in scored}))


def why_unranked(entrant: Entrant, asked: AskedExamples) -> str:
    """Return the reason why a run cannot be ranked, or an empty string."""
    total = asked.total(entrant)
    if entrant.run.complete:
        scored = total - len(asked.failed - entrant.excluded) - len(asked.missing(entrant))
        if scored and scored >= ENOUGH * total:
            return ""
    count = f"a score for {len(asked.scored & entrant.scores.keys())} of {total} examples"
    return f"{count}; at least {ENOUGH:.0%} are needed" if entrant.run.complete else f"the run is not complete, {count}"


def check_shared(entrants: Sequence[Entrant]) -> None:
    """Raise UsageError if two runs share no scored example; the message names both runs and the reason."""
    for one, other in combinations(entrants, 2):
        if one.scores.keys().isdisjoint(other.scores):
            raise UsageError(f"{one.name} and {other.name} share no scored example: {_why(one.scores, other.scores)}")


def _entrant(name: str, run: RunFile, pair_by: str) -> Entrant:
    scores: dict[Key, OwnScore] = {}
    others: dict[str, set[_Name]] = {status: set() for status in ("quarantined", "excluded", "error", "timeout")}
    for result in examples_of(run):
        asked, outcome = result.question, result.outcome
        if outcome.status in others:
            others[outcome.status].add((asked.task, asked.id))
        if outcome.score is not None and result.is_scored:
            key = asked.task, asked.id, content_of(result, pair_by)
            scores[key] = OwnScore(outcome.score, asked.cluster, reaches(result))
    aside, excluded, *failed = map(frozenset, others.values())
    return Entrant(name, run, scores, aside, excluded, frozenset().union(*failed))


def _names(runs: Sequence[RunFile]) -> list[str]:
    twice = [path for path, count in Counter(str(run.path) for run in runs).items() if count > 1]
    if twice:
        raise UsageError(f"{', '.join(twice)}: named more than once")
    if len(runs) < 2:
        raise UsageError("a ranking needs two boards or more")
    adapters = Counter(run.adapter for run in runs)
    return [run.adapter if adapters[run.adapter] == 1 else f"{run.adapter} ({run.path})" for run in runs]


def _why(one: Collection[Key], other: Collection[Key]) -> str:
    if {key[:2] for key in one} & {key[:2] for key in other}:
        return "the ids are the same, but their content differs; run both on the same task files"
    tasks, others = ({task for task, _, _ in held} for held in (one, other))
    if tasks & others:
        return f"their ids of {_some(tasks & others)} differ"
    return f"the tasks of one are {_some(tasks)}, the tasks of the other {_some(others)}"


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return (", ".join(ordered[:3]) or "none") + more


_NOT_GATED: Mapping[str, Any] = {"mode": "none", "verdict": "pass"}


def by_config(runs: Sequence[RunFile]) -> list[RunFile]:
    """Split each run into one run per config, so that variants of a task can be ranked.

    The name of a new run is the config's name; with several runs, the adapter's name precedes it. All new runs use the
    same task names. Omit tasks without variants; raise UsageError if a run has fewer than two variants.
    """
    return [variant for run in runs for variant in _variants(run, with_name=len(runs) > 1)]


def _variants(run: RunFile, *, with_name: bool) -> list[RunFile]:
    # A variant is called TASK@CONFIG, and has a config.
    names = {name: name.rpartition("@") for name, info in run.infos.items() if info.config and "@" in name}
    configs = dict.fromkeys(config for _, _, config in names.values())
    if len(configs) < 2:
        raise UsageError(f"{run.path}: no variants of a task; --by config needs a run of several configs or prompts")
    found = []
    for config in configs:
        tasks = {name: task for name, (task, _, own) in names.items() if own == config}
        results = [replace(each, task=tasks[each.task]) for each in examples_of(run) if each.task in tasks]
        # The gate's decision and warnings concern the original run with all its variants.
        facts = replace(run.facts, adapter=f"{run.adapter} {config}" if with_name else config, gate=_NOT_GATED)
        path = run.path.with_name(f"{run.path.name}@{config}")
        # The variants ran on the same rows, so equal numbers mean equal rows.
        infos = {task: replace(run.infos[name], name=task, numbered=False) for name, task in tasks.items()}
        found.append(replace(run, path=path, facts=facts, infos=infos, results=tuple(results), board=None))
    return found
