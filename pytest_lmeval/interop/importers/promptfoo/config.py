"""Read a config and the files below its folder, and keep each value's location and remarks about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.document import Keys, YamlDocument, YamlFault, field_name
from pytest_lmeval.formats.yaml.parse import DocumentReader
from pytest_lmeval.interop.importers import Remark

REFERENCE = "$ref"
MAPPINGS = frozenset({".yaml", ".yml", ".json"})
_PREFIX = "file://"
_MOST_BYTES = 16 << 20
_MOST_FILES = 1000
_PROGRAMS = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go", ".sh", ".bash"})


class LeftOut(Exception):
    """The reason why a part of a config has no counterpart.

    ``node`` is the element within that part to which the reason applies, if known.
    """

    def __init__(self, why: str, node: Node | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.node = node


@dataclass(frozen=True, slots=True)
class Node:
    """A value, its file's name for messages, and the keys that lead to it, or its line if there is no document."""

    value: Any
    file: str
    document: YamlDocument | None = None
    keys: Keys = ()
    first_line: int = 1

    @property
    def line(self) -> int:
        """The value's line, counted from 1."""
        return self.first_line if self.document is None else self.document.place(self.keys).line

    @property
    def name(self) -> str:
        """The keys as one path."""
        return field_name(self.keys) if self.keys else "the file"

    def at(self, key: str) -> Node:
        """Return the node under ``key``; its value is None if the key is missing."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        return replace(self, value=inner, keys=(*self.keys, key))

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield a mapping's entries; any other value has no entries."""
        if isinstance(self.value, dict):
            yield from ((key, self.at(key)) for key in self.value)

    def elements(self) -> list[Node]:
        """Return the elements of a list, no element for None, and any other value as the only element."""
        if isinstance(self.value, list):
            return [replace(self, value=each, keys=(*self.keys, number)) for number, each in enumerate(self.value)]
        return [] if self.value is None else [self]

    def written_out(self) -> Node:
        """Return this node; raise LeftOut if it refers to another part of the config."""
        if isinstance(self.value, dict) and REFERENCE in self.value:
            pointer = self.value[REFERENCE]
            raise LeftOut(f"$ref {pointer!r:.80} is not followed; write out what it names, or use a YAML anchor", self)
        return self


@dataclass(frozen=True, slots=True)
class Remarks:
    """The remarks about a config, collected while it is read."""

    left_out: list[Remark] = field(default_factory=list)
    differs: list[Remark] = field(default_factory=list)

    def leave(self, node: Node, why: str, what: str = "") -> None:
        """Add a remark about a part that has no counterpart."""
        self.left_out.append(Remark(node.file, node.line, what or node.name, why))

    def leave_for(self, left: LeftOut, node: Node, what: str = "") -> None:
        """Add a remark with the reason in ``left``, which concerns ``node`` or a part of it."""
        self.leave(left.node or node, left.why, what)

    def differ(self, node: Node, why: str, what: str) -> None:
        """Add a remark about a part whose meaning changes; list only that part's first location."""
        if not any((what, why) == (each.what, each.why) for each in self.differs):
            self.differs.append(Remark(node.file, node.line, what, why))

    def leave_others(
        self, node: Node, known: frozenset[str], why: Mapping[str, str] | str = "nothing here reads it"
    ) -> None:
        """Add a remark about every entry of a mapping whose key is not in ``known``.

        ``why`` is a single reason, or maps keys to reasons.
        """
        for key, inner in node.items():
            if key not in known:
                self.leave(inner, why if isinstance(why, str) else why.get(key, "nothing here reads it"))


def is_reference(value: Any) -> bool:
    """Return True if a value names a file."""
    return isinstance(value, str) and value.startswith(_PREFIX)


def read_config(path: Path) -> Node:
    """Return the config; raise UsageError if it cannot be read, with line and column if it cannot be parsed."""
    if path.suffix in _PROGRAMS:
        raise UsageError(f"{path}: a config that is a program is not run; write what it returns as YAML or JSON")
    try:
        found = _parsed(path.read_bytes(), path.suffix, path.name)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except YamlFault as fault:
        raise UsageError(f"{path}:{fault.place.line}: column {fault.place.column}: {fault.detail}") from None
    if not isinstance(found.value, dict):
        raise UsageError(f"{path}: expected a mapping with prompts, providers and tests")
    return found


@dataclass(frozen=True, slots=True)
class Folder:
    """A config's folder; the import reads only files below this folder."""

    path: Path

    def find(self, node: Node) -> list[Path]:
        """Return the file that a reference names, or all files that match its pattern; raise LeftOut if that fails."""
        name = str(node.value).removeprefix(_PREFIX)
        if "://" in name or "{{" in name:
            raise LeftOut(f"{name!r} is not a file in the config's folder; save its content there", node)
        pattern = name.removeprefix("./")
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise LeftOut(f"{name!r} leads out of the config's folder; only files below it are read", node)
        try:
            found = sorted(self.path.glob(pattern)) if any(mark in pattern for mark in "*?[") else [self.path / pattern]
            if not found or len(found) > _MOST_FILES:
                raise LeftOut(f"{name!r} names {len(found):,} files; expected 1 to {_MOST_FILES:,}", node)
            return [self._checked(path, node) for path in found]
        except (OSError, ValueError) as error:  # too long, or with characters that no file system accepts
            raise LeftOut(f"{name!r:.60} is not the name of a file: {error!s:.60}", node) from None

    def value(self, path: Path, node: Node) -> Any:
        """Return the value of a YAML or JSON file, or the text of another file; raise LeftOut if it is unreadable."""
        return self.parsed(path, node).value if path.suffix in MAPPINGS else self.text(path, node).strip()

    def text(self, path: Path, node: Node) -> str:
        """Return a file's text; raise LeftOut if the file cannot be read."""
        try:
            return self._bytes(path, node).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise LeftOut(f"{path.name}: not UTF-8 text (byte {error.start + 1}); prompts hold text", node) from None

    def parsed(self, path: Path, node: Node) -> Node:
        """Return the value of a YAML or JSON file with its positions; raise LeftOut if the file cannot be read."""
        try:
            return _parsed(self._bytes(path, node), path.suffix, path.relative_to(self.path).as_posix())
        except YamlFault as fault:
            raise LeftOut(f"{path.name}:{fault.place.line}: {fault.detail}", node) from None

    def _bytes(self, path: Path, node: Node) -> bytes:
        try:
            with path.open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
        except OSError as error:
            raise LeftOut(f"{path.name}: cannot be read: {error.strerror}", node) from None
        if len(data) > _MOST_BYTES:
            raise LeftOut(f"{path.name}: more than {_MOST_BYTES:,} bytes", node)
        return data

    def _checked(self, path: Path, node: Node) -> Path:
        # The name of a function may follow that of a program.
        name = path.name.partition(":")[0]
        if Path(name).suffix in _PROGRAMS:
            raise LeftOut(f"{name} is a program, which is not run; write what it returns into a file", node)
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise LeftOut(f"{path.name} leads out of the config's folder by a link; only files below it are read", node)
        if not path.is_file():
            raise LeftOut(f"there is no file {path.relative_to(self.path).as_posix()}", node)
        return path


def _parsed(data: bytes, suffix: str, name: str) -> Node:
    try:
        reader = DocumentReader(data)
        value = reader.read()
    except YamlFault:
        if suffix == ".json":
            # The YAML reader has a limit, so read a larger JSON file without positions.
            with suppress(ValueError, RecursionError):
                return Node(json.loads(data), name)
        raise
    return Node(value, name, YamlDocument({}, reader.places))
