"""Build the tasks of a parsed YAML file, one for each config, or list the file's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.errors import nearest
from pytest_lmeval.formats.declarative.build import Builder
from pytest_lmeval.formats.declarative.checks import check_names, check_parts, columns_in
from pytest_lmeval.formats.declarative.datasets import Dataset, open_dataset
from pytest_lmeval.formats.declarative.faults import Fault, as_records, validation_faults
from pytest_lmeval.formats.declarative.models.base import ReadContext
from pytest_lmeval.formats.declarative.models.parameters import (
    CategoricalParameter,
    NumberParameter,
    Parameter,
    ParameterBase,
    TaskConfig,
    check_value,
)
from pytest_lmeval.formats.declarative.models.task import DeclarativeFile
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.configs import RESERVED
from pytest_lmeval.formats.yaml.document import YamlDocument
from pytest_lmeval.registry import Registry


def load_declarative(source: TaskSource, document: YamlDocument, registry: Registry) -> LoadedFile:
    """Return the tasks of ``document``, one for each config of :func:`task_configs`, or the file's errors."""
    parameters, faults = read_parameters(document)
    if faults:
        return LoadedFile((), as_records(faults, document))
    key = document.get("key")
    configs, faults = task_configs(key if isinstance(key, str) else "", parameters, source.options.configs)
    if faults:
        # Missing values hide other errors, so use arbitrary values to find them.
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
    """Return the errors that a task has regardless of its parameters' values."""
    if parameters is None:
        parameters, faults = read_parameters(document)
        if faults:
            return faults
    values = {each.key: each.default if each.default is not None else _stand_in(each) for each in parameters}
    file, faults = _read(document, registry, values)
    return faults if file is None else [*faults, *check_parts(file.definition, file.entity, registry)]


def _load(
    source: TaskSource,
    document: YamlDocument,
    registry: Registry,
    parameters: Sequence[ParameterBase],
    config: TaskConfig,
) -> tuple[DeclarativeTask | None, list[Fault]]:
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
    try:
        return DeclarativeFile.model_validate(dict(document), context=ReadContext(registry, values)), []
    except ValidationError as error:
        return None, validation_faults(error, document)


def _dataset(file: DeclarativeFile, path: Path) -> tuple[Dataset | None, list[Fault]]:
    reference = file.definition.dataset
    if reference.key is None and reference.path is None:
        return None, []
    try:
        return open_dataset(reference, path, columns_in(file.definition)), []
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


def read_parameters(document: YamlDocument) -> tuple[list[ParameterBase], list[Fault]]:
    """Return the parameters that ``config_spec`` declares, and their errors."""
    given = document.get("config_spec", [])
    try:
        parameters: list[ParameterBase] = list(TypeAdapter(list[Parameter]).validate_python(given))
    except ValidationError as error:
        return [], validation_faults(error, given, ("config_spec",))
    return parameters, [fault for number, each in enumerate(parameters) for fault in _check(number, each, parameters)]


def task_configs(
    key: str, parameters: Sequence[ParameterBase], configs: Sequence[Mapping[str, Any]]
) -> tuple[list[TaskConfig], list[Fault]]:
    """Return a config for each run of the task, and the errors in the configs' values.

    A config that sets no parameter of the task adds no run. If no config sets a parameter of the task, the task runs
    once, with defaults.
    """
    known = {each.key for each in parameters}
    given = [(config["name"], {**config["values"], **config["tasks"].get(key, {})}) for config in configs]
    addressed = ((name, {key: value for key, value in values.items() if key in known}) for name, values in given)
    own = [(name, values) for name, values in addressed if values]
    faults = [fault for config in configs for fault in _misaddressed(key, parameters, config)]
    runs: list[TaskConfig] = []
    for name, values in own or [("", {})]:
        complete = {each.key: values.get(each.key, each.default) for each in parameters}
        faults += _check_values(name, parameters, values, complete)
        runs.append(TaskConfig(name, complete))
    return runs, faults


def _stand_in(parameter: ParameterBase) -> Any:
    if isinstance(parameter, CategoricalParameter):
        return parameter.allowed_values[0]
    if isinstance(parameter, NumberParameter):
        number = next(limit for limit in (parameter.min, parameter.max, 1) if limit is not None)
        return int(number) if parameter.type == "int" else float(number)
    return {"boolean": True, "list": ["text"]}.get(parameter.type, "text")


def _check(number: int, parameter: ParameterBase, parameters: Sequence[ParameterBase]) -> Iterator[Fault]:
    if parameter.key in RESERVED:
        yield Fault(("config_spec", number, "key"), "bad_value", f"{parameter.key!r} is reserved for configs")
    if parameter.key in [other.key for other in parameters[:number]]:
        yield Fault(("config_spec", number, "key"), "bad_value", f"a second parameter {parameter.key!r}")
    if parameter.default is not None and (problem := check_value(parameter, parameter.default)):
        yield Fault(("config_spec", number, "default"), "bad_value", problem)


def _misaddressed(key: str, parameters: Sequence[ParameterBase], config: Mapping[str, Any]) -> Iterator[Fault]:
    known = [each.key for each in parameters]
    where = f"config {config['name']}" if config["name"] else "the config"
    for name in config["tasks"].get(key, {}):
        if name not in known:
            hint = nearest(name, known, "it has")
            yield Fault(("config_spec",), "bad_value", f"{where}: the task has no parameter {name!r}{hint}")
    for name in config["values"]:
        # An unknown name may be a parameter of another task, unless it looks like a misspelling.
        if name not in known and (hint := nearest(name, known)):
            yield Fault(("config_spec",), "bad_value", f"{where}: no parameter {name!r}{hint}")


def _check_values(
    config: str, parameters: Sequence[ParameterBase], given: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[Fault]:
    missing = [each for each in parameters if values[each.key] is None and not each.nullable]
    if missing:
        values_of = [(each.key, ", ".join(getattr(each, "allowed_values", [each.type]))) for each in missing]
        named = ", ".join(f"{key} ({allowed})" for key, allowed in values_of)
        wanted = f"no value for {named}; give them with --lm-config FILE"
        yield Fault(("config_spec",), "missing_required", f"config {config}: {wanted}" if config else wanted)
    for number, each in enumerate(parameters):
        if each.key in given and each not in missing and (problem := check_value(each, values[each.key])):
            where = f"config {config}: " if config else ""
            yield Fault(("config_spec", number, "key"), "bad_value", f"{where}{each.key}: {problem}")
