"""``lmeval add -f FILE...``: check declarative tasks and data sets, and copy them into the task folder."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.ini import apply_limits
from pytest_lmeval.cli.output import show, writing
from pytest_lmeval.cli.task_folder import Project, read_document, written_out
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", dest="files", metavar="FILE", nargs="+", required=True, help="YAML files; patterns such as 'new/*.yaml'"
    )
    parser.add_argument("--to", metavar="DIR", type=Path, help="the task folder (default: the first of lm_task_paths)")
    parser.add_argument("--force", action="store_true", help="replace files of other tasks, too")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class _Addition:
    """A task or data set to add; ``files`` maps relative paths to contents, with the YAML file first."""

    source: Path
    key: str
    kind: str
    files: Mapping[Path, bytes]


def run(options: argparse.Namespace) -> int:
    """Add or update all files or none; return 1 if a file is invalid, or raise UsageError if a path is occupied."""
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
    _put(additions, folder, force=options.force)
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
    from pytest_lmeval.formats.yaml.document import Includer, YamlDocument, YamlFault
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    if path.suffix != ".yaml":
        return [f"{path}: only .yaml files are collected as tasks or data sets"]
    data = path.read_bytes()
    try:
        document = parse_yaml(data, Includer(path))
    except YamlFault as fault:
        return [f"{path}:{fault.place.line}: bad_yaml _document: column {fault.place.column}: {fault.detail}"]
    if not isinstance(document, YamlDocument) or not document.keys() & {"definition", "file_path", "source"}:
        return [f"{path}:1: missing_required definition: neither a declarative task nor a data set"]
    if "definition" in document:
        faults = check_declarative(TaskSource(path, data, path.stem), document, project.registry)
        faults += _outside(path, document)
        if document.includes:
            data = written_out(data.decode("utf-8-sig"), path).encode()
        files = {Path(path.name): data}
    else:
        apply_limits([path])
        faults, rows = _dataset(path, document)
        files = {Path(path.name): data, **rows}
    if faults:
        return [error.at(path) for error in as_records(faults, document)]
    return _Addition(path, document["key"], "task" if "definition" in document else "data set", files)


def _outside(path: Path, document: Mapping[str, Any]) -> list[Any]:
    """Return errors if the path to a task's data leads out of the project or has an unknown suffix."""
    from pytest_lmeval.data.rows import BadRows, local_path
    from pytest_lmeval.formats.declarative.faults import Fault

    definition = document["definition"]
    dataset = definition.get("dataset") if isinstance(definition, Mapping) else None
    name = dataset.get("path") if isinstance(dataset, Mapping) else None
    if not isinstance(name, str) or "<<" in name:
        return []
    try:
        local_path(path, name)
    except BadRows as fault:
        return [Fault(("definition", "dataset", "path"), "bad_value", each) for each in fault.faults]
    return []


def _dataset(path: Path, document: Mapping[str, Any]) -> tuple[list[Any], dict[Path, bytes]]:
    from pydantic import ValidationError

    from pytest_lmeval.data.rows import BadRows, read_data
    from pytest_lmeval.formats.declarative.faults import Fault, validation_faults
    from pytest_lmeval.formats.declarative.models.task import DatasetFile

    try:
        file = DatasetFile.model_validate(dict(document))
    except ValidationError as error:
        return validation_faults(error, document), {}
    name = file.file_path or (file.source.file_path if file.source else "")
    data = path.parent / name
    where = ("file_path",) if file.file_path else ("source",)
    try:
        read_data(data)
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
            yield f"{addition.source}: {other} has the same key {addition.key!r}"


def _put(additions: Sequence[_Addition], folder: Path, *, force: bool) -> None:
    placed = [(addition, *_places(addition, folder)) for addition in additions]
    wanted: dict[Path, bytes] = {}
    reasons = []
    for addition, files, is_stored in placed:
        for path, data in files.items():
            reason = _refusal(path, folder)
            if not reason and not (force or is_stored or not path.exists() or path.read_bytes() == data):
                reason = "another file has this name; rename one, or replace it with --force"
            if not reason and wanted.setdefault(path, data) != data:
                reason = "two of the files would have this path; rename one"
            reasons += [f"{addition.source}: {path}: {reason}"] if reason else []
    if reasons:
        raise UsageError("\n".join([*reasons, "nothing was added"]))
    for addition, files, is_stored in placed:
        show([_written(addition, files, is_stored=is_stored)])


def _written(addition: _Addition, files: Mapping[Path, bytes], *, is_stored: bool) -> str:
    """Write the new and changed files; return a message that lists them."""
    named = f"{addition.kind} {printable(addition.key, keep='')}"
    changed = {path: data for path, data in files.items() if not path.exists() or path.read_bytes() != data}
    for path, data in changed.items():
        with writing(f"{named}: {path}"):
            write_atomically(path, data)
    if not changed:
        return f"{named}: unchanged ({next(iter(files))})"
    return f"{named}: {'updated' if is_stored else 'created'} {', '.join(map(str, changed))}"


def _places(addition: _Addition, folder: Path) -> tuple[dict[Path, bytes], bool]:
    """Return the contents by target path, YAML file first, and True if the folder already has a file with this key."""
    stored = _stored(addition, folder)
    if stored is not None and stored.samefile(addition.source):
        return {stored: stored.read_bytes()}, True
    target = stored or folder / addition.source.name
    files = [*addition.files.items()]
    return {target: files[0][1]} | {target.parent / name: data for name, data in files[1:]}, stored is not None


def _refusal(path: Path, folder: Path) -> str:
    # Neither ``..`` nor a link may escape from the folder.
    if path.resolve() != folder.resolve() / path.relative_to(folder):
        return "leads out of the task folder, or through a symbolic link"
    return "exists and is not a file" if path.exists() and not path.is_file() else ""


def _stored(addition: _Addition, folder: Path) -> Path | None:
    kind = {"definition"} if addition.kind == "task" else {"file_path", "source"}
    for path in sorted(folder.rglob("*.yaml")):
        document = read_document(path)
        if document is not None and document.get("key") == addition.key and document.keys() & kind:
            return path
    return None
