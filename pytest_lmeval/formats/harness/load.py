"""From a file that names tasks of the harness, or is one, to its tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, nearest
from pytest_lmeval.formats.harness.config import Config, check_config
from pytest_lmeval.formats.harness.dataset import source_of
from pytest_lmeval.formats.harness.document import FunctionRef, plain
from pytest_lmeval.formats.harness.documents import Documents
from pytest_lmeval.formats.harness.filters import pipelines
from pytest_lmeval.formats.harness.functions import source_digest
from pytest_lmeval.formats.harness.generation import generation_of
from pytest_lmeval.formats.harness.index import index_of, installed_root
from pytest_lmeval.formats.harness.making import Maker
from pytest_lmeval.formats.harness.measures import Measurer, measures_of
from pytest_lmeval.formats.harness.prompts import ContextBuilder, Shots
from pytest_lmeval.formats.harness.resolve import Resolver
from pytest_lmeval.formats.harness.rows import RowSet
from pytest_lmeval.formats.harness.settings import HarnessSettings, given_settings, settings_of
from pytest_lmeval.formats.harness.task import HarnessTask
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.document import line_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import RecordError


def load_harness(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> LoadedFile:
    """Return the tasks that the key ``harness`` of a parsed YAML file names, or what is wrong with it."""
    try:
        given = given_settings(document)
        root = _root(source, given.get("from"))
        resolver = Resolver(index_of(root))
        for name in given["tasks"]:
            resolver.want(name)
        wanted = settings_of(given, source.path.parent, resolver.configs)
    except RecordRefused as refused:
        line = line_of(document, refused.field)
        return LoadedFile((), (RecordError(line, None, refused.rule, refused.field, refused.detail),))
    return _loaded(source, resolver, wanted)


def load_harness_file(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return the task, or the tasks of the group, of one of the harness's own files."""
    root = next((each for each in source.path.resolve().parents if each.parts[-2:] == ("lm_eval", "tasks")), None)
    resolver = Resolver(index_of(root or source.path.resolve().parent))
    try:
        resolver.add(source.path)
    except RecordRefused as refused:
        return LoadedFile((), (RecordError(1, None, refused.rule, refused.field, refused.detail),))
    data = source.path.parent / "data"
    return _loaded(source, resolver, HarnessSettings(data=data if data.is_dir() else None))


def _root(source: TaskSource, given: str | None) -> Path:
    root = installed_root() if given is None else (source.path.parent / given).resolve()
    if root is None:
        raise RecordRefused("missing_required", "harness.from", "lm-eval is not installed: say the folder of its tasks")
    if not root.is_dir():
        raise RecordRefused("bad_value", "harness.from", f"{given}: no such folder")
    return root


def _loaded(source: TaskSource, resolver: Resolver, wanted: HarnessSettings) -> LoadedFile:
    tasks, errors = [], []
    for config in resolver.configs.values():
        try:
            task = replace(make_task(source, config, wanted), groups=_groups(resolver, config.name))
            examples: Any = task.examples
            errors += examples.check(partial(source.options.used, task.name))
            if task.examples:
                tasks.append(task)
        except (RecordRefused, ScoringError) as fault:
            rule, where = getattr(fault, "rule", "bad_value"), getattr(fault, "field", "_function")
            detail = getattr(fault, "detail", str(fault))
            detail = detail if detail.startswith(config.name) else f"{config.name}: {detail}"
            errors.append(RecordError(1, config.name, rule, where, detail))
    return LoadedFile(tuple(tasks), errors, draws_few_shots=True)


def _groups(resolver: Resolver, task: str) -> dict[str, Any]:
    """Return the groups with metrics that a task is in, as notes of its row."""
    return {
        group.name: {"tasks": [*group.tasks], "metrics": [dict(each) for each in group.metrics]}
        for group in resolver.groups
        if group.metrics and task in group.tasks
    }


def make_task(source: TaskSource, config: Config, wanted: HarnessSettings) -> HarnessTask:
    """Return the task of ``config``; raise RecordRefused or ScoringError for what it lacks."""
    check_config(config)
    _check_trust(source, config)
    measures = measures_of(config)
    data = source_of(config, wanted.data)
    split = config.get("test_split") or config.get("validation_split")
    if split is None:
        raise RecordRefused("missing_required", "test_split", f"{config.name}: expected test_split or validation_split")
    rows, sha256 = data.split(split)
    reader = Documents(config, ())
    docs = _processed(reader, config.get("process_docs"), rows)
    if not len(docs):
        raise RecordRefused("bad_value", "dataset", f"{config.name}: the split {split!r} has no document")
    documents = Documents(config, getattr(docs, "column_names", None) or [*docs[0]])
    listed = [*docs]
    first = listed[0]
    has_inputs = config.has_choices() and isinstance(documents.text(first), int)
    has_targets = isinstance(documents.target(first), list)
    builder = ContextBuilder(config, documents, wanted.system, wanted.chat, has_inputs)
    count = config.get("num_fewshot", 0)
    given = source.options.num_fewshot
    count = count if given is None or config.get("num_fewshot") == 0 else given
    shots = _shots(config, reader, data, count)
    steps = pipelines(config.get("filter_list"), documents.call)
    decisive = _decisive(config, wanted, [measure.name for measure in measures], [*steps])
    facts = {
        "task": plain({key: value for key, value in config.given.items() if key != "metadata"}),
        "functions": source_digest(config.functions, config.root),
        "metric": decisive,
    }
    own = wanted.of_examples(config.name)
    if own and max(own) >= len(listed):
        detail = f"{config.name} has {len(listed)} documents, from 0 on"
        raise RecordRefused("bad_value", f"harness.examples.{config.name}.{max(own)}", detail)
    maker = Maker(config, documents, builder, shots, listed, decisive, own)
    content = json.dumps([facts, sha256, count, wanted.chat, wanted.system], sort_keys=True, default=str)
    return HarnessTask(
        name=config.name,
        path=source.path,
        sha256=hashlib.sha256(content.encode()).hexdigest(),
        config_of=config,
        documents=documents,
        measurer=Measurer(config, documents, measures, has_inputs, has_targets),
        pipelines=steps,
        generation=generation_of(config),
        decisive=decisive,
        rows=listed,
        facts=facts,
        examples=Examples(maker.make, range(len(listed)), 1),
        dataset={"path": str(config.get("dataset_path")), "sha256": sha256, "revision": data.revision},
        iterations=wanted.iterations,
    )


def _check_trust(source: TaskSource, config: Config) -> None:
    if config.functions and not (source.options.trusts(source.path) and source.options.trusts(config.file)):
        ref = config.functions[0]
        detail = f"{config.name}: !function {ref.module}.{ref.name} is Python outside of the trusted paths"
        raise RecordRefused("not_trusted", "!function", detail)


def _processed(reader: Documents, ref: Any, rows: RowSet) -> Any:
    made = rows if ref is None else reader.call(ref, rows)
    if not isinstance(made, Sequence) or not all(isinstance(row, Mapping) for row in made):
        raise RecordRefused("bad_type", "process_docs", f"expected rows, got {made!r:.80}")
    return made


def _shots(config: Config, reader: Documents, data: Any, count: int) -> Shots:
    settings = config.shots
    sampler = settings.get("sampler", "default")
    if sampler not in ("default", "first_n"):
        raise RecordRefused("not_supported", "fewshot_config.sampler", f"{sampler!r}; one of default, first_n")
    drops_itself = settings.get("split") == config.get("test_split")
    if count == 0:
        return Shots(sampler, (), 0, drops_itself)
    return Shots(sampler, [*_pool(config, reader, data)], count, drops_itself)


def _pool(config: Config, reader: Documents, data: Any) -> Any:
    settings = config.shots
    if settings.get("split"):
        return _processed(reader, settings.get("process_docs"), data.split(settings["split"])[0])
    samples = settings.get("samples")
    if samples is not None:
        given = reader.call(samples) if isinstance(samples, FunctionRef) else samples
        if not isinstance(given, Sequence) or not all(isinstance(row, Mapping) for row in given):
            raise RecordRefused("bad_type", "fewshot_config.samples", f"expected a list of rows, got {given!r:.80}")
        return given
    splits = [config.get(f"{kind}_split") for kind in ("training", "validation", "test")]
    return _processed(reader, config.get("process_docs"), data.split(next(filter(None, splits)))[0])


def _decisive(config: Config, wanted: HarnessSettings, metrics: Sequence[str], filters: Sequence[str]) -> str:
    chosen = wanted.metrics.get(config.name)
    if chosen is None:
        return f"{metrics[0]},{filters[0]}"
    name = chosen if "," in chosen else f"{chosen},{filters[0]}"
    known = [f"{metric},{each}" for metric in metrics for each in filters]
    if name not in known:
        hint = nearest(name, known, "expected one of")
        raise RecordRefused("bad_value", "harness.metric", f"{config.name}: {chosen!r}{hint}")
    return name
