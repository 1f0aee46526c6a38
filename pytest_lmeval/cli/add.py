"""``lmeval add -f FILE...``: declarative tasks and data sets into the task folder, checked first."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.cli.ini import apply_max_data_bytes
from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.placing import Placing, changes, differences, refused, write_all
from pytest_lmeval.cli.task_folder import Project, read_document
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "-f", dest="files", metavar="FILE", nargs="+", required=True, help="YAML files; patterns such as 'new/*.yaml'"
    )
    parser.add_argument("--to", metavar="DIR", type=Path, help="the task folder (default: the first of lm_task_paths)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace files of other tasks, too; never what runs",
    )
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class _Addition:
    """A file to be added: what it is of, what it brings along, and where it goes."""

    source: Path
    key: str
    kind: str
    files: Mapping[Path, bytes]


def run(options: argparse.Namespace) -> int:
    """Add or update every file, or none: return 1 where one is wrong, raise UsageError where one has no place."""
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
        return [f"{path}: a task or data set is a file that ends in .yaml; no other would be collected"]
    data = path.read_bytes()
    try:
        document = parse_yaml(data, Includer(path))
    except YamlFault as fault:
        return [f"{path}:{fault.place.line}: bad_yaml _document: column {fault.place.column}: {fault.detail}"]
    if not isinstance(document, YamlDocument) or not document.keys() & {"definition", "file_path", "source"}:
        return [f"{path}:1: missing_required definition: neither a declarative task nor a data set"]
    folder = path.parent.resolve()
    if "definition" in document:
        faults = check_declarative(TaskSource(path, data, path.stem), document, project.registry)
        faults += _outside(path, document)
        included = {each.path.relative_to(folder): each.data for each in document.includes.values()}
        files = {Path(path.name): data, **included}
    else:
        apply_max_data_bytes([path])
        faults, rows = _dataset(path, document)
        files = {Path(path.name): data, **rows}
    if faults:
        return [error.at(path) for error in as_records(faults, document)]
    return _Addition(path, document["key"], "task" if "definition" in document else "data set", files)


def _outside(path: Path, document: Mapping[str, Any]) -> list[Any]:
    """Return the fault of a task whose data are outside of the project, or no data: a run would refuse it."""
    from pytest_lmeval.data.beside import local_path
    from pytest_lmeval.data.rows import BadRows
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

    from pytest_lmeval.data.beside import read_data
    from pytest_lmeval.data.rows import BadRows
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
            yield f"{addition.source}: the key {addition.key!r} is that of {other}, too"


def _put(additions: Sequence[_Addition], folder: Path, *, force: bool) -> None:
    placed = [(addition, _placings(addition, folder)) for addition in additions]
    placings = [placing for _, group in placed for placing in group]
    reasons = refused(placings, folder, force=force)
    if reasons:
        raise UsageError("\n".join([*reasons, "nothing was added"]))
    wanted = changes(placings)
    write_all(wanted)
    show(differences(wanted))
    changed = {change.path for change in wanted}
    show(_outcome(addition, group, changed) for addition, group in placed)


def _outcome(addition: _Addition, group: Sequence[Placing], changed: Collection[Path]) -> str:
    named = f"{addition.kind} {printable(addition.key, keep='')}"
    paths = [str(placing.path) for placing in group if placing.path in changed]
    if not paths:
        return f"{named}: unchanged ({group[0].path})"
    return f"{named}: {'created' if group[0].stored is None else 'updated'} {', '.join(paths)}"


def _placings(addition: _Addition, folder: Path) -> list[Placing]:
    """Return where the files of an addition go; its YAML comes first."""
    stored = _stored(addition, folder)
    target = stored or folder / addition.source.name
    own = frozenset() if stored is None else frozenset([stored, *filter(Path.is_file, _brought(stored))])
    names = {name: target if name == Path(addition.source.name) else target.parent / name for name in addition.files}
    return [Placing(addition.source, names[name], data, stored, own) for name, data in addition.files.items()]


def _stored(addition: _Addition, folder: Path) -> Path | None:
    """Return the file below ``folder`` that has the key already."""
    kind = {"definition"} if addition.kind == "task" else {"file_path", "source"}
    for path in sorted(folder.rglob("*.yaml")):
        document = read_document(path)
        if document is not None and document.get("key") == addition.key and document.keys() & kind:
            return path
    return None


def _brought(stored: Path) -> Iterator[Path]:
    """Yield the files that a stored task includes, or that a stored data set has its rows in."""
    document = read_document(stored)
    if document is None:
        return
    folder = stored.parent
    for included in document.includes.values():
        yield folder / included.path.relative_to(folder.resolve())
    source = document.get("source")
    for holder in (document, source if isinstance(source, dict) else {}):
        name = holder.get("file_path")
        if isinstance(name, str):
            yield folder / name
