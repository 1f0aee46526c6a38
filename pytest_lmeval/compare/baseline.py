"""Encode a board as a baseline (a small file to commit), and check a comparison's baseline."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, served_by
from pytest_lmeval.leaderboard.details import names_of
from pytest_lmeval.leaderboard.rows import TaskRow
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.types import ExampleResult

_DIFFERS = ("usage", "request_ms", "ttft_ms", "cached", "adapter_key")
_COMPARED = ("requests_per_example", "tokens_per_example")
_NOTHING: Mapping[str, Any] = {}
_KEPT = ("git", "model", "repeats", "sandbox", "seed", "think_tags", "versions")


def encode_baseline(board: Leaderboard, *, prompts: bool = False) -> bytes:
    """Return the board with its per-example records, one per line, as UTF-8 JSON.

    The file omits the gate, and any values that may differ between equal runs, such as latencies, arguments and the
    platform. It also omits the prompts unless ``prompts`` is true.
    """
    content = board.to_json(per_example=True)
    for name in ("gate", "spent"):
        content.pop(name, None)
    content["manifest"] = {name: value for name, value in content["manifest"].items() if name in _KEPT}
    mark = secrets.token_hex(16)
    records: list[str] = []
    for row in content["tasks"]:
        row["latency_ms"] = None
        if kept := _per_example(row.pop("spent", _NOTHING)):
            row["spent"] = kept
        row["per_example"] = [_marked(record, records, mark, prompts=prompts) for record in row["per_example"]]
    text = json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)
    lines = re.sub(rf'"{mark}:(\d+)"', lambda match: records[int(match[1])], text)
    return lines.encode("ascii") + b"\n"


def _per_example(spent: Mapping[str, Any]) -> dict[str, float]:
    """Return a task's mean requests, tokens and cost per example; omit means that do not cover all examples."""
    if "requests_per_example" not in spent:
        return {}
    # Cached answers cost nothing.
    unsure = {"tokens_per_example": ("tokens_known",), "cost_per_example": ("cost_known", "cached")}
    known = [name for name, partly in unsure.items() if name in spent and spent.keys().isdisjoint(partly)]
    return {name: spent[name] for name in ("requests_per_example", *known)}


def is_same(board: Leaderboard, stored: Mapping[str, Any], *, prompts: bool = False) -> bool:
    """Return True if the ``stored`` baseline and the board agree on results, models and requests.

    Return False if the baseline lacks scoring hashes that the board has, or lacks prompts although ``prompts`` is true.
    """
    records = [record for row in stored.get("tasks", ()) for record in row.get("per_example", ())]
    needed = ["prompt"] if prompts else []
    # Ledgers from earlier versions have no scoring hashes.
    if all(result.scoring_hash for row in board.tasks for result in row.per_example):
        needed.append("scoring_hash")
    if not all(record.get(name) for name in needed for record in records):
        return False
    if board.digest != stored.get("digest") or board.facts.adapter != stored.get("adapter"):
        return False
    rows = {str(row.get("task")): row for row in stored.get("tasks", ())}
    return rows.keys() == {row.task for row in board.tasks} and all(
        _is_same(row, rows[row.task]) for row in board.tasks
    )


def _is_same(row: TaskRow, stored: Mapping[str, Any]) -> bool:
    asked = {*stored.get("models", {}).get("asked", ())}
    if (row.sha256, row.correct, {*row.models.get("asked", ())}) != (
        stored.get("sha256"),
        stored.get("correct"),
        asked,
    ):
        return False
    amounts, before = _per_example(row.spent), stored.get("spent", _NOTHING)
    if not amounts and not before:
        return True
    from pytest_lmeval.compare.requests import is_other_amount

    is_other = any(is_other_amount(before.get(name), amounts.get(name)) for name in _COMPARED)
    return not is_other and row.options == stored.get("options", _NOTHING)


def check_baseline(run: RunFile) -> None:
    """Raise UsageError if a run is incomplete, is a single shard, or has no per-example records."""
    examples_of(run)
    if not run.complete:
        hint = ": --lm-resume asks what failed again, --lm-max-errors allows for it" if _unscored(run) else ""
        raise UsageError(f"{run.path}: {_why_incomplete(run)}; it cannot be a baseline{hint}")
    if "shard" in run.selection:
        raise UsageError(f"{run.path}: one shard of a run; it cannot be a baseline: merge the shards first")


def check_unchanged(run: RunFile) -> None:
    """Raise UsageError if the results in the baseline do not match its digest, or if it contains a task twice."""
    names = [str(row.get("task")) for row in (run.board or {}).get("tasks", ())]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{run.path}: it contains task {twice[0]!r} twice; it cannot be a baseline: write it again")
    if not run.agrees:
        raise UsageError(
            f"{run.path}: changed by hand: its results do not match its digest; it cannot be a baseline: write it "
            "again (--lm-update-baseline, or lmeval baseline accept)"
        )


def _why_incomplete(run: RunFile) -> str:
    errors = _unscored(run)
    if not errors:
        return "the run did not finish"
    count = "1 example" if len(errors) == 1 else f"{len(errors)} examples"
    first = f"{errors[0].task}: {errors[0].id}: {' '.join(errors[0].error.split())[:80]}"
    return f"the run finished, and {count} could not be scored ({first})"


def _unscored(run: RunFile) -> list[ExampleResult]:
    """Return a finished run's examples that ended in an error; for an interrupted run, return no examples."""
    finished = run.digest and not run.facts.interruptions
    return [result for result in run.results or () if result.is_error] if finished else []


def unfit(board: Leaderboard) -> str:
    """Return the reason why a board's run cannot become the baseline, or an empty string."""
    if not board.complete:
        return "this run is not complete"
    if board.facts.selection:
        return "this run covers a selection of the examples"
    return "" if board.counts["scored"] else "this run scored no example"


def doubts(baseline: RunFile, board: Leaderboard) -> list[str]:
    """Return sentences that give reasons to doubt a comparison of the board with ``baseline``."""
    found = []
    if not baseline.complete:
        count = len(_unscored(baseline))
        unscored = f"{count} example(s) of the baseline could not be scored"
        found.append(unscored if count else "the baseline comes from a run that did not finish")
    old, now = (manifest.get("think_tags") for manifest in (baseline.manifest, board.facts.manifest))
    if old is not None and now is not None and old != now:
        found.append(f"the baseline used other think tags: {old}, now {now} (--lm-think-tags)")
    elif old is None and _has_thoughts(baseline, now):
        found.append("the baseline was written by a version that scored thoughts as part of the answer")
    before = served_by(baseline.results or ())
    if before and board.served_by and before.keys() != board.served_by.keys():
        found.append(
            f"the server reports another model than in the baseline: {names_of(board.served_by)}, in the baseline "
            f"{names_of(before)}"
        )
    found += _other_judges(baseline, board)
    asked_before = _times_asked(baseline.results or ())
    asked = _times_asked(row for each in board.tasks for row in each.per_example)
    if any(asked_before[task] != asked[task] for task in asked_before.keys() & asked.keys()):
        found.append("the number of repeats differs from the baseline: passing is defined differently")
    rows = {row.task for row in board.tasks}
    if others := sorted(baseline.infos.keys() - rows):
        found.append(f"in the baseline, but not run: {', '.join(others)}")
    return found


def _other_judges(baseline: RunFile, board: Leaderboard) -> Iterator[str]:
    """Yield a sentence for each judge that changed, or whose prompt changed, since the baseline.

    Ignore the name of a judge that replays a recording.
    """
    now = {row.task: _judges(row.notes) for row in board.tasks if row.notes}
    if not any(now.values()):
        return
    rows = baseline.board["tasks"] if baseline.board is not None else ()
    before = {row["task"]: _judges(row.get("notes")) for row in rows if isinstance(row, Mapping)}
    before |= {task: _judges(found.get("notes")) for task, found in baseline.aggregates.items()}
    for task, judges in now.items():
        for key in judges.keys() & before.get(task, {}).keys():
            (name, asked), (old_name, old_asked) = judges[key], before[task][key]
            if name != old_name and not name.startswith("replay:") and not old_name.startswith("replay:"):
                yield f"{task} has another judge than in the baseline: {name}, in the baseline {old_name}"
            elif asked != old_asked:
                yield f"the prompt to the judge of {task} differs from the baseline's ({key})"


def _judges(notes: object) -> dict[str, tuple[str, str]]:
    judges = notes.get("judges") if isinstance(notes, Mapping) else None
    return {
        str(key): (str(each.get("judge", "")), str(each.get("prompt_hash", "")))
        for key, each in (judges.items() if isinstance(judges, Mapping) else ())
        if isinstance(each, Mapping)
    }


def _has_thoughts(baseline: RunFile, tags: Any) -> bool:
    end = str(tags or "").partition(",")[2]
    return bool(end) and any(end in output for result in baseline.results or () for output in result.outputs)


def _times_asked(results: Iterable[ExampleResult]) -> Mapping[str, int]:
    """Return, for each task, the largest number of outputs of any scored example."""
    found: dict[str, int] = {}
    for result in results:
        if result.is_scored:
            found[result.task] = max(found.get(result.task, 0), len(result.outputs))
    return found


def _marked(record: Mapping[str, Any], records: list[str], mark: str, *, prompts: bool) -> str:
    dropped = _DIFFERS if prompts else (*_DIFFERS, "messages")
    kept = {name: value for name, value in record.items() if name not in dropped}
    kept = {**kept, **({} if prompts else {"prompt": ""}), "latency_ms": None}
    records.append(json.dumps(kept, ensure_ascii=True, allow_nan=False))
    return f"{mark}:{len(records) - 1}"


def shared_answers(old: Iterable[ExampleResult], new: Iterable[ExampleResult]) -> int:
    """Count the examples whose answers are equal in both runs and come from a cache in at least one run."""
    before = {(result.task, result.id): result for result in old}
    both = ((before[result.task, result.id], result) for result in new if (result.task, result.id) in before)
    return sum(bool(one.cached or other.cached) and one.outputs == other.outputs for one, other in both)


def shared_with_baseline(old: Iterable[ExampleResult], new: Iterable[ExampleResult]) -> list[str]:
    """Return a warning if a run and its baseline share cached answers."""
    results = list(new)
    shared = shared_answers(old, results) if any(result.cached for result in results) else 0
    if not shared:
        return []
    return [
        f"{shared} of {len(results)} examples have the baseline's answers from the cache: they say nothing about chance"
    ]
