"""Find a project's task files by key, name or path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.cli.ini import load_options, pytest_options
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.formats.files import find_task_files, load_file
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.loading import default_registry
from pytest_lmeval.project import register_project_plugins
from pytest_lmeval.registry import Registry

if TYPE_CHECKING:
    from pytest_lmeval.formats.yaml.document import Includer, YamlDocument

_INCLUDE = re.compile(
    r"""^(?P<indent>[ ]*+)(?P<before>.*?)!include[ ]+(?P<name>"[^"]*"|'[^']*'|[^#\s,\]}]+)(?P<after>.*)$"""
)
_WRITTEN_KEY = re.compile(rb"^key:[ \t]*[\"']?([A-Za-z0-9_-]+)[\"']?[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A task file; ``key`` is the key of a declarative task, or '' for any other task."""

    path: Path
    name: str
    key: str = ""


class Project:
    """The registered names and the task files of the project in the working folder."""

    def __init__(self) -> None:
        self.registry: Registry = default_registry()
        register_project_plugins(self.registry, Path.cwd())

    @property
    def folders(self) -> list[Path]:
        """The project's task folders, from the ini option ``lm_task_paths``, which defaults to ``tasks``."""
        file, options = pytest_options([Path.cwd()])
        given: Any = options.get("lm_task_paths", "tasks")
        names = given if isinstance(given, list) else str(given).split()
        root = file.parent if file is not None else Path.cwd()
        folders = [root / name for name in names]
        # Return paths relative to the working folder, if possible.
        return [folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder for folder in folders]

    def files(self, paths: Sequence[Path] = ()) -> Iterator[FoundFile]:
        """Yield the task files in ``paths``, by default in the project's task folders."""
        wanted = list(paths) or [folder for folder in self.folders if folder.exists()]
        for path, name in find_task_files(wanted, self.registry):
            yield FoundFile(path, name, _key(path))

    def find(self, key: str) -> FoundFile:
        """Return the file of the task with this key, name or path; raise UsageError if it is missing or ambiguous."""
        path = Path(key)
        if path.suffix in self.registry.formats and path.is_file():
            return next(iter(self.files([path])))
        known: set[str] = set()
        for what, names in self._names(list(self.files())):
            found = [file for name, file in names if name == key]
            if len(found) > 1:
                raise UsageError(f"{key!r} is {what} {' and '.join(str(file.path) for file in found)}")
            if found:
                return found[0]
            known |= {name for name, _ in names if name}
        raise UnknownName("task", key, known)

    def _names(self, files: Sequence[FoundFile]) -> Iterator[tuple[str, list[tuple[str, FoundFile]]]]:
        """Yield the kinds of names that may select a file, in order of precedence; only the last kind loads files."""
        yield "the key of", [(file.key, file) for file in files]
        yield "the name of", [(file.name, file) for file in files]
        yield "a task of", [(task.name, file) for file in files for task in self.load(file, is_named=False).tasks]

    def declarative(self, key: str) -> FoundFile:
        """Return the file of a declarative task; raise UsageError for any other kind of task."""
        found = self.find(key)
        if not found.key:
            raise UsageError(f"{found.path}: not a declarative task: it has no key; copy or delete the file itself")
        return found

    def load(self, file: FoundFile, configs: Sequence[Any] = (), *, is_named: bool = True) -> LoadedFile:
        """Load a task file with the parameter values of ``configs``; see :class:`TaskSource` for ``is_named``."""
        options = load_options([file.path], configs)
        return load_file(file.path, file.name, self.registry, options=options, is_named=is_named)


def read_document(path: Path) -> YamlDocument | None:
    """Return the mapping in a YAML file, or None if the file does not contain a mapping."""
    from pytest_lmeval.formats.yaml.document import Includer, YamlDocument, YamlFault
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    try:
        document = parse_yaml(path.read_bytes(), Includer(path))
    except (OSError, YamlFault):
        return None
    return document if isinstance(document, YamlDocument) else None


def written_out(text: str, path: Path) -> str:
    """Expand all includes in ``text``, the YAML content of ``path``."""
    from pytest_lmeval.formats.yaml.document import Includer

    includer = Includer(path)
    return "".join(_line(line, includer) for line in text.splitlines(keepends=True))


def _line(line: str, includer: Includer) -> str:
    match = _INCLUDE.match(line.rstrip("\r\n"))
    if match is None or "#" in match["before"]:
        return line
    data = includer.read(match["name"].strip("\"'")).data.decode("utf-8").replace("\r\n", "\n")
    head = f"{match['indent']}{match['before']}"
    if match["after"].strip() or not _fits_a_block(data):
        return f"{head}{json.dumps(data)}{match['after']}\n"
    # Indent one step further than the key, which follows the dash of a list element.
    depth = len(match["indent"]) + 2 * match["before"].count("- ") + 2
    body = "".join(f"{' ' * depth}{each}\n" if each else "\n" for each in data.removesuffix("\n").split("\n"))
    return f"{head}|\n{body}"


def _fits_a_block(text: str) -> bool:
    """Return True if a YAML literal block can reproduce the text."""
    lines = text.split("\n")
    ends_once = text.endswith("\n") and not text.endswith("\n\n")
    plain = all(line.isprintable() or line.replace("\t", "").isprintable() for line in lines)
    return ends_once and plain and not lines[0].startswith((" ", "\t")) and lines[0] != ""


def _key(path: Path) -> str:
    if path.suffix != ".yaml" or b"definition" not in (data := path.read_bytes()):
        return ""
    document = read_document(path)
    if document is None:
        # Return the key even if the file is invalid: the error is reported when the file is loaded.
        written = _WRITTEN_KEY.search(data)
        return written[1].decode() if written else ""
    key = document.get("key") if "definition" in document else None
    return key if isinstance(key, str) else ""
