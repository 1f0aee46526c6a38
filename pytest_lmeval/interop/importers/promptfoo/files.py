"""The files that a config names: those below its folder, and no others."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.document import YamlDocument, YamlFault
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node
from pytest_lmeval.interop.importers.promptfoo.yaml_files import parse_config, resolved

PREFIX = "file://"
_MOST_BYTES = 16 << 20
_MOST_FILES = 1000
_PROGRAMS = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go", ".sh", ".bash"})
_YAML = frozenset({".yaml", ".yml"})


def is_reference(value: Any) -> bool:
    """Tell whether a value names a file."""
    return isinstance(value, str) and value.startswith(PREFIX)


def read_config(path: Path) -> Node:
    """Return the config; raise UsageError where it cannot be read, with line and column where it cannot be parsed."""
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
        if not any(mark in pattern for mark in "*?["):
            return [self._checked(self.path / pattern, node)]
        found = [path for path in sorted(self.path.glob(pattern)) if path.is_file()]
        if not found or len(found) > _MOST_FILES:
            raise LeftOut(f"{name!r} names {len(found):,} files; expected 1 to {_MOST_FILES:,}", node)
        return [self._checked(path, node) for path in found]

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
            raise LeftOut(
                f"{path.name} leads out of the config's folder, by a link; only files below it are read", node
            )
        if not path.is_file():
            raise LeftOut(f"there is no file {path.relative_to(self.path).as_posix()}", node)
        return path


def _parsed(data: bytes, suffix: str, name: str) -> Node:
    node = _read(data, suffix, name)
    value, referred = resolved(node.value)
    return replace(node, value=value, referred=referred)


def _read(data: bytes, suffix: str, name: str) -> Node:
    if suffix == ".json":
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            pass  # YAML says where, and takes most of what JSON editors take besides
        else:
            return _with_places(value, data, name)
    return _with_places(parse_config(data), data, name)


def _with_places(value: Any, data: bytes, name: str) -> Node:
    if isinstance(value, YamlDocument):
        return Node(value, name, value)
    # Places are of documents that are mappings: a list is read once more as the value of a key, a line further down.
    for prefix, shift in ((b"root:\n", 0), (b"root: ", 1)) if isinstance(value, list) else ((b"", 1),):
        try:
            document = parse_config(prefix + data)
        except YamlFault:
            continue
        if isinstance(document, YamlDocument) and not prefix and document == value:
            return Node(value, name, document)
        if isinstance(document, YamlDocument) and document.get("root") == value:
            return Node(value, name, document, ("root",), shift)
    return Node(value, name)
