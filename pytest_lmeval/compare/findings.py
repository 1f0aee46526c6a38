"""Find the reasons to pass or fail a run, each with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_lmeval.compare.remarks import floor_without_score
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.aggregations import FIELDS, LEAST
from pytest_lmeval.leaderboard.board import SERVICE
from pytest_lmeval.leaderboard.rows import rows_called
from pytest_lmeval.numbers import beside, is_count
from pytest_lmeval.records.boardfile import NO_RESULT, NOT_COMPARED
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import OVERALL

if TYPE_CHECKING:
    from pytest_lmeval.compare.compare import Comparison
    from pytest_lmeval.compare.gate import GateSettings
    from pytest_lmeval.leaderboard.board import Leaderboard

Finding = tuple[str, str]
"""A verdict and its reason."""
_GRAVEST = ("incomplete", "stale", "regression", "floor", "limit", "must_pass", "examples", "inconclusive", "pass")
_NOTHING_TO_DECIDE_BY = (
    "no result can fail this run: no floor or limit is set, and no example has must_pass; --lm-min-score NAME=V sets a "
    "floor"
)
_UNKNOWN = {
    "ttft_p95_ms": f"fewer than {LEAST['ttft_p95_ms']} answers came as a stream (openai: --lm-adapter-arg=stream=true)",
    "requests_per_example": "no example of an eval function sent a request",
    "tokens_per_example": "no new answer reports its tokens",
    "cost_per_example": "no new answer reports its cost",
    "cost": "no answer reports its cost",
}


class Rule(NamedTuple):
    """A rule that may fail a run; ``name`` is its name in ``decided_by``.

    ``is_in_force`` returns True if the rule applies to the run, and ``broken`` returns descriptions of violations.
    """

    name: str
    verdict: str
    is_in_force: Callable[[Leaderboard, GateSettings], bool]
    broken: Callable[[Leaderboard, GateSettings], Sequence[str]]


def findings(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> list[Finding]:
    """Return all verdicts that apply to a run, with their reasons; the decisive verdict comes first."""
    if settings.mode != "baseline" or settings.update:
        comparison = None
    found = [("incomplete", reason) for reason in (*board.facts.interruptions, *_incomplete(board))]
    found += [("examples", reason) for reason in board.facts.failures]
    if _errors(board) and board.complete:
        found.append(("pass", _unscored(board)))
    broken = [(rule.verdict, reason) for rule in RULES for reason in rule.broken(board, settings)]
    if settings.mode == "none":
        missed = [reason for verdict, reason in broken if verdict in ("floor", "limit")]
        found += [("pass", f"{reason}; the gate is off ('none'): this does not fail the run") for reason in missed]
    else:
        # A passing run's reasons begin with the smallest drop that it could have detected.
        found = [*broken, *_compared(board, settings, comparison), *found]
        found += [("pass", reason) for reason in _no_decision(board, settings)]
    return sorted(found, key=lambda finding: _GRAVEST.index(finding[0]))


def _compared(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> Iterator[Finding]:
    if comparison is None or not comparison.reasons:
        return
    verdict = comparison.verdict
    passes = verdict in ("pass", "improvement")
    for reason in comparison.reasons[:1] if passes else comparison.reasons:
        yield "pass" if passes else verdict, reason
    if verdict == "stale" and not comparison.only_measured and board.complete:
        yield verdict, f"to update it: --lm-baseline={settings.baseline} --lm-update-baseline"


def _no_decision(board: Leaderboard, settings: GateSettings) -> Iterator[str]:
    """Yield the reasons why no rule decided a passing run's verdict."""
    if not board.counts["scored"]:
        yield "no example was scored"
    shard = board.facts.selection.get("shard")
    if shard and not settings.baseline:
        yield f"shard {shard} only: lmeval merge of all shards gives the verdict"
    if settings.mode == "tasks" and board.complete and not shard and not decided_by(board, settings, compared=False):
        yield _NOTHING_TO_DECIDE_BY


def decided_by(board: Leaderboard, settings: GateSettings, *, compared: bool) -> tuple[str, ...]:
    """Return the names of the rules that could have failed a complete run; ``compared`` is True with a baseline."""
    if settings.mode == "none":
        return ()
    held = [rule.name for rule in RULES if rule.is_in_force(board, settings)]
    if settings.mode == "baseline" and compared:
        held.insert(0, "baseline")
    return tuple(held)


def _has_floors(board: Leaderboard, settings: GateSettings) -> bool:
    if any(row.min_score for row in board.tasks) or _names_any(settings.floors, board):
        return True
    return any(score["min_score"] for row in board.tasks for score in row.scores.values())


def _has_must_pass(board: Leaderboard, settings: GateSettings) -> bool:
    results = (result for row in board.tasks for result in row.per_example)
    return any(result.must_pass and result.status != "quarantined" for result in results)


def _names_any(names: Collection[str], board: Leaderboard) -> bool:
    if not names:
        return False
    from pytest_lmeval.compare.scores import task_of_score

    return any(name == OVERALL or rows_called(name, board.tasks) or task_of_score(name, board) for name in names)


def not_compared(board: Leaderboard, settings: GateSettings) -> Sequence[str]:
    """Return a line that says why a run was not compared with its baseline, or an empty sequence."""
    if settings.baseline and "shard" in board.facts.selection:
        return (f"{NOT_COMPARED}a shard of a run; lmeval merge compares the whole run with the baseline",)
    return (f"{NOT_COMPARED}there was no baseline before this run",) if settings.update else ()


def _incomplete(board: Leaderboard) -> list[str]:
    reasons = [f"{NO_RESULT}{nodeid}" for nodeid in board.facts.missing]
    errors = _errors(board)
    if errors > board.facts.max_errors:
        reasons.append(_unscored(board))
    if not board.counts["scored"]:
        held = board.counts.get("quarantined")
        why = [f"{board.counts['excluded']} were excluded by their tasks"] if board.counts["excluded"] else []
        why += [f"{held} are quarantined"] if held else []
        why += [f"{errors} ended in an error"] if 0 < errors <= board.facts.max_errors else []
        reasons += [f"no example was scored: {' and '.join(why)}"] if why else []
    return reasons + [f"{row.task}: {row.problem}" for row in board.tasks if row.problem]


def _errors(board: Leaderboard) -> int:
    return board.counts["errors"] + board.counts["timeouts"]


def _unscored(board: Leaderboard) -> str:
    return f"{_errors(board)} example(s) could not be scored; --lm-max-errors allows {board.facts.max_errors:g}"


def _must_pass(board: Leaderboard, settings: GateSettings) -> list[str]:
    return [
        f"{result.task}: {result.id} must pass, but its status is {result.status}"
        for row in board.tasks
        for result in row.per_example
        if result.must_pass and result.status not in ("passed", "excluded", "quarantined")
    ]


def _under_threshold(board: Leaderboard, settings: GateSettings) -> list[str]:
    if settings.mode != "examples":
        return []
    failed = {row.task: sum(result.status == "failed" for result in row.per_example) for row in board.tasks}
    return [f"{task}: {count} example(s) below their threshold" for task, count in failed.items() if count]


def _under_floor(board: Leaderboard, settings: GateSettings) -> list[str]:
    if "shard" in board.facts.selection:
        # The gate checks floors on the merged shards, not on a part of the examples.
        return []
    reasons = []
    # A task's own floor applies unless the settings have one for the task.
    unset = [row for row in board.tasks if not {row.task, row.key} & settings.floors.keys()]
    own = {row.task: row.min_score for row in unset if row.min_score is not None}
    floors = {**own, **settings.floors}
    outside = {row.task for row in board.tasks if row.is_outside}
    for name, floor in floors.items():
        if refusal := floor_without_score(board, [name]):
            reasons.append(refusal)
            continue
        # A floor for one variant overrides a floor for all variants.
        rows = [row for row in rows_called(name, board.tasks) if row.task == name or row.task not in settings.floors]
        reached = {OVERALL: board.overall_score} if name == OVERALL else {row.task: row.score for row in rows}
        for task, score in reached.items():
            if score is None and task not in outside:
                reasons.append(f"{task}: no score, and the floor is {floor:g}")
            elif score is not None and not is_at_least(score, floor):
                reasons.append(f"{task}: {beside(score, floor)} is below its floor {floor:g}")
    if settings.floors or any(row.scores for row in board.tasks):
        from pytest_lmeval.compare.scores import scores_under_floor

        reasons += scores_under_floor(board, settings.floors)
    return reasons


def limit_parts(limit: str) -> tuple[str, str]:
    """Split a limit such as ``overall.cost`` into task and field; raise UsageError if the field is unknown."""
    name, _, field = limit.rpartition(".")
    if not name:
        raise UsageError(f"limit {limit!r}: expected NAME.FIELD, a task or 'overall' and one of {', '.join(FIELDS)}")
    if field not in FIELDS:
        raise UnknownName(f"field of the limit {limit!r}:", field, FIELDS)
    return name, field


def limited_names(limits: Iterable[str]) -> list[str]:
    """Return the task, or ``overall``, that each limit names."""
    return [limit_parts(limit)[0] for limit in limits]


def _over_limits(board: Leaderboard, settings: GateSettings) -> list[str]:
    # As with floors, the gate decides on the merged shards.
    limits = {} if "shard" in board.facts.selection else settings.limits
    reasons = []
    for limit, most in limits.items():
        name, field = limit_parts(limit)
        rows = rows_called(name, board.tasks)
        known = {OVERALL: board.spent} if name == OVERALL else {row.task: row.spent for row in rows}
        found = [(task, _over_limit(spent, field, most)) for task, spent in known.items()]
        reasons += [f"{task}.{field}: {reason}" for task, reason in found if reason]
    return reasons + _overspent(board)


def _overspent(board: Leaderboard) -> list[str]:
    """Return a reason if the run, including judges and unused answers, cost more than ``--lm-max-cost`` allows."""
    known = board.facts.manifest.get("max_cost")
    if not isinstance(known, Mapping) or not {"limit", "before", "spent"} <= known.keys():
        return []
    # If a worker process died, only the costs of its examples are known.
    spent = max(known["before"] + known["spent"], board.usage.get("cost", 0.0))
    if is_at_least(known["limit"], spent):
        return []
    how = "requests in flight cost more than any before them"
    return [f"--lm-max-cost: {spent:.6g} was spent, over the limit {known['limit']:.6g}: {how}"]


def _over_limit(spent: Mapping[str, float | int], field: str, most: float) -> str:
    value = spent.get(field)
    what = "tokens" if field.startswith("tokens") else field.partition("_")[0]
    if (known := spent.get(f"{what}_known")) is not None:
        return f"the {what} of only {known} of {spent['asked']} examples is known; the limit is {most:g}"
    if value is not None:
        return f"{value:.6g} is over its limit {most:g}" if not is_at_least(most, value) else ""
    least = LEAST.get(field, 0)
    if field.startswith("duration"):
        calls = spent.get("durations", 0)
        return f"only {calls:g} call(s) of a function were timed, and {least} are needed; the limit is {most:g}"
    count = spent.get("requests", 0)
    if count < least:
        cached = f" ({spent['cached']} cached answers not counted)" if "cached" in spent else ""
        return f"only {count:g} request(s) were timed{cached}, and {least} are needed; the limit is {most:g}"
    return f"unknown; the limit is {most:g}: {_UNKNOWN[field]}"


def during(board: Leaderboard) -> str:
    """Return a sentence that counts requests that arrived during examples but belong to no example, or ""."""
    service = board.facts.manifest.get(SERVICE)
    count = service.get("during") if isinstance(service, Mapping) else None
    if not is_count(count) or not count:
        return ""
    how = "pass lm.headers on to the service, or ask it before the examples run"
    return f"{count} request(s) to lm_base_url came while examples ran, and belong to none: {how}"


RULES = (
    Rule("thresholds", "examples", lambda board, settings: settings.mode == "examples", _under_threshold),
    Rule("floors", "floor", _has_floors, _under_floor),
    Rule("limits", "limit", lambda board, settings: _names_any(limited_names(settings.limits), board), _over_limits),
    Rule("must_pass", "must_pass", _has_must_pass, _must_pass),
    Rule(
        "service",
        "limit",
        lambda board, settings: settings.strict and SERVICE in board.facts.manifest,
        lambda board, settings: [reason] if settings.strict and (reason := during(board)) else [],
    ),
)
"""All rules that may fail a complete run, except the comparison with a baseline."""
