"""A YAML document to its task: one for each config that it is to run with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.formats.declarative.build import Builder
from pytest_lmeval.formats.declarative.checks import check_names, check_parts
from pytest_lmeval.formats.declarative.config import TaskConfig, read_parameters, stand_ins, task_configs
from pytest_lmeval.formats.declarative.datasets import Dataset, open_dataset
from pytest_lmeval.formats.declarative.faults import Fault, as_records, validation_faults
from pytest_lmeval.formats.declarative.models.base import ReadContext
from pytest_lmeval.formats.declarative.models.parameters import ParameterBase
from pytest_lmeval.formats.declarative.models.task import DeclarativeFile
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.document import YamlDocument
from pytest_lmeval.registry import Registry


def load_declarative(source: TaskSource, document: YamlDocument, registry: Registry) -> LoadedFile:
    """Return the task that ``document`` describes, once for every config with values for it, and what is wrong."""
    parameters, faults = read_parameters(document)
    if faults:
        return LoadedFile((), as_records(faults, document))
    key = document.get("key")
    configs, faults = task_configs(key if isinstance(key, str) else "", parameters, source.options.configs)
    if faults:
        # Values that are not there hide what else is wrong: that is found with others in their place.
        faults = [*faults, *check_declarative(source, document, registry, parameters)]
        return LoadedFile((), as_records(faults, document))
    tasks: list[DeclarativeTask] = []
    for config in configs:
        task, found = _load(source, document, registry, parameters, config)
        tasks += [task] if task is not None else []
        faults += found
    return LoadedFile(() if faults else tasks, as_records(faults, document))


def check_declarative(
    source: TaskSource, document: YamlDocument, registry: Registry, parameters: Sequence[ParameterBase] | None = None
) -> list[Fault]:
    """Return what is wrong with a task whatever values its parameters have."""
    if parameters is None:
        parameters, faults = read_parameters(document)
        if faults:
            return faults
    file, faults = _read(document, registry, stand_ins(parameters))
    return faults if file is None else [*faults, *check_parts(file.definition, file.entity, registry)]


def _load(
    source: TaskSource,
    document: YamlDocument,
    registry: Registry,
    parameters: Sequence[ParameterBase],
    config: TaskConfig,
) -> tuple[DeclarativeTask | None, list[Fault]]:
    """Return the task with the values of ``config``, or what is wrong with it."""
    file, faults = _read(document, registry, config.values)
    if file is None:
        return None, faults
    builder = Builder(source, document, file, registry)
    dataset, faults = _dataset(file, source.path)
    faults = [*check_parts(file.definition, file.entity, registry), *faults, *builder.faults]
    if dataset is not None and not builder.faults:
        columns = [*dataset.columns, "sample_id"]
        faults += check_names(file.definition, builder.scorers, columns, file.entity)
        faults += _missing_columns(parameters, config, dataset.columns)
    if faults or dataset is None:
        return None, faults
    return builder.build(dataset, config)


def _read(
    document: YamlDocument, registry: Registry, values: Mapping[str, Any]
) -> tuple[DeclarativeFile | None, list[Fault]]:
    """Return the file with the parameters put in."""
    try:
        return DeclarativeFile.model_validate(dict(document), context=ReadContext(registry, values)), []
    except ValidationError as error:
        return None, validation_faults(error, document)


def _dataset(file: DeclarativeFile, path: Path) -> tuple[Dataset | None, list[Fault]]:
    reference = file.definition.dataset
    if reference.key is None and reference.path is None:
        return None, []
    try:
        return open_dataset(reference, path), []
    except BadRows as fault:
        keys = ("definition", "dataset", "key" if reference.path is None else "path")
        return None, [Fault(keys, "bad_value", each) for each in fault.faults]


def _missing_columns(
    parameters: Sequence[ParameterBase], config: TaskConfig, columns: Sequence[str]
) -> Iterator[Fault]:
    for number, parameter in enumerate(parameters):
        column: Any = config.values.get(parameter.key)
        if parameter.type == "dataset_column" and column is not None and column not in columns:
            detail = f"{parameter.key}: the data set has no column {column!r}; there is {', '.join(columns)}"
            yield Fault(("config_spec", number, "key"), "bad_value", detail)
