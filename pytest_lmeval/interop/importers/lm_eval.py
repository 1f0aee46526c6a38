"""Turn a folder that lm-evaluation-harness wrote with ``--log_samples`` into a run's ledger.

The ledger contains the harness's aggregates and standard errors.
"""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.formats.harness.aggregates import encoded, gate_value
from pytest_lmeval.formats.harness.measures import RIGHT_OR_WRONG
from pytest_lmeval.formats.harness.task import DETAILS
from pytest_lmeval.formats.loglikelihood import ranked
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.hashes import hashes_of
from pytest_lmeval.interop.files import NewFiles, read_records, without_strange_numbers
from pytest_lmeval.interop.importers import Imported, Remark
from pytest_lmeval.leaderboard.board import RunFacts
from pytest_lmeval.leaderboard.groups import MEASURES, shown
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.numbers import is_number, is_share
from pytest_lmeval.records.recorded import parse_json
from pytest_lmeval.records.runfile import RunFile, board_of
from pytest_lmeval.records.shards import ledger_of
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult, LogProb

_STDERR = "_stderr,"
_NEEDED = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
_VERSION = re.compile(r"0\.4(\.|$)")
_STAMP = re.compile(r"results_(.+)\.json")
# Versions 0.4.0 to 0.4.2 write this file, and name samples by the model's arguments.
_OLDEST = "results.json"
_MODEL = re.compile(r"(?:^|,)(?:peft|delta|pretrained|model|path|engine)=([^,]+)")
_SECTIONS = ("results", "configs", "n-samples")
_UNKNOWN = "before 0.4.9"
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_Fields = Mapping[str, Any]
_Sample = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: its results file, the file's content, ``(place, sample)`` by task, and the tasks without samples."""

    path: Path
    facts: _Fields
    samples: Mapping[str, Sequence[_Sample]]
    without: Sequence[str]

    @property
    def model(self) -> str:
        """The model's name, or its class's name if the command gave none."""
        config = dict(self.facts.get("config") or {})
        named = _MODEL.search(str(config.get("model_args") or ""))
        return str(self.facts.get("model_name") or (named[1] if named else config.get("model")) or "")


@dataclass(frozen=True, slots=True)
class _OutputTask:
    """A harness task: the keys that a results file records, and the model's name."""

    name: str
    config: _Fields
    version: Any
    higher: _Fields
    adapter: str

    def decisive(self, first: _Fields) -> str:
        """Return the first metric and filter, which determine the score, as in a task that this package runs."""
        listed = [each.get("metric") for each in self.config.get("metric_list") or () if isinstance(each, dict)]
        metric = next((name for name in listed if name in first["metrics"]), first["metrics"][0])
        return f"{metric},{first['filter']}"

    def rises(self, decisive: str) -> bool:
        """Return True if higher values of a metric are better."""
        return bool(self.higher.get(decisive.rpartition(",")[0], True))


def bring_in(source: Path, destination: Path) -> Imported:
    """Return the ledger of the runs in ``source``, a folder or one results file; raise UsageError for invalid files."""
    runs = _read_outputs(source)
    results: list[ExampleResult] = []
    infos: dict[str, TaskInfo] = {}
    aggregates: dict[str, _Fields] = {}
    for run in runs:
        for name, samples in run.samples.items():
            task = _task(run, name)
            own = _results_of(task, samples)
            results += own
            available = _count(run.facts, name, "original")
            infos[name] = TaskInfo(
                name, run.path.name, None, own[0].metric, available=available, selected=len(own), aggregates=True
            )
            aggregates[name] = _aggregates(task, run.facts["results"].get(name) or {}, len(own))
    facts, outcomes = _facts(runs, infos), tuple(results)
    made = RunFile(
        path=destination,
        kind="ledger",
        facts=facts,
        complete=True,
        infos=infos,
        results=outcomes,
        aggregates=aggregates,
    )
    return Imported(
        NewFiles(destination.parent, {destination.name: b"".join(ledger_of(made, board_of(made)))}),
        left_out=[_remark(run, task, "no samples; run it with --log_samples") for run in runs for task in run.without],
        differs=[
            _remark(run, group, "the score of a group is not imported")
            for run in runs
            for group in sorted(run.facts["results"].keys() - run.facts["configs"].keys())
        ],
        next_steps=[f"lmeval report {destination}"],
    )


def _task(run: _Run, name: str) -> _OutputTask:
    higher = dict(run.facts.get("higher_is_better") or {}).get(name) or {}
    version = dict(run.facts.get("versions") or {}).get(name)
    return _OutputTask(name, run.facts["configs"][name] or {}, version, higher, run.model)


def _aggregates(task: _OutputTask, found: _Fields, asked: int) -> _Fields:
    """Return a task's metrics in the form of :class:`~pytest_lmeval.formats.harness.task.HarnessTask`."""
    # A null was NaN; the board lists the metric without a value.
    numbers = {
        key: value
        for key, value in found.items()
        if "," in key and _STDERR not in key and (value is None or is_number(value))
    }
    notes = {
        key: {
            "stderr": _number(found.get(key.replace(",", _STDERR, 1))),
            "n": asked,
            "higher_is_better": task.rises(key),
        }
        for key in numbers
    }
    return {"metrics": {shown(key): _number(value) for key, value in numbers.items()}, "notes": {MEASURES: notes}}


def _facts(runs: Sequence[_Run], infos: Mapping[str, TaskInfo]) -> RunFacts:
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
        manifest={"versions": {"lm_eval": str(first.get("lm_eval_version", _UNKNOWN))}, "imported": "lm-eval"},
        mode="none",
    )


def _remark(run: _Run, what: str, why: str) -> Remark:
    return Remark(str(run.path), 1, what, why)


def _number(value: object) -> float | None:
    return float(value) if is_number(value) else None


def _results_of(task: _OutputTask, samples: Sequence[_Sample]) -> list[ExampleResult]:
    """Return a result for each document, in order; raise UsageError, which names the invalid line."""
    documents: dict[int, dict[str, _Sample]] = {}
    for place, sample in samples:
        missing = [key for key in _NEEDED if key not in sample]
        if missing or not sample["metrics"] or not isinstance(sample["doc_id"], int):
            raise UsageError(f"{place}: not a sample: {missing[0] if missing else 'doc_id or metrics'!r} is missing")
        by_filter = documents.setdefault(sample["doc_id"], {})
        if sample["filter"] in by_filter:
            raise UsageError(f"{place}: document {sample['doc_id']} occurs twice for the filter {sample['filter']!r}")
        by_filter[sample["filter"]] = place, sample
    return [_result(task, [*documents[number].values()]) for number in sorted(documents)]


def _result(task: _OutputTask, samples: Sequence[_Sample]) -> ExampleResult:
    place, first = samples[0]
    try:
        values = {f"{name},{each['filter']}": encoded(each[name]) for _, each in samples for name in each["metrics"]}
        decisive = task.decisive(first)
        score, how = (None, "") if values[decisive] is None else gate_value(values[decisive], task.rises(decisive))
        asked = [_listed(each) for each in _listed(first["arguments"])]
        details, outputs = _answers(first["resps"], asked)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ScoringError) as error:
        raise UsageError(f"{place}: not a sample as lm_eval writes it: {type(error).__name__}: {error}") from None
    threshold = 1.0 if decisive.rpartition(",")[0] in RIGHT_OR_WRONG else 0.0
    targets = _targets(first, asked, task.config)
    given = first["filtered_resps"][0] if first["filtered_resps"] else ""
    parts = targets, shown(decisive), "none"
    return ExampleResult(
        task=task.name,
        id=str(first["doc_id"]),
        item=f"{task.name}.{first['doc_id']}",
        metric=shown(decisive),
        hash=hashes_of(str(asked), *parts, {"document": first["doc"], "version": task.version})[0],
        scoring_hash=hashes_of(str(asked), *parts, {"document": first["doc"]})[1],
        prompt=str(asked[0][0]) if asked else "",
        targets=targets,
        adapter=task.adapter,
        outputs=outputs,
        predictions=(given if isinstance(given, str) and outputs else "",),
        status="error" if score is None else "passed" if is_at_least(score, threshold) else "below",
        error=f"{shown(decisive)} is not a number" if score is None else "",
        score=score,
        threshold=threshold,
        details={**details, DETAILS: values, **({"gate_value": how} if how else {})},
        metrics={shown(name): float(value) for name, value in values.items() if is_share(value)},
    )


def _listed(given: Any) -> list[Any]:
    """Return a mapping's values, or the elements of a list, which versions before 0.4.3 wrote."""
    return [*given.values()] if isinstance(given, Mapping) else [*given]


def _answers(responses: Sequence[Any], asked: Sequence[Sequence[Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the details of log-likelihoods, or the generated texts."""
    if len(asked[0]) == 2 and isinstance(asked[0][1], Mapping):
        return {}, tuple(map(str, responses[0]))
    given = [_log_prob(response[0]) for response in responses]
    texts = [str(each[-1]) for each in asked]
    return ranked(list(dict(zip(map(str, asked), given, strict=True)).values()), texts, [*map(str, asked)]).record(), ()


def _log_prob(response: Any) -> LogProb:
    total, greedy = (response, False) if isinstance(response, str | float) else response
    return LogProb(float(total), (), str(greedy) == "True")


def _targets(sample: _Fields, asked: Sequence[Sequence[Any]], config: _Fields) -> tuple[str, ...]:
    """Return the right answers in the form of a task that this package runs, in which a choice is its text."""
    target = str(sample["target"])
    is_number = config.get("output_type") == "multiple_choice" and target.isdecimal() and int(target) < len(asked)
    if is_number and all(each[0] == asked[0][0] for each in asked):
        return (str(asked[int(target)][-1]).removeprefix(str(config.get("target_delimiter", " "))),)
    if target.startswith("["):
        try:
            return tuple(map(str, ast.literal_eval(target)))
        except (SyntaxError, ValueError):
            pass
    return (target,)


def _read_outputs(source: Path) -> list[_Run]:
    """Return the runs in a folder or in one ``results_*.json``; raise UsageError for invalid or mixed files."""
    paths = [source] if source.is_file() else sorted(source.rglob("results_*.json")) or sorted(source.rglob(_OLDEST))
    if not paths:
        raise UsageError(f"{source}: no results_*.json; expected a folder that lm_eval wrote with --output_path")
    runs = [_run(path) for path in paths]
    models = sorted({run.model for run in runs})
    if len(models) > 1:
        raise UsageError(f"{source}: runs of {len(models)} models: {', '.join(models)}; name the folder of one model")
    held: dict[str, Path] = {}
    for run in runs:
        for task in run.facts["configs"]:
            if task in held:
                raise UsageError(f"{source}: {task} is in {held[task].name} and {run.path.name}; name one of the files")
            held[task] = run.path
    if not any(run.samples for run in runs):
        raise UsageError(f"{source}: no samples_*.jsonl; run lm_eval with --log_samples")
    return runs


def _run(path: Path) -> _Run:
    facts = _results(path)
    match = _STAMP.fullmatch(path.name)
    if match is None and path.name != _OLDEST:
        raise UsageError(f"{path}: expected a file called results_TIME.json")
    arguments = re.sub("[/=]", "__", str(dict(facts.get("config") or {}).get("model_args")))
    files = {task: f"samples_{task}_{match[1]}" if match else f"{arguments}_{task}" for task in facts["configs"]}
    there = {task: file for task in files if (file := path.with_name(f"{files[task]}.jsonl")).exists()}
    samples = {task: _samples(file, task, facts) for task, file in there.items()}
    return _Run(path, facts, samples, [task for task in files if task not in there])


def _results(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(without_strange_numbers(path.read_bytes().decode("utf-8-sig")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; is the file complete?") from None
    if not isinstance(facts, dict):
        raise UsageError(f"{path}: expected an object, got {facts!r:.80}")
    version = facts.get("lm_eval_version")
    if version is not None and not _VERSION.match(str(version)):
        raise UsageError(f"{path}: written by lm_eval {version}; this version reads files of 0.4")
    if path.name == _OLDEST:
        facts = {"n-samples": {}, **facts}
    for key in _SECTIONS:
        if version is None and key not in facts:
            missing = f"lm_eval_version and {key} are missing"
            raise UsageError(f"{path}: {missing}; expected files of lm_eval 0.4, which name a version from 0.4.9 on")
        if not isinstance(facts.get(key), dict):
            raise UsageError(f"{path}: {key}: expected an object, got {facts.get(key)!r:.80}")
    return facts


def _samples(path: Path, task: str, facts: _Fields) -> list[_Sample]:
    """Return a task's samples; raise UsageError if documents of the run are missing."""
    records = _of_list(path) if path.read_bytes()[:1] == b"[" else read_records(path, from_python=True)
    found = list(_completed(records, facts["configs"][task] or {}))
    documents = {str(sample.get("doc_id")) for _, sample in found}
    expected = _count(facts, task, "effective")
    if expected is not None and len(documents) != expected:
        raise UsageError(f"{path}: {len(documents)} documents; the results are of {expected}: the file is not complete")
    return found


def _of_list(path: Path) -> Iterator[_Sample]:
    """Yield the samples of a file from a version before 0.4.3, which wrote a list."""
    try:
        found = parse_json(without_strange_numbers(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; is the file complete?") from None
    for number, sample in enumerate(found):
        if not isinstance(sample, dict):
            raise UsageError(f"{path}: sample {number}: expected an object, got {sample!r:.80}")
        yield f"{path}: sample {number}", sample


def _completed(samples: Iterable[_Sample], config: _Fields) -> Iterator[_Sample]:
    """Yield the samples with the names of their filter and metrics, which versions before 0.4.7 omitted.

    Versions before 0.4.7 wrote all samples of one filter before the samples of the next, in the task's order.
    """
    names = [str(each.get("name")) for each in config.get("filter_list") or () if isinstance(each, dict)] or ["none"]
    seen: Counter[str] = Counter()
    for place, sample in samples:
        if sample.keys().isdisjoint(("filter", "metrics")):
            document = str(sample.get("doc_id"))
            seen[document] += 1
            metrics = [key for key in sample if key not in (*_NEEDED, *_HASHES)]
            sample = {**sample, "filter": names[min(seen[document], len(names)) - 1], "metrics": metrics}
        yield place, sample


def _count(facts: _Fields, task: str, kind: str) -> int | None:
    counts = facts["n-samples"].get(task)
    count = counts.get(kind) if isinstance(counts, dict) else None
    return count if isinstance(count, int) else None
