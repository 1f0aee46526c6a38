"""Find and read a task's data set."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_lmeval.data.rows import SUFFIXES, BadRows, local_path, read_data
from pytest_lmeval.errors import nearest
from pytest_lmeval.formats.declarative.faults import as_records, validation_faults
from pytest_lmeval.formats.declarative.models.task import DatasetFile, DatasetReference
from pytest_lmeval.formats.yaml.claims import ROOT_KEYS
from pytest_lmeval.formats.yaml.document import YamlDocument, YamlFault
from pytest_lmeval.formats.yaml.parse import parse_yaml

_FOLDERS = (".", "datasets", "..", "../datasets")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A file's rows as mappings of columns, the file's hash, and the columns with ids and categories."""

    path: Path
    rows: Sequence[Mapping[str, Any]]
    sha256: str
    id_column: str | None = None
    category_column: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns of the rows, in the order of their first appearance."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


def open_dataset(reference: DatasetReference, task: Path, used: Collection[str] = ()) -> Dataset:
    """Return the data set to which ``task`` refers; raise BadRows if the data cannot be read.

    In a parquet file, bytes in the columns ``used`` become cells, and other columns with bytes are not read.
    """
    if reference.path is not None:
        return _named(reference, None, local_path(task, reference.path), used)
    assert reference.key is not None
    for path, described in find_dataset_files(task):
        if described.get("key") == reference.key:
            file = _checked(path, described)
            given = file.file_path or (file.source.file_path if file.source else None)
            if given is None or (file.file_path and file.source):
                raise BadRows(f"{path.name}: expected either file_path or source")
            return _named(reference, file, local_path(path, given), used)
    if Path(reference.key).suffix in SUFFIXES:
        # A parameter of type dataset may have a path as its value.
        return _named(reference, None, local_path(task, reference.key), used)
    known = [str(document["key"]) for _, document in find_dataset_files(task)]
    hint = f"{nearest(reference.key, known, 'there is')} (looked for *.yaml with key and file_path beside the task)"
    raise BadRows(f"no data set has the key {reference.key!r}{hint}")


def find_dataset_files(task: Path) -> Iterator[tuple[Path, YamlDocument]]:
    """Yield the YAML files whose keys a task can name: in the task's folder, its parent, and ``datasets`` in both."""
    seen: set[Path] = set()
    for name in _FOLDERS:
        folder = (task.parent / name).resolve()
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            if path in seen or b"key" not in (data := path.read_bytes()):
                continue
            seen.add(path)
            try:
                document = parse_yaml(data)
            except YamlFault:
                continue
            if not isinstance(document, YamlDocument) or any(key in document for key in ROOT_KEYS):
                continue
            if "key" in document and ("file_path" in document or "source" in document):
                yield path, document


def _checked(path: Path, document: YamlDocument) -> DatasetFile:
    try:
        return DatasetFile.model_validate(dict(document))
    except ValidationError as error:
        faults = as_records(validation_faults(error, document), document)
        raise BadRows(*(fault.at(path.name) for fault in faults)) from None


def _named(reference: DatasetReference, file: DatasetFile | None, path: Path, used: Collection[str]) -> Dataset:
    rows, _, sha256 = read_data(path, used)
    columns = [reference.id_column or (file.id_column if file else None)]
    columns.append(reference.category_column or (file.category_column if file else None))
    dataset = Dataset(path, rows, sha256, *columns)
    for column in filter(None, columns):
        if column not in dataset.columns:
            raise BadRows(f"{path.name}: no column {column!r}{nearest(column, dataset.columns, 'it has')}")
    return dataset
