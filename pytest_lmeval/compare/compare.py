"""Compare two runs example by example, and reach a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_lmeval.compare.changes import TaskChange, Verdict, overall_change, task_changes
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.explain import coverage, explain, staleness
from pytest_lmeval.compare.pairing import Key, Pair, Pairing, pair_up
from pytest_lmeval.compare.retargeted import Retargeted, retargeted
from pytest_lmeval.compare.scores import Named, compared_scores, score_pairs
from pytest_lmeval.leaderboard.asked import answered, asked, wanted
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.details import is_function, shown_response
from pytest_lmeval.leaderboard.explained import explanation_of, reasons_of, shown_output
from pytest_lmeval.records.boardfile import NOT_COMPARED
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

Flip = Pair
"""An example that passes in only one of the runs."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_NONE: Named = MappingProxyType({})
_DEFAULT = Criteria()


@dataclass(frozen=True, slots=True)
class Comparison(Pairing):
    """A comparison of two runs.

    ``retargeted`` lists the changed examples that the comparison also scored against the old targets. ``left_out`` maps
    tasks and named scores to the reasons why they were not compared. ``verdict`` is the first verdict that applies, in
    the order ``stale``, ``regression``, ``inconclusive``, ``improvement``, ``pass``. The ``reasons`` explain all
    verdicts that apply. ``coverage`` describes the compared and skipped examples.
    """

    tasks: tuple[TaskChange, ...]
    pooled: TaskChange
    retargeted: tuple[Retargeted, ...]
    left_out: Mapping[str, str]
    verdict: Verdict
    reasons: tuple[str, ...]
    coverage: tuple[str, ...]
    criteria: Criteria

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values, with the prompt, targets and both answers of each flipped example."""
        quarantined = self.of("quarantined")
        other_prompts = Counter(pair.new.task for pair in self.pairs if pair.differs_in_prompt)
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "coverage": list(self.coverage),
            "criteria": asdict(self.criteria),
            "paired": self.paired,
            "expected": self.expected,
            "tasks": [_change_record(change) for change in self.tasks],
            "pooled": _change_record(self.pooled),
            "worse": [flip_record(flip) for flip in self.worse],
            "better": [flip_record(flip) for flip in self.better],
            "new": [_key_record(key) for key in self.of("new")],
            **{
                name: [{**_key_record(key), "passed_before": self.passed_before(key)} for key in self.of(name)]
                for name in ("changed", "removed", "unscored")
            },
            "retargeted": [each.to_json() for each in self.retargeted],
            "left_out": dict(self.left_out),
            **({"quarantined": [_key_record(key) for key in quarantined]} if quarantined else {}),
            **({"other_prompts": dict(other_prompts)} if other_prompts else {}),
            **({"functions": list(self.functions)} if self.functions else {}),
        }


def compare(  # noqa: PLR0913  # keyword-only facts of the new run's board
    old: Sequence[ExampleResult],
    new: Sequence[ExampleResult],
    criteria: Criteria = _DEFAULT,
    *,
    left_out: Mapping[str, str] = _NOTHING,
    outside: Callable[[str, str], bool] = lambda task, id: False,
    gone: str = "removed",
    scores: Named = _NONE,
) -> Comparison:
    """Compare a new run with an old run, pair by pair; the results may have any order.

    Two results with scores form a pair if their task, id and content hash are equal; ``criteria`` may choose the
    scoring hash instead. ``left_out`` maps tasks to reasons not to compare them. ``outside(task, id)`` returns True if
    the new run did not select the example, in which case it does not count as removed. ``gone`` is the word for all
    other examples that the new run lacks. ``scores`` are named scores to compare in addition to task scores.
    """
    pairing = pair_up(old, new, left_out, outside, criteria.pair_by)
    by_old_targets = retargeted(pairing.changed_pairs)
    named = {task for (task, _), kind in pairing.kinds.items() if kind not in ("left_out", "unselected")}
    others, lacking, partly = score_pairs(pairing.pairs, scores) if scores else ([], {}, [])
    tasks = task_changes(named, [*pairing.pairs, *others], criteria)
    pooled = overall_change(pairing.pairs, criteria, others)
    return Comparison(
        **{each.name: getattr(pairing, each.name) for each in fields(pairing)},
        tasks=tasks,
        pooled=pooled,
        retargeted=by_old_targets,
        left_out={**left_out, **lacking},
        verdict="stale" if staleness(pairing, criteria) else _first([*tasks, pooled]),
        reasons=explain(tasks, pooled, pairing, criteria, left_out),
        coverage=(*coverage(pairing, by_old_targets, gone), *_of_scores(lacking, partly)),
        criteria=criteria,
    )


def _of_scores(lacking: Mapping[str, str], partly: Sequence[str]) -> Sequence[str]:
    lines = [f"{NOT_COMPARED}{name}: {why}" for name, why in lacking.items()]
    return [printable(line, keep="") for line in (*lines, *partly)]


def compare_with(baseline: RunFile, board: Leaderboard, criteria: Criteria, root: Path | None = None) -> Comparison:
    """Compare a board with its baseline, pair by pair; raise UsageError if the baseline has no per-example records.

    The comparison ignores examples that the board's run did not select. It also ignores a task that the board lacks if
    the task's file exists below ``root``; without ``root``, such a task counts as removed. ``criteria.exact`` applies
    only to a baseline from the same adapter, because a flip between two models proves nothing.
    """
    criteria = replace(criteria, exact=criteria.exact and baseline.adapter == board.facts.adapter)
    new = [result for row in board.tasks for result in row.per_example]
    present = {row.task for row in board.tasks}
    counts = board.facts.selection.get("tasks", {})
    partial = {name for name, count in counts.items() if count.get("selected") != count.get("available")}

    def outside(task: str, id: str) -> bool:
        if task in present:
            return task in partial
        info = baseline.infos.get(task)
        return task in partial or (root is not None and info is not None and (root / info.path).is_file())

    # A board does not name skipped examples, so an example without a result may be skipped or removed.
    facts = board.facts
    gone = "removed, skipped or lost" if facts.skipped or facts.missing or not facts.finished else "removed"
    left_out = _other_sandbox(baseline, board, new)
    scores = compared_scores(board)
    old = examples_of(baseline)
    found = compare(old, new, criteria, left_out=left_out, outside=outside, gone=gone, scores=scores)
    if not any("requests_per_example" in row.spent for row in board.tasks):
        return found
    from pytest_lmeval.compare.models import other_models
    from pytest_lmeval.compare.requests import other_requests

    untested, others = other_models(old, new)
    others += other_requests(old, new)
    return replace(
        found,
        verdict="stale" if untested else found.verdict,
        reasons=(*untested, *found.reasons),
        coverage=(*found.coverage, *others),
    )


def _other_sandbox(baseline: RunFile, board: Leaderboard, new: Iterable[ExampleResult]) -> Mapping[str, str]:
    old, now = (manifest.get("sandbox") for manifest in (baseline.manifest, board.facts.manifest))
    if old == now or old is None:
        return {}
    tasks = sorted({result.task for result in new if result.metric == "code_exec"})
    return dict.fromkeys(tasks, f"run at sandbox level {now}, in the baseline at {old}")


def _first(changes: Sequence[TaskChange]) -> Verdict:
    verdicts: tuple[Verdict, ...] = ("regression", "inconclusive", "improvement")
    found = {change.verdict for change in changes}
    return next((verdict for verdict in verdicts if verdict in found), "pass")


def _change_record(change: TaskChange) -> dict[str, Any]:
    return asdict(change) | {"interval": None if change.interval is None else list(change.interval)}


def flip_record(flip: Flip) -> dict[str, Any]:
    """Return a flipped example with the answers of both runs, as JSON values."""
    prompt, question = flip.new.prompt or flip.old.prompt, asked(flip.new) or asked(flip.old)
    return {
        "task": flip.new.task,
        "id": flip.new.id,
        "line": flip.new.line,
        "prompt": prompt,
        **(_prompts(flip) if flip.differs_in_prompt else {}),
        **({"question": question} if question != prompt else {}),
        "targets": list(wanted(flip.new)),
        **({"function": True} if is_function(flip.new) else {}),
        "old": _answer_record(flip.old),
        "new": _answer_record(flip.new),
    }


def _prompts(flip: Flip) -> dict[str, object]:
    talks = {"old_messages": flip.old.messages, "messages": flip.new.messages}
    found = {name: [each.to_json() for each in messages] for name, messages in talks.items() if messages}
    return {"old_prompt": flip.old.prompt, **found}


def _answer_record(result: ExampleResult) -> dict[str, Any]:
    record: dict[str, Any] = {"score": result.score, "status": result.status}
    if reasons := reasons_of(result):
        record["reason"] = reasons
    if is_function(result):
        # The application's answer is the output; the function's explanation replaces a prediction.
        return {"output": answered(result) or None, "prediction": explanation_of(result), **record}
    number = shown_response(result)
    return {
        "output": result.outputs[number] if result.outputs else None,
        "prediction": result.predictions[number] if result.predictions else None,
        **record,
    }


def failing_otherwise(comparison: Comparison) -> list[Pair]:
    """Return the pairs from eval functions that pass in neither run, and whose application gave different answers."""
    neither = [pair for pair in comparison.pairs if "passed" not in (pair.old.status, pair.new.status)]
    return [pair for pair in neither if is_function(pair.new) and shown_output(pair.old) != shown_output(pair.new)]


def _key_record(key: Key) -> dict[str, str]:
    return {"task": key[0], "id": key[1]}
