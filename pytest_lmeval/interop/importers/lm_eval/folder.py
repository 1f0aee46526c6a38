"""The files of one folder of outputs: what was run, and the samples of every task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.interop.files import read_records, without_strange_numbers
from pytest_lmeval.records.recorded import parse_json

_VERSION = re.compile(r"0\.4(\.|$)")
_STAMP = re.compile(r"results_(.+)\.json")
_NEEDED = ("results", "configs", "n-samples")
Sample = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """One run: the file of its results, what that holds, and ``(place, sample)`` by task."""

    path: Path
    facts: Mapping[str, Any]
    samples: Mapping[str, Sequence[Sample]]
    without: Sequence[str]

    @property
    def model(self) -> str:
        """The name of the model, or of the class of models where the command gave no name."""
        return str(self.facts.get("model_name") or dict(self.facts.get("config") or {}).get("model") or "")


def read_outputs(source: Path) -> list[HarnessRun]:
    """Return the runs in a folder, or that of one ``results_*.json``, in the order of their times.

    ``without`` are the tasks of a run without samples. Raises UsageError that names the file for one that is torn or of
    a version that is not known, for runs of several models, for a task in several runs, and without any sample.
    """
    paths = [source] if source.is_file() else sorted(source.rglob("results_*.json"))
    if not paths:
        raise UsageError(f"{source}: no results_*.json; expected a folder that lm_eval wrote with --output_path")
    runs = [_run(path) for path in paths]
    models = sorted({run.model for run in runs})
    if len(models) > 1:
        raise UsageError(f"{source}: runs of {len(models)} models: {', '.join(models)}; name the folder of one of them")
    held: dict[str, Path] = {}
    for run in runs:
        for task in run.facts["configs"]:
            if task in held:
                raise UsageError(f"{source}: {task} is in {held[task].name} and {run.path.name}; name one of the files")
            held[task] = run.path
    if not any(run.samples for run in runs):
        raise UsageError(f"{source}: no samples_*.jsonl; run lm_eval with --log_samples")
    return runs


def _run(path: Path) -> HarnessRun:
    facts = _results(path)
    match = _STAMP.fullmatch(path.name)
    if match is None:
        raise UsageError(f"{path}: expected a file that is called results_TIME.json")
    files = {task: path.with_name(f"samples_{task}_{match[1]}.jsonl") for task in facts["configs"]}
    there = {task: file for task, file in files.items() if file.exists()}
    samples = {task: _samples(file, task, facts) for task, file in there.items()}
    return HarnessRun(path, facts, samples, [task for task in files if task not in there])


def _results(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(without_strange_numbers(path.read_bytes().decode("utf-8-sig")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; is the file complete?") from None
    if not isinstance(facts, dict):
        raise UsageError(f"{path}: expected an object, got {facts!r:.80}")
    version = str(facts.get("lm_eval_version", "unknown"))
    if not _VERSION.match(version):
        raise UsageError(f"{path}: written by lm_eval {version}; this version reads what 0.4 writes")
    for key in _NEEDED:
        if not isinstance(facts.get(key), dict):
            raise UsageError(f"{path}: {key}: expected an object, got {facts.get(key)!r:.80}")
    return facts


def _samples(path: Path, task: str, facts: Mapping[str, Any]) -> list[Sample]:
    """Return the samples of a task; raise UsageError where there are fewer documents than the run had."""
    found = list(read_records(path, is_of_python=True))
    documents = {str(sample.get("doc_id")) for _, sample in found}
    expected = _counts(facts, task)[1]
    if expected is not None and len(documents) != expected:
        raise UsageError(f"{path}: {len(documents)} documents; the results are of {expected}: the file is not complete")
    return found


def _counts(facts: Mapping[str, Any], task: str) -> tuple[int | None, int | None]:
    """Return how many documents a task has, and how many of them were asked; None where that is not known."""
    counts = facts["n-samples"].get(task)
    counts = counts if isinstance(counts, dict) else {}
    original, effective = counts.get("original"), counts.get("effective")
    return (original if isinstance(original, int) else None), (effective if isinstance(effective, int) else None)


def counts_of(run: HarnessRun, task: str) -> tuple[int | None, int]:
    """Return how many documents a task has, None if that is not known, and how many of them were asked."""
    asked = len({sample["doc_id"] for _, sample in run.samples[task]})
    return _counts(run.facts, task)[0], asked
