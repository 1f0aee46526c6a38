"""A folder of outputs to the ledger of a run, with the aggregates and standard errors that the harness worked out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.interop.files import NewFiles
from pytest_lmeval.interop.importers.imported import Imported, Remark
from pytest_lmeval.interop.importers.lm_eval.folder import HarnessRun, counts_of, read_outputs
from pytest_lmeval.interop.importers.lm_eval.samples import ImportedTask, results_of
from pytest_lmeval.leaderboard.board import RunFacts
from pytest_lmeval.leaderboard.groups import MEASURES, shown
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.runfile import RunFile, board_of
from pytest_lmeval.records.shards import ledger_of
from pytest_lmeval.types import ExampleResult

_STDERR = "_stderr,"


def bring_in(source: Path, destination: Path) -> Imported:
    """Return the ledger of the runs in ``source``, a folder or one results file; raise UsageError for bad files."""
    runs = read_outputs(source)
    results: list[ExampleResult] = []
    infos: dict[str, TaskInfo] = {}
    aggregates: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        for name, samples in run.samples.items():
            own = results_of(_task(run, name), samples)
            results += own
            available, asked = counts_of(run, name)
            infos[name] = TaskInfo(
                name, run.path.name, None, own[0].metric, available=available, selected=asked, aggregates=True
            )
            aggregates[name] = _aggregates(run, name, asked)
    made = RunFile(
        path=destination,
        kind="ledger",
        facts=_facts(runs, infos),
        complete=True,
        infos=infos,
        results=tuple(results),
        aggregates=aggregates,
    )
    return Imported(
        NewFiles(destination.parent, {destination.name: b"".join(ledger_of(made, board_of(made)))}),
        left_out=[_remark(run, task, "no samples; run it with --log_samples") for run in runs for task in run.without],
        differs=[
            _remark(run, group, "the score of a group is not brought in")
            for run in runs
            for group in sorted(run.facts["results"].keys() - run.facts["configs"].keys())
        ],
        next_steps=[f"lmeval report {destination}"],
    )


def _task(run: HarnessRun, name: str) -> ImportedTask:
    higher = dict(run.facts.get("higher_is_better") or {}).get(name) or {}
    version = dict(run.facts.get("versions") or {}).get(name)
    return ImportedTask(name, run.facts["configs"][name] or {}, version, higher, run.model)


def _aggregates(run: HarnessRun, name: str, asked: int) -> Mapping[str, Any]:
    """Return the metrics of a task as :class:`~pytest_lmeval.formats.harness.task.HarnessTask` returns them."""
    found = run.facts["results"].get(name) or {}
    higher = _task(run, name).higher
    # One that is not a number was NaN: it is on the board, without a value.
    numbers = {
        key: value
        for key, value in found.items()
        if "," in key and _STDERR not in key and (value is None or _is_number(value))
    }
    notes = {
        key: {
            "stderr": _number(found.get(key.replace(",", _STDERR, 1))),
            "n": asked,
            "higher_is_better": bool(higher.get(key.rpartition(",")[0], True)),
        }
        for key in numbers
    }
    return {"metrics": {shown(key): _number(value) for key, value in numbers.items()}, "notes": {MEASURES: notes}}


def _facts(runs: Sequence[HarnessRun], infos: Mapping[str, TaskInfo]) -> RunFacts:
    first = runs[0].facts
    started = _number(first.get("date")) or 0.0
    partial = {
        name: {"available": info.available, "selected": info.selected}
        for name, info in infos.items()
        if info.available is not None and info.available != info.selected
    }
    limit = dict(first.get("config") or {}).get("limit")
    return RunFacts(
        timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        adapter=runs[0].model,
        selection={"limit": limit, "tasks": partial} if partial else {},
        manifest={"versions": {"lm_eval": str(first["lm_eval_version"])}, "imported": "lm-eval"},
        mode="none",
    )


def _remark(run: HarnessRun, what: str, why: str) -> Remark:
    return Remark(str(run.path), 1, what, why)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    return float(value) if _is_number(value) and math.isfinite(value) else None
