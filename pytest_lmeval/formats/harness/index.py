"""Which file of a folder has which task or group, by a search through bytes: most folders have thousands of files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.errors import RecordRefused, did_you_mean
from pytest_lmeval.frozen import dataclass

_LINE = re.compile(rb"^[\"']?(task|group|tag|class|include)[\"']?[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_ENTRY = re.compile(rb"\r?\n[ \t]*-[ \t]+(.*?)[ \t\r]*(?=\n|$)")
_QUOTE = rb"[\"']?"
# A name as it is, or in quotes of which it has none within.
_PLAIN = re.compile(_QUOTE + rb"[A-Za-z0-9_./-][^\"'#{}\[\]&*!|>%@`:\\]*" + _QUOTE)
_SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints"})
_VERSION = 3

Found = Mapping[str, Any]
"""What a search finds in a file: ``task``, ``group``, ``tag``, ``class`` and ``include``, those that it has."""


@dataclass(frozen=True, slots=True)
class Index:
    """The paths of tasks and of groups by name, and the names of each tag's tasks, sorted."""

    root: Path
    tasks: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def matching(self, name: str) -> list[str]:
        """Return the names that ``name``, perhaps with ``*`` or ``?`` in it, calls; raise RecordRefused for none."""
        known = (self.tasks, self.groups, self.tags)
        if any(name in names for names in known):
            return [name]
        if any(mark in name for mark in "*?["):
            found = sorted(each for names in (self.tasks, self.groups) for each in names if fnmatchcase(each, name))
            if found:
                return found
        hint = did_you_mean(name, [*self.tasks, *self.groups, *self.tags])
        where = f"no task, group or tag of {self.root} is called {name!r}"
        raise RecordRefused("bad_value", "harness.tasks", f"{where};{hint}" if hint else where)


def installed_root() -> Path | None:
    """Return the folder of the tasks of the installed lm-eval, which is not imported; None without one."""
    spec = find_spec("lm_eval")
    places = list(spec.submodule_search_locations or ()) if spec else []
    folder = Path(places[0]) / "tasks" if places else None
    return folder if folder is not None and folder.is_dir() else None


def index_of(root: Path) -> Index:
    """Return the index of the folder ``root``.

    It is kept in the user's cache, and what was found in a file as long as its path, size and time are the same.
    """
    root = root.resolve()
    kept = _kept(root)
    before = kept.get("files", {})
    files: dict[str, Any] = {}
    for path, size, changed in sorted(_files(str(root))):
        entry = before.get(path)
        files[path] = entry if entry and entry[:2] == [size, changed] else [size, changed, search(_bytes(path))]
    if files != before:
        kept = {"files": files, "names": _names({path: entry[2] for path, entry in files.items()})}
        _keep(root, kept)
    return Index(root, **kept.get("names", {}))


def search(data: bytes) -> dict[str, Any]:
    """Return what names a file's bytes hold at the root; a file of unusual form is parsed for it."""
    if data.lstrip().startswith(b"{"):
        return _parsed(data)
    found: dict[str, Any] = {}
    for line in _LINE.finditer(data):
        key, value = line[1].decode(), line[2]
        if key == "class":
            found[key] = True
        elif value:
            if not _PLAIN.fullmatch(value):
                return _parsed(data)
            found[key] = _text(value)
        else:
            entries = _entries(data, line.end())
            # The members of a group may be mappings: that they are there is enough.
            if not all(map(_PLAIN.fullmatch, entries)) and key != "task":
                return _parsed(data)
            found[key] = [*map(_text, entries)]
    return found


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip("\"' \t")


def _entries(data: bytes, place: int) -> list[bytes]:
    entries = []
    while (entry := _ENTRY.match(data, place)) is not None:
        entries.append(entry[1])
        place = entry.end()
    return entries


def _parsed(data: bytes) -> dict[str, Any]:
    from pytest_lmeval.formats.harness.document import parse_document

    try:
        document = parse_document(data, Path("file"))
    except RecordRefused:
        return {}
    return {
        key: True if key == "class" else document[key]
        for key in ("task", "group", "tag", "class", "include")
        if isinstance(document.get(key), str | list) or (key == "class" and key in document)
    }


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of every file that may be YAML: templates have no suffix."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=True):
                if entry.name not in _SKIPPED:
                    yield from _files(entry.path)
            elif entry.name.endswith((".yaml", "_yaml", ".yml")) or "." not in entry.name:
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _names(found: Mapping[str, Found]) -> dict[str, Any]:
    """Return tasks, groups and tags as the index has them: the first file of a name counts."""
    tasks: dict[str, str] = {}
    groups: dict[str, str] = {}
    tags: dict[str, set[str]] = {}
    for path in found:
        if not path.endswith(".yaml"):
            continue
        whole = _whole(path, found, ())
        name = whole.get("task")
        if "class" not in whole and isinstance(group := whole.get("group"), str):
            groups.setdefault(group, path)
        elif isinstance(name, str) and name not in tasks:
            tasks[name] = path
            given = whole.get("tag") or ()
            for tag in (given,) if isinstance(given, str) else given:
                tags.setdefault(str(tag), set()).add(name)
    return {"tasks": tasks, "groups": groups, "tags": {tag: sorted(names) for tag, names in tags.items()}}


def _whole(path: str, found: Mapping[str, Found], above: tuple[str, ...]) -> dict[str, Any]:
    """Return what a file and its includes have; one outside of the folder has nothing to add."""
    own = found.get(path)
    if own is None or path in above:
        return {}
    whole: dict[str, Any] = {}
    included = own.get("include") or ()
    for name in (included,) if isinstance(included, str) else included:
        whole |= _whole(os.path.normpath(os.path.join(os.path.dirname(path), str(name))), found, (*above, path))
    return whole | {key: value for key, value in own.items() if key != "include"}


def _cache_file(root: Path) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    name = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return Path(base) / "pytest-lmeval" / f"harness-{name}.json"


def _kept(root: Path) -> dict[str, Any]:
    try:
        kept = json.loads(_cache_file(root).read_text("utf-8"))
        return {key: dict(kept[key]) for key in ("files", "names")} if kept["version"] == _VERSION else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _keep(root: Path, kept: Mapping[str, Any]) -> None:
    file = _cache_file(root)
    # A cache that cannot be written costs time alone.
    with suppress(OSError, ValueError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps({"version": _VERSION, **kept}).encode())
