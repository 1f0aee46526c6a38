"""The files that a config names: those below its folder, and no others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # no types are published with it

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.document import Keys, YamlDocument, YamlFault
from pytest_lmeval.formats.yaml.parse import DocumentReader, parse_yaml
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node

PREFIX = "file://"
MAPPINGS = frozenset({".yaml", ".yml", ".json"})
_MOST_BYTES = 16 << 20
_MOST_FILES = 1000
_PROGRAMS = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go", ".sh", ".bash"})


def is_reference(value: Any) -> bool:
    """Tell whether a value names a file."""
    return isinstance(value, str) and value.startswith(PREFIX)


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
    """The folder of a config."""

    path: Path

    def find(self, node: Node) -> list[Path]:
        """Return the files that a reference names, of a pattern all of them; raise LeftOut."""
        name = str(node.value).removeprefix(PREFIX)
        if "://" in name or "{{" in name:
            raise LeftOut(f"{name!r} is no file of the config's folder; save what it names there", node)
        pattern = name.removeprefix("./")
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise LeftOut(f"{name!r} leads out of the config's folder; only files below it are read", node)
        try:
            found = sorted(self.path.glob(pattern)) if any(mark in pattern for mark in "*?[") else [self.path / pattern]
            if not found or len(found) > _MOST_FILES:
                raise LeftOut(f"{name!r} names {len(found):,} files; expected 1 to {_MOST_FILES:,}", node)
            return [self._checked(path, node) for path in found]
        except (OSError, ValueError) as error:  # too long, or with characters that no file system takes
            raise LeftOut(f"{name!r:.60} is no name of a file: {error!s:.60}", node) from None

    def value(self, path: Path, node: Node) -> Any:
        """Return what is in a YAML or JSON file, or the text of another one; raise LeftOut."""
        return self.parsed(path, node).value if path.suffix in MAPPINGS else self.text(path, node).strip()

    def text(self, path: Path, node: Node) -> str:
        """Return the text of a file; raise LeftOut."""
        try:
            return self._bytes(path, node).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise LeftOut(f"{path.name}: no text in UTF-8 (byte {error.start + 1}); prompts hold text", node) from None

    def parsed(self, path: Path, node: Node) -> Node:
        """Return what is in a YAML or JSON file, with its places; raise LeftOut."""
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
        # A program may be followed by the name of its function.
        name = path.name.partition(":")[0]
        if Path(name).suffix in _PROGRAMS:
            raise LeftOut(f"{name} is a program, which is not run; write what it returns into a file", node)
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise LeftOut(f"{path.name} leads out of the config's folder by a link; only files below it are read", node)
        if not path.is_file():
            raise LeftOut(f"there is no file {path.relative_to(self.path).as_posix()}", node)
        return path


class _MergeKey(str):
    """The key ``<<`` without quotes, whose value has entries to add."""

    __slots__ = ()


class _MergingReader(DocumentReader):
    """Reads merge keys too; entries that were merged have the place of their key."""

    def _key(self, event: Any, mapping: Any) -> str:
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            return _MergeKey("<<")
        return super()._key(event, mapping)

    def _mapping(self, start: Any, keys: Keys) -> dict[str, Any]:
        values = super()._mapping(start, keys)
        key = next((each for each in values if isinstance(each, _MergeKey)), None)
        given = [] if key is None else values.pop(key)
        merged: dict[str, Any] = {}
        for part in given if isinstance(given, list) else [given]:
            if not isinstance(part, dict):
                raise YamlFault(self.places[(*keys, "<<")], "<< expects a mapping or a list of mappings")
            merged = {**part, **merged}
        self.places |= {(*keys, name): self.places[(*keys, "<<")] for name in merged.keys() - values.keys()}
        return {**merged, **values}


def parse_config(data: bytes) -> Any:
    """Return the value of a YAML file, a YamlDocument if it is a mapping; raise YamlFault."""
    return parse_yaml(data, kind=_MergingReader)


def _parsed(data: bytes, suffix: str, name: str) -> Node:
    try:
        found = parse_config(data)
    except YamlFault:
        if suffix != ".json":
            raise
        try:
            return Node(json.loads(data), name)  # a large file, whose places are not known
        except (ValueError, RecursionError):
            pass
        raise
    if isinstance(found, YamlDocument):
        return Node(found, name, found)
    # Places are of documents that are mappings: a list is read once more as the value of a key, a line further down.
    try:
        document = parse_config(b"root:\n" + data)
    except YamlFault:
        return Node(found, name)
    return Node(found, name, document, ("root",), 0) if document == {"root": found} else Node(found, name)
