"""A YAML document to its task: one for each config that it is to run with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.formats.declarative.build import Unbuilt, build_task
from pytest_lmeval.formats.declarative.checks import check_names, check_parts
from pytest_lmeval.formats.declarative.config import TaskConfig, read_parameters, stand_ins, task_configs
from pytest_lmeval.formats.declarative.datasets import Dataset, open_dataset
from pytest_lmeval.formats.declarative.faults import Fault, as_records, validation_faults
from pytest_lmeval.formats.declarative.models.base import ReadContext
from pytest_lmeval.formats.declarative.models.parameters import ParameterBase
from pytest_lmeval.formats.declarative.models.task import DeclarativeFile
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
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
        task, found = _Loader(source, document, registry, parameters).load(config)
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
    loader = _Loader(source, document, registry, parameters)
    file, faults = loader.read(TaskConfig("", stand_ins(parameters)))
    return faults if file is None else [*faults, *check_parts(file.definition, loader.entity(file), registry)]


class _Loader:
    """Loads one task; every step needs what the steps before it found."""

    def __init__(
        self, source: TaskSource, document: YamlDocument, registry: Registry, parameters: Sequence[ParameterBase]
    ) -> None:
        self.source = source
        self.document = document
        self.registry = registry
        self.parameters = parameters

    def load(self, config: TaskConfig) -> tuple[DeclarativeTask | None, list[Fault]]:
        """Return the task with the values of ``config``, or what is wrong with it."""
        file, faults = self.read(config)
        if file is None:
            return None, faults
        entity = self.entity(file)
        dataset, trouble = self._dataset(file)
        unbuilt = Unbuilt(self.source, self.document, file, self.registry)
        scorers, more = unbuilt.scorers()
        faults = [*check_parts(file.definition, entity, self.registry), *trouble, *more]
        if dataset is not None and not more:
            faults += [*self._check_names(file, scorers, dataset, entity), *self._check_columns(config, dataset)]
        if faults or dataset is None:
            return None, faults
        return build_task(unbuilt, scorers, dataset, config)

    def read(self, config: TaskConfig) -> tuple[DeclarativeFile | None, list[Fault]]:
        """Return the file with the parameters put in."""
        reading = ReadContext(self.registry, config.values)
        try:
            return DeclarativeFile.model_validate(dict(self.document), context=reading), []
        except ValidationError as error:
            return None, validation_faults(error, self.document)

    def entity(self, file: DeclarativeFile) -> str:
        """Return what is evaluated: ``model`` or ``dataset``."""
        return file.definition.evaluated_entity_type or file.evaluated_entity_type or "model"

    def _dataset(self, file: DeclarativeFile) -> tuple[Dataset | None, list[Fault]]:
        reference = file.definition.dataset
        if reference.key is None and reference.path is None:
            return None, []
        try:
            return open_dataset(reference, self.source.path), []
        except BadRows as fault:
            keys = ("definition", "dataset", "key" if reference.path is None else "path")
            return None, [Fault(keys, "bad_value", each) for each in fault.faults]

    def _check_names(
        self, file: DeclarativeFile, scorers: Sequence[Scorer], dataset: Dataset, entity: str
    ) -> list[Fault]:
        columns = [*dataset.rows.columns, "sample_id"]
        return list(check_names(file.definition, scorers, columns, entity))

    def _check_columns(self, config: TaskConfig, dataset: Dataset) -> list[Fault]:
        faults = []
        for number, parameter in enumerate(self.parameters):
            column: Any = config.values.get(parameter.key)
            if parameter.type == "dataset_column" and column is not None and column not in dataset.rows.columns:
                known = ", ".join(dataset.rows.columns)
                detail = f"{parameter.key}: the data set has no column {column!r}; there is {known}"
                faults.append(Fault(("config_spec", number, "key"), "bad_value", detail))
        return faults
