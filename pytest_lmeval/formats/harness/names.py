"""Find the files of tasks, groups and tags by name, and read the tasks' keys.

To index thousands of files quickly, the module searches their bytes and parses few of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.errors import RecordRefused, did_you_mean
from pytest_lmeval.formats.files import read_start
from pytest_lmeval.formats.harness.config import Config, listed, parse_document, read_document, read_included
from pytest_lmeval.formats.harness.functions import installed_root
from pytest_lmeval.frozen import dataclass

_LINE = re.compile(rb"^[\"']?(task|group|tag|class|include)[\"']?[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_ENTRY = re.compile(rb"\r?\n[ \t]*-[ \t]+(.*?)[ \t\r]*(?=\n|$)")
_QUOTE = rb"[\"']?"
# A name with or without quotes around it, but without quotes inside.
_PLAIN = re.compile(_QUOTE + rb"[A-Za-z0-9_./-][^\"'#{}\[\]&*!|>%@`:\\]*" + _QUOTE)
_SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints"})
_VERSION = 6
_GROUP_KEYS = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag", "include"})
_METRIC_KEYS = frozenset({"metric", "filter_list", "aggregation", "weight_by_size"})
_Keys = Mapping[str, Any]
_Above = tuple[str, ...]
"""The groups around a name, outermost first."""


@dataclass(frozen=True, slots=True)
class Index:
    """The paths of tasks and of groups by name, and the sorted names of each tag's tasks.

    ``duplicates`` maps each name that several files define to the first two paths. ``misnamed`` maps names to the paths
    of files whose suffix the harness does not read.
    """

    root: Path
    tasks: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    duplicates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    misnamed: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.tasks or name in self.groups or name in self.tags


def index_of(root: Path) -> Index:
    """Return the index for the folder ``root``.

    The user's cache folder keeps the index, with each file's path, size and modification time.
    """
    root = root.resolve()
    kept = _kept(root)
    before = kept.get("files", {})
    files: dict[str, Any] = {}
    for path, size, changed in sorted(_files(str(root))):
        entry = before.get(path)
        files[path] = (
            entry if entry and entry[:2] == [size, changed] else [size, changed, search(read_start(Path(path)))]
        )
    if files != before:
        kept = {"files": files, "names": _names({path: entry[2] for path, entry in files.items()})}
        _keep(root, kept)
    return Index(root, **kept.get("names", {}))


@dataclass(slots=True)
class Resolver:
    """Resolves names in the folders ``roots``, and collects the results in ``configs`` and ``groups``, in order.

    If several folders define a name, the first folder takes precedence. The installed harness comes last, and is
    searched only for names that no other folder has. A group consists of ``tasks``, the names of all its tasks, and
    ``metrics``, the metrics over these tasks.
    """

    roots: Sequence[Path]
    configs: dict[str, Config] = field(default_factory=dict)
    groups: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    indexes: dict[Path, Index] = field(default_factory=dict)

    def want(self, wanted: Any) -> None:
        """Add the tasks of ``wanted``: a name or pattern, a mapping with overrides, or a group."""
        given = {"task": wanted} if isinstance(wanted, str) else wanted
        if isinstance(given, dict) and "group" not in given and isinstance(given.get("task"), str):
            for name in self._matching(given["task"]):
                self._named(name, _without(given, "task"), (), given.get("task_alias"))
        elif isinstance(given, dict) and isinstance(given.get("group"), str) and "task" in given:
            name = given["group"]
            if name in self.groups or any(name in self._at(root).groups for root in self.roots):
                raise RecordRefused("bad_value", "harness.tasks", f"duplicate group {name!r}: choose another name")
            self._group(name, self.roots[0], given, {}, ())
        else:
            detail = f"expected a name, or task and overrides, got {wanted!r:.80}"
            raise RecordRefused("bad_value", "harness.tasks", detail)

    def _at(self, root: Path) -> Index:
        """Return the index for a folder, and make it on first use."""
        if root not in self.indexes:
            self.indexes[root] = index_of(root)
        return self.indexes[root]

    def _all_roots(self) -> Iterator[Path]:
        """Yield all folders; the installed harness's folder comes last."""
        yield from self.roots
        yield from filter(None, [installed_root()])

    def _index(self, name: str) -> Index | None:
        return next((index for index in map(self._at, self._all_roots()) if name in index), None)

    def _matching(self, name: str) -> list[str]:
        """Return the names that match ``name``, which may be a pattern; raise RecordRefused if no name matches."""
        is_pattern = any(mark in name for mark in "*?[")
        found: set[str] = set()
        for root in self._all_roots():
            if found and root not in self.roots:
                break
            index = self._at(root)
            if name in index:
                return [name]
            found.update(each for each in (*index.tasks, *index.groups) if is_pattern and fnmatchcase(each, name))
        if found:
            return sorted(found)
        own = [*map(self._at, self.roots)]
        for index in own:
            if name in index.misnamed:
                detail = f"{index.misnamed[name]} is not read: task files end in .yaml; rename it to use {name!r}"
                raise RecordRefused("bad_value", "harness.tasks", detail)
        hint = did_you_mean(name, [each for index in own for each in (*index.tasks, *index.groups, *index.tags)])
        where = f"no task, group or tag of {' or '.join(map(str, self.roots))} is called {name!r}"
        raise RecordRefused("bad_value", "harness.tasks", f"{where};{hint}" if hint else where)

    def add(self, path: Path) -> None:
        """Add the task or group in one file."""
        document = read_document(path)
        name = document.get("task")
        if "class" not in document and "group" in document:
            self._group(str(document["group"]), path, document, {}, ())
        elif isinstance(name, str):
            self._task(name, path, document, ())
        else:
            raise RecordRefused("missing_required", "task", f"{path.name}: expected the name of a task or a group")

    def _named(self, name: str, more: _Keys, above: _Above, alias: Any = None) -> list[str]:
        """Add the task, group or tag called ``name``, which is in an index.

        An ``alias`` renames a task.
        """
        index = self._index(name)
        assert index is not None
        if name in index.duplicates:
            first, second = (os.path.relpath(path, index.root) for path in index.duplicates[name])
            detail = f"{name} is in two files of {index.root}: {first} and {second}"
            raise RecordRefused("bad_value", "harness.tasks", f"{detail}; rename one, or name the file itself")
        if alias is not None and (name not in index.tasks or not isinstance(alias, str)):
            detail = f"expected a name for one task, got {alias!r:.80} for {name!r}"
            raise RecordRefused("bad_value", "harness.tasks.task_alias", detail)
        if name in index.groups:
            if name in above:
                raise RecordRefused("bad_value", "task", f"the group {name} is a member of itself")
            path = Path(index.groups[name])
            return self._group(name, path, read_document(path), more, above)
        if name in index.tasks:
            path = Path(index.tasks[name])
            return self._task(alias or name, path, {**read_document(path), **more}, above)
        return [found for task in index.tags[name] for found in self._named(task, more, above)]

    def _task(self, name: str, path: Path, keys: _Keys, above: _Above) -> list[str]:
        given = {**keys, "task": name}
        before = self.configs.get(name)
        groups = tuple(dict.fromkeys([*(before.groups if before else ()), *above]))
        if before is not None and before.given != given:
            ways = " and ".join([*before.groups, *above][:2]) or "this file"
            detail = f"{name} is listed twice, with different keys: by {ways}"
            remedy = "; name one of them with the key task_alias of harness.tasks"
            raise RecordRefused("bad_value", "task", detail + remedy)
        own = next((root for root in (*self.roots, *self.indexes) if path.resolve().is_relative_to(root)), path.parent)
        roots = (own, *(root for root in self.roots if root != own))
        self.configs[name] = Config(name, path, roots, given, groups)
        return [name]

    def _group(self, name: str, path: Path, document: _Keys, more: _Keys, above: _Above) -> list[str]:
        over = {**_without(document, *_GROUP_KEYS), **more}
        members = document.get("task")
        if not isinstance(members, list) or not members:
            raise RecordRefused("bad_value", "task", f"the group {name} has no members")
        self.groups[name] = {}  # a group comes before the groups within it
        tasks = [found for each in members for found in self._member(each, path, over, (*above, name))]
        self.groups[name] = {"tasks": [*dict.fromkeys(tasks)], "metrics": [*_metrics(name, document)]}
        return tasks

    def _member(self, given: Any, path: Path, over: _Keys, above: _Above) -> list[str]:
        """Add a member of the last group in ``above``, in the file at ``path``; the member's keys override ``over``."""
        group, keys = above[-1], {"task": given} if isinstance(given, str) else given
        if not isinstance(keys, dict) or not ("task" in keys or "group" in keys):
            raise RecordRefused("bad_value", "task", f"{group}: expected a name, task or group, got {given!r:.80}")
        kind = "group" if "group" in keys else "task"
        if "include" in keys:
            over = {**read_included(keys["include"], path if path.is_dir() else path.parent), **over}
            keys = _without(keys, "include")
        name, more = str(keys[kind]), {**over, **_without(keys, kind)}
        index = self._index(name)
        if index is not None and (kind == "task" or name in index.groups):
            return self._named(name, more, above)
        if kind == "group":
            # For a group that is defined inside another group, the outer group's keys apply.
            return self._group(f"{group}::{name}", path, keys, over, above)
        if isinstance(given, str):
            raise RecordRefused("bad_value", "task", f"the group {group} has the member {name!r}, which does not exist")
        return self._task(f"{group}::{name}", path, {**over, **keys}, above)


def _without(keys: _Keys, *names: str) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key not in names}


def _metrics(group: str, document: _Keys) -> Iterator[dict[str, Any]]:
    for each in listed(document.get("aggregate_metric_list") or None):
        if not isinstance(each, dict) or "metric" not in each or set(each) - _METRIC_KEYS:
            known = ", ".join(sorted(_METRIC_KEYS))
            raise RecordRefused("bad_value", "aggregate_metric_list", f"{group}: expected {known}, got {each!r:.80}")
        if each.get("aggregation", "mean") != "mean":
            raise RecordRefused("not_supported", "aggregate_metric_list", f"{group}: expected the aggregation mean")
        yield dict(each)


def search(data: bytes) -> dict[str, Any]:
    """Return the names at the root of a file by searching its bytes; parse the file only if its form is unusual."""
    if data.lstrip().startswith(b"{"):
        return _parsed(data)
    found: dict[str, Any] = {}
    for line in _LINE.finditer(data):
        key, value = line[1].decode(), line[2]
        entries = [value] if value else _entries(data, line.end())
        if key == "class":
            found[key] = True
        # Members of a group may be mappings; only their presence matters here.
        elif all(map(_PLAIN.fullmatch, entries)) or (key == "task" and not value):
            texts = [each.decode("utf-8", "replace").strip("\"' \t") for each in entries]
            found[key] = texts[0] if value else texts
        else:
            return _parsed(data)
    return found


def _entries(data: bytes, place: int) -> list[bytes]:
    entries = []
    while (entry := _ENTRY.match(data, place)) is not None:
        entries.append(entry[1])
        place = entry.end()
    return entries


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        document = parse_document(data, Path("file"))
    except RecordRefused:
        return {}
    names = ("task", "group", "tag", "include")
    found = {key: document[key] for key in names if isinstance(document.get(key), str | list)}
    return {**found, "class": True} if "class" in document else found


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path, size and modification time of every file that may be YAML; templates have no suffix."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=True):
                if entry.name not in _SKIPPED:
                    yield from _files(entry.path)
            elif entry.name.endswith((".yaml", "_yaml", ".yml")) or "." not in entry.name:
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _names(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the index's fields; if several files define a name, use the first file."""
    tasks: dict[str, str] = {}
    groups: dict[str, str] = {}
    tags: dict[str, set[str]] = {}
    duplicates: dict[str, Sequence[str]] = {}
    misnamed: dict[str, str] = {}
    for path in found:
        whole = _whole(path, found, ()) if path.endswith((".yaml", ".yml")) else {}
        name, group = whole.get("task"), whole.get("group")
        kind, called = (groups, group) if "class" not in whole and isinstance(group, str) else (tasks, name)
        if not isinstance(called, str):
            continue
        if path.endswith(".yml"):
            misnamed[called] = path
            continue
        if called in kind:
            duplicates.setdefault(called, [kind[called], path])
            continue
        kind[called] = path
        for tag in listed(whole.get("tag")) if kind is tasks else ():
            tags.setdefault(str(tag), set()).add(called)
    sorted_tags = {tag: sorted(names) for tag, names in tags.items()}
    named = {"tasks": tasks, "groups": groups, "tags": sorted_tags, "duplicates": duplicates}
    return {**named, "misnamed": misnamed}


def _whole(path: str, found: Mapping[str, Mapping[str, Any]], above: tuple[str, ...]) -> dict[str, Any]:
    """Return the entries of a file and its includes; ignore includes outside the folder."""
    if path not in found or path in above:
        return {}
    whole: dict[str, Any] = {}
    for name in listed(found[path].get("include")):
        whole |= _whole(os.path.normpath(os.path.join(os.path.dirname(path), str(name))), found, (*above, path))
    return whole | _without(found[path], "include")


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
    # Without the cache, the next run only takes longer.
    with suppress(OSError, ValueError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps({"version": _VERSION, **kept}).encode())
