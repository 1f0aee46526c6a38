"""Load harness tasks from a file that names them, or from a file in the harness's own format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, nearest
from pytest_lmeval.formats.checks import check_names, gate_fields
from pytest_lmeval.formats.harness.aggregates import ITERATIONS
from pytest_lmeval.formats.harness.config import Config, FunctionRef, check_config, generation_of, listed, plain
from pytest_lmeval.formats.harness.dataset import Source, source_of
from pytest_lmeval.formats.harness.documents import Documents
from pytest_lmeval.formats.harness.filters import Filter, own_filters, pipelines
from pytest_lmeval.formats.harness.functions import installed_root, seeded, source_digest
from pytest_lmeval.formats.harness.measures import HarnessMetric, Measurer, measures_of
from pytest_lmeval.formats.harness.names import Resolver
from pytest_lmeval.formats.harness.prompts import Maker, Shots
from pytest_lmeval.formats.harness.rowset import RowSet
from pytest_lmeval.formats.harness.task import HarnessTask
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.document import line_of
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import RecordError

_KEYS: Mapping[str, type] = {
    **dict.fromkeys(("chat", "system", "data"), str),
    "from": object,
    "tasks": list,
    "metric": dict,
    "bootstrap": int,
    "examples": dict,
}
_CHATS = ("off", "multiturn", "single")
_OF_EXAMPLE = ("quarantine", "must_pass", "cluster")
_Parts = tuple[list[HarnessMetric], dict[str, list[Filter]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class HarnessSettings:
    """A file's settings for all its tasks.

    ``data`` is the folder with the tasks' data. ``metric`` maps a task's name to its deciding metric. ``examples`` maps
    ``TASK.DOCUMENT`` to the gate fields of that example.
    """

    chat: str = "off"
    system: str = ""
    data: Path | None = None
    metric: Mapping[str, str] = field(default_factory=dict)
    bootstrap: int = ITERATIONS
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of_examples(self, task: str) -> dict[int, Mapping[str, Any]]:
        """Return the gate fields of the examples of ``task``, by document number."""
        named = ((name.rpartition("."), given) for name, given in self.examples.items())
        return {int(place): given for (of, _, place), given in named if of == task}


def load_harness(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> LoadedFile:
    """Return the tasks that the key ``harness`` of a parsed YAML file names, or the file's errors."""
    try:
        given = _given(document)
        resolver = Resolver(_roots(source, given.get("from")))
        for name in given["tasks"]:
            resolver.want(name)
        wanted = _settings(given, source.path.parent, resolver.configs)
    except RecordRefused as refused:
        return _refused(refused, line_of(document, refused.field))
    return _loaded(source, resolver, wanted)


def load_harness_file(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return the tasks from a file in the harness's own format, which describes a task or a group."""
    root = next((each for each in source.path.resolve().parents if each.parts[-2:] == ("lm_eval", "tasks")), None)
    resolver = Resolver([root or source.path.resolve().parent])
    try:
        resolver.add(source.path)
    except RecordRefused as refused:
        return _refused(refused, 1)
    data = source.path.parent / "data"
    return _loaded(source, resolver, HarnessSettings(data=data if data.is_dir() else None))


def _refused(refused: RecordRefused, line: int) -> LoadedFile:
    return LoadedFile((), (RecordError(line, None, refused.rule, refused.field, refused.detail),))


def _given(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value of the key ``harness``; raise RecordRefused for unknown keys or values of the wrong type."""
    given = document["harness"]
    given = {"tasks": given} if isinstance(given, list) else given
    other = next((key for key in document if key != "harness"), None)
    if other is not None:
        raise RecordRefused("unknown_field", str(other), "a file with the key 'harness' has no other keys")
    if not isinstance(given, dict) or not isinstance(given.get("tasks"), list) or not given["tasks"]:
        raise RecordRefused("missing_required", "harness", "expected a list tasks")
    check_names(given, _KEYS, "harness.")
    for key, value in given.items():
        if not isinstance(value, _KEYS[key]):
            raise RecordRefused("bad_type", f"harness.{key}", f"expected {_KEYS[key].__name__}, got {value!r:.80}")
    if isinstance(given.get("bootstrap"), bool) or given.get("bootstrap", 0) < 0:
        raise RecordRefused("bad_value", "harness.bootstrap", f"expected a number from 0, got {given['bootstrap']!r}")
    if given.get("chat", "off") not in _CHATS:
        raise RecordRefused("bad_value", "harness.chat", f"{given['chat']!r}; one of {', '.join(_CHATS)}")
    return given


def _settings(given: Mapping[str, Any], folder: Path, tasks: Iterable[str]) -> HarnessSettings:
    """Return the settings of a file in ``folder`` for its ``tasks``; raise RecordRefused for unknown names."""
    data = folder / given["data"] if "data" in given else None
    if data is not None and not data.is_dir():
        raise RecordRefused("bad_value", "harness.data", f"{given['data']}: no such folder beside this file")
    for name, metric in given.get("metric", {}).items():
        where = f"harness.metric.{name}"
        if name not in tasks:
            hint = nearest(str(name), tasks, "expected one of")
            raise RecordRefused("bad_value", where, f"no task of this file{hint}")
        if not isinstance(metric, str):
            raise RecordRefused("bad_type", where, f"expected 'METRIC' or 'METRIC,FILTER', got {metric!r:.80}")
    for name, example in given.get("examples", {}).items():
        where = f"harness.examples.{name}"
        task, _, place = str(name).rpartition(".")
        if task not in tasks or not place.isdecimal():
            detail = f"expected TASK.NUMBER of a task of this file{nearest(task, tasks, 'there is')}"
            raise RecordRefused("bad_value", where, detail)
        if not isinstance(example, dict):
            raise RecordRefused("bad_type", where, f"expected {', '.join(_OF_EXAMPLE)}, got {example!r:.80}")
        check_names(example, _OF_EXAMPLE, f"{where}.")
        gate_fields(example, where)
    return HarnessSettings(**{key: given[key] for key in given if key not in ("from", "tasks")} | {"data": data})


def _roots(source: TaskSource, given: Any) -> list[Path]:
    """Return the folders of task files that the key ``from`` names, by default the installed harness's folder."""
    names = given if isinstance(given, list) else [given]
    if given is None:
        roots = [root for root in (installed_root(),) if root]
    elif not names or not all(isinstance(name, str) for name in names):
        raise RecordRefused("bad_type", "harness.from", f"expected a folder or several, got {given!r:.80}")
    else:
        roots = [(source.path.parent / name).resolve() for name in names]
    if not roots:
        raise RecordRefused("missing_required", "harness.from", "lm-eval is not installed: give the folder of tasks")
    if missing := [name for name, root in zip(names, roots, strict=True) if not root.is_dir()]:
        raise RecordRefused("bad_value", "harness.from", f"{missing[0]}: no such folder")
    return roots


def _loaded(source: TaskSource, resolver: Resolver, wanted: HarnessSettings) -> LoadedFile:
    tasks, errors, remarks = [], [], []
    for config in resolver.configs.values():
        # A task's row on the board lists the groups that contain the task and have metrics.
        groups = {name: of for name, of in resolver.groups.items() if of["metrics"] and config.name in of["tasks"]}
        try:
            task = make_task(source, config, wanted, groups)
            examples: Any = task.examples
            errors += examples.check(partial(source.options.used, task.name))
            if task.examples:
                tasks.append(task)
                remarks += [(1, remark) for remark in task.remarks]
        except (RecordRefused, ScoringError) as fault:
            rule, where = getattr(fault, "rule", "bad_value"), getattr(fault, "field", "_function")
            detail = getattr(fault, "detail", str(fault))
            detail = detail if detail.startswith((f"{config.name} ", f"{config.name}:")) else f"{config.name}: {detail}"
            errors.append(RecordError(1, config.name, rule, where, detail))
    if not errors:
        remarks += [(1, remark) for remark in _without_metric(resolver.groups, tasks)]
    return LoadedFile(tuple(tasks), errors, draws_few_shots=True, remarks=remarks)


def _without_metric(groups: Mapping[str, Mapping[str, Any]], tasks: Sequence[HarnessTask]) -> Iterator[str]:
    """Yield a sentence for each of a group's metrics that no task in the group has."""
    for name, group in groups.items():
        members = [task for task in tasks if task.name in group["tasks"]]
        # A function may return values under any name.
        if any(
            task.config_of.get("process_results") or any(m.function for m in task.measurer.measures) for task in members
        ):
            continue
        known = {
            (measure.name, each) for task in members for measure in task.measurer.measures for each in task.pipelines
        }
        for metric in group["metrics"]:
            filters = metric.get("filter_list")
            wanted = {(metric["metric"], each) for each in listed(filters)} if filters else {metric["metric"]}
            if not wanted & (known if filters else {measure for measure, _ in known}):
                of = f" with the filter {', '.join(map(str, listed(filters)))}" if filters else ""
                there = ", ".join(sorted({measure for measure, _ in known}))
                yield f"the group {name} has no {metric['metric']}{of}: none of its tasks has one; there is {there}"


def checked_parts(config: Config, call: Callable[..., Any]) -> _Parts:
    """Return the metrics, the pipelines and the request fields; raise RecordRefused for an invalid key.

    ``call`` runs one of the task's own functions.
    """
    check_config(config)
    return measures_of(config), pipelines(config.get("filter_list"), call, config.functions), generation_of(config)


def make_task(source: TaskSource, config: Config, wanted: HarnessSettings, groups: Mapping[str, Any]) -> HarnessTask:
    """Return the task of ``config``; raise RecordRefused or ScoringError if the task cannot run."""
    reader = Documents(config, ())
    measures, steps, generation = checked_parts(config, reader.call)
    trusts = source.options.trusts
    refs = [*config.functions, *own_filters(steps)]
    for ref in refs:
        if not all(map(trusts, (source.path, config.file, *([ref.file] if ref.file.is_file() else [])))):
            raise RecordRefused("not_trusted", "!function", f"{ref}: Python outside of the trusted paths")
    data = source_of(config, wanted.data)
    start = reader.load(config.get("process_docs"), config.shots["process_docs"], config.shots.get("samples"))
    reader.load(*refs)  # report a missing scoring function before the model answers
    with seeded(start=start) as has_drawn:
        docs, sha256 = _documents(config, reader, data)
        draws = has_drawn()
    docs, pool = _drawn(config, reader, data, start) if draws else (docs, None)
    documents = Documents(config, getattr(docs, "column_names", None) or [*docs[0]])
    listed = [*docs]
    has_inputs = config.has_choices and isinstance(documents.text(listed[0]), int)
    has_targets = isinstance(documents.target(listed[0]), list)
    given, count = source.options.num_fewshot, config.get("num_fewshot", 0)
    count = count if given is None or config.get("num_fewshot") == 0 else given
    if pool is None and count:
        with seeded(start=start):
            pool = _pool(config, reader, data)
    shots = _shots(config, pool or (), count)
    if config.get("doc_to_image") is not None:
        from pytest_lmeval.formats.harness.images import check_images

        check_images(wanted.chat, count)
    decisive = _decisive(config, wanted, measures, [*steps])
    facts = {
        "task": plain({key: value for key, value in config.given.items() if key != "metadata"}),
        "functions": source_digest(refs),
        "metric": decisive,
    }
    own = wanted.of_examples(config.name)
    if own and max(own) >= len(listed):
        where = f"harness.examples.{config.name}.{max(own)}"
        raise RecordRefused("bad_value", where, f"{config.name} has {len(listed)} documents, from 0 on")
    maker = Maker(config, documents, shots, listed, decisive, own, wanted.system, wanted.chat, has_inputs)
    content = json.dumps([facts, sha256, count, wanted.chat, wanted.system], sort_keys=True, default=str)
    return HarnessTask(
        name=config.name,
        path=source.path,
        sha256=hashlib.sha256(content.encode()).hexdigest(),
        config_of=config,
        documents=documents,
        measurer=Measurer(config, documents, measures, has_inputs, has_targets),
        pipelines=steps,
        generation=generation,
        decisive=decisive,
        rows=listed,
        facts=facts,
        examples=Examples(maker.make, range(len(listed)), 1),
        dataset={"path": str(config.get("dataset_path")), "sha256": sha256, "revision": data.revision},
        iterations=wanted.bootstrap,
        groups=groups,
        missed=maker.missed,
    )


def _documents(config: Config, reader: Documents, data: Source) -> tuple[Sequence[Any], str]:
    split = config.evaluated_split
    if split is None:
        raise RecordRefused("missing_required", "test_split", "expected test_split or validation_split")
    rows, sha256 = data.split(split)
    docs = _processed(reader, config.get("process_docs"), rows)
    if not len(docs):
        raise RecordRefused("bad_value", "dataset", f"the split {split!r} has no document")
    return docs, sha256


def _processed(reader: Documents, ref: FunctionRef | None, rows: RowSet) -> Sequence[Any]:
    return rows if ref is None else _rows("process_docs", "rows", reader.run(ref, rows))


def _rows(key: str, expected: str, made: Any) -> Sequence[Any]:
    if not isinstance(made, Sequence) or not all(isinstance(row, Mapping) for row in made):
        raise RecordRefused("bad_type", key, f"expected {expected}, got {made!r:.80}")
    return made


def _drawn(config: Config, reader: Documents, data: Source, start: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the documents and the few-shot pool of a task that draws at random, made in the harness's order.

    The harness makes the pool first, even if the task needs no few-shot examples, and processes a split only once.
    """
    with seeded(start=start):
        pool = _pool(config, reader, data)
        is_same = _pool_split(config) == (config.evaluated_split, config.get("process_docs"))
        return pool if is_same else _documents(config, reader, data)[0], pool


def _shots(config: Config, pool: Sequence[Any], count: int) -> Shots:
    settings = config.shots
    sampler = settings.get("sampler", "default")
    if sampler not in ("default", "first_n"):
        raise RecordRefused("not_supported", "fewshot_config.sampler", f"{sampler!r}; one of default, first_n")
    return Shots(sampler, pool, count, settings.get("split") == config.get("test_split"))


def _pool(config: Config, reader: Documents, data: Source) -> Sequence[Any]:
    samples = config.shots.get("samples")
    if samples is not None and not config.shots.get("split"):
        given = reader.run(samples) if isinstance(samples, FunctionRef) else samples
        return _rows("fewshot_config.samples", "a list of rows", given)
    split, ref = _pool_split(config)
    return _processed(reader, ref, data.split(split)[0])


def _pool_split(config: Config) -> tuple[str, FunctionRef | None]:
    """Return the split of few-shot examples, and the function that processes its rows."""
    settings = config.shots
    if settings.get("split"):
        return settings["split"], settings["process_docs"]
    splits = [config.get(f"{kind}_split") for kind in ("training", "validation", "test")]
    return next(filter(None, splits)), config.get("process_docs")


def _decisive(
    config: Config, wanted: HarnessSettings, measures: Sequence[HarnessMetric], filters: Sequence[str]
) -> str:
    metrics = [measure.name for measure in measures]
    chosen = wanted.metric.get(config.name)
    if chosen is None:
        return f"{metrics[0]},{filters[0]}"
    name = chosen if "," in chosen else f"{chosen},{filters[0]}"
    known = [f"{metric},{each}" for metric in metrics for each in filters]
    # A function may return values under other names, which are known only after scoring.
    has_function = config.get("process_results") is not None or any(measure.function for measure in measures)
    is_open = has_function and name.rpartition(",")[2] in filters
    if name not in known and not is_open:
        raise RecordRefused("bad_value", "harness.metric", f"{chosen!r}{nearest(name, known, 'expected one of')}")
    return name
