"""``lmeval add -f FILE...``: declarative tasks and data sets into the task folder, checked first."""

from __future__ import annotations

import argparse
import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.text import printable

__all__ = ["configure", "run"]

_MOST_CHANGES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "-f", dest="files", metavar="FILE", nargs="+", required=True, help="YAML files; patterns such as 'new/*.yaml'"
    )
    parser.add_argument("--to", metavar="DIR", type=Path, help="the task folder (default: the first of lm_task_paths)")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class _Addition:
    """A file to be added: what it is of, what it brings along, and where it goes."""

    source: Path
    key: str
    kind: str
    document: Mapping[str, Any]
    files: Mapping[Path, bytes]


def run(options: argparse.Namespace) -> int:
    """Add or update every file, or none where one is wrong; return 1 then."""
    project = Project()
    folder = options.to or project.folders[0]
    faults: list[str] = []
    additions: list[_Addition] = []
    for path in _matched(options.files):
        found = _read(project, path)
        if isinstance(found, _Addition):
            additions.append(found)
        else:
            faults += found
    faults += _same_keys(additions)
    if faults:
        show([*faults, "nothing was added"])
        return 1
    for addition in additions:
        show(_put(addition, folder))
    return 0


def _matched(patterns: Sequence[str]) -> list[Path]:
    paths: dict[Path, None] = {}
    for pattern in patterns:
        found = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern, recursive=True))
        if not found:
            raise UsageError(f"{pattern}: no such file")
        paths.update(dict.fromkeys(Path(each) for each in found if Path(each).is_file()))
    return list(paths)


def _read(project: Project, path: Path) -> _Addition | list[str]:
    from pytest_lmeval.formats.declarative.faults import as_records
    from pytest_lmeval.formats.declarative.load import check_declarative
    from pytest_lmeval.formats.yaml.document import Document, YamlFault
    from pytest_lmeval.formats.yaml.includes import Includer
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    data = path.read_bytes()
    try:
        document = parse_yaml(data, Includer(path))
    except YamlFault as fault:
        return [f"{path}:{fault.place.line}: bad_yaml _document: column {fault.place.column}: {fault.detail}"]
    if not isinstance(document, Document) or not document.keys() & {"definition", "file_path", "source"}:
        return [f"{path}:1: missing_required definition: neither a declarative task nor a data set"]
    folder = path.parent.resolve()
    if "definition" in document:
        faults = check_declarative(TaskSource(path, data, path.stem), document, project.registry)
        included = {each.path.relative_to(folder): each.data for each in document.includes.values()}
        files = {Path(path.name): data, **included}
    else:
        faults, rows = _dataset(path, document)
        files = {Path(path.name): data, **rows}
    if faults:
        return [error.at(path) for error in as_records(faults, document)]
    return _Addition(path, document["key"], "task" if "definition" in document else "data set", document, files)


def _dataset(path: Path, document: Mapping[str, Any]) -> tuple[list[Any], dict[Path, bytes]]:
    from pydantic import ValidationError

    from pytest_lmeval.data.rows import BadRows
    from pytest_lmeval.formats.declarative.faults import Fault, validation_faults
    from pytest_lmeval.formats.declarative.models import DatasetFile
    from pytest_lmeval.formats.declarative.rows import read_rows

    try:
        file = DatasetFile.model_validate(dict(document))
    except ValidationError as error:
        return validation_faults(error, document), {}
    name = file.file_path or (file.source.file_path if file.source else "")
    data = path.parent / name
    where = ("file_path",) if file.file_path else ("source",)
    try:
        read_rows(data)
        relative = data.resolve().relative_to(path.parent.resolve())
    except BadRows as fault:
        return [Fault(where, "bad_value", each) for each in fault.faults], {}
    except ValueError:
        return [Fault(where, "bad_value", f"{name}: expected a file beside the data set's own, or below it")], {}
    return [], {relative: data.read_bytes()}


def _same_keys(additions: Sequence[_Addition]) -> Iterator[str]:
    first: dict[tuple[str, str], Path] = {}
    for addition in additions:
        other = first.setdefault((addition.kind, addition.key), addition.source)
        if other is not addition.source:
            yield f"{addition.source}: the key {addition.key!r} is that of {other}, too"


def _put(addition: _Addition, folder: Path) -> Iterator[str]:
    from pytest_lmeval.cli.task_folder import read_document

    target = _target(addition, folder)
    before = read_document(target) if target.exists() else None
    changed = []
    for name, data in addition.files.items():
        path = target if name == Path(addition.source.name) else target.parent / name
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)
            changed.append(path)
    named = f"{addition.kind} {printable(addition.key, keep='')}"
    if not changed:
        yield f"{named}: unchanged ({target})"
        return
    yield f"{named}: {'created' if before is None else 'updated'} {', '.join(map(str, changed))}"
    if before is not None:
        yield from _changes(before, addition.document)


def _target(addition: _Addition, folder: Path) -> Path:
    """Return the file that has the key already, or a new one of the same name."""
    from pytest_lmeval.cli.task_folder import read_document

    kind = "definition" if addition.kind == "task" else "file_path source"
    for path in sorted(folder.rglob("*.yaml")):
        document = read_document(path)
        if document is not None and document.get("key") == addition.key and document.keys() & set(kind.split()):
            return path
    target = folder / addition.source.name
    if target.exists() and not os.path.samefile(target, addition.source):
        raise UsageError(f"{target}: another file has this name, and its key is not {addition.key!r}; rename one")
    return target


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    from pytest_lmeval.formats.yaml.document import field_name

    old, new = dict(_flat(before)), dict(_flat(after))
    keys = [key for key in {**old, **new} if old.get(key, _ABSENT) != new.get(key, _ABSENT)]
    for key in keys[:_MOST_CHANGES]:
        values = " -> ".join(_told(each.get(key, _ABSENT)) for each in (old, new))
        yield f"  {printable(field_name(key), keep='')}: {values}"
    if len(keys) > _MOST_CHANGES:
        yield f"  and {len(keys) - _MOST_CHANGES} more"


_ABSENT = object()


def _flat(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not members or not value:
        yield keys, value
        return
    for key, each in members:
        yield from _flat(each, (*keys, key))


def _told(value: Any) -> str:
    if value is _ABSENT:
        return "(not there)"
    text = json.dumps(value, ensure_ascii=False)
    return printable(text if len(text) <= 60 else f"{text[:57]}...", keep="")
