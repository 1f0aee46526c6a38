"""Add lines for a new project to settings files, without changing existing content."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError

# The order of pytest. The first four count even if they are empty.
_ALONE = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_TABLES = {
    "pytest.toml": ("pytest",),
    ".pytest.toml": ("pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "tox.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
}
_PYPROJECT = (("tool", "pytest"), ("tool", "pytest", "ini_options"))


def read_text(path: Path) -> str:
    """Return the text of a file, "" if it does not exist; raise UsageError if it cannot be read."""
    try:
        return path.read_text("utf-8") if path.exists() else ""
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None


def parsed(path: Path, text: str) -> dict[str, Any]:
    """Return the content of a settings file; raise UsageError if it cannot be parsed."""
    try:
        if path.suffix == ".toml":
            return tomllib.loads(text)
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (ValueError, configparser.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def pytest_settings(folder: Path) -> tuple[Path, tuple[str, ...], Mapping[str, Any]]:
    """Return the file that configures pytest in ``folder``, its table, and the content of that.

    By default that is the table ``tool.pytest.ini_options`` of ``pyproject.toml``, which may not exist yet.
    """
    for name in (*_ALONE, "pyproject.toml", "tox.ini", "setup.cfg"):
        path = folder / name
        if not path.is_file():
            continue
        content = parsed(path, read_text(path))
        for keys in _PYPROJECT if name == "pyproject.toml" else (_TABLES[name],):
            found = _inner(content, keys)
            if found.keys() - {"ini_options"} or name in _ALONE:
                return path, keys, found
    return folder / "pyproject.toml", _PYPROJECT[-1], {}


def with_keys(path: Path, text: str, table: tuple[str, ...], keys: Mapping[str, Any]) -> str | None:
    """Return ``text`` with ``keys`` at the head of its table, or None if adding lines is not enough."""
    toml = path.suffix == ".toml"
    lines = "".join(f"{key} = {json.dumps(value) if toml else value}\n" for key, value in keys.items())
    name = ".".join(table)
    head = re.search(rf"^[ \t]*\[[ \t]*{re.escape(name)}[ \t]*\][ \t]*(?:[#;][^\n]*)?(?:\n|\Z)", text, re.MULTILINE)
    if head is None:
        before = f"{text.rstrip()}\n\n" if text.strip() else ""
        changed = f"{before}[{name}]\n{lines}"
    else:
        changed = f"{text[: head.end()].rstrip(chr(10))}\n{lines}{text[head.end() :]}"
    return changed if _adds(path, text, changed, table, keys) else None


def in_table(path: Path, text: str, table: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a table of a settings file, empty if it does not exist."""
    return _inner(parsed(path, text), table)


def _adds(path: Path, before: str, after: str, table: tuple[str, ...], keys: Mapping[str, Any]) -> bool:
    """Return True if the change only adds ``keys`` to the table."""
    expected = inner = parsed(path, before)
    try:
        for name in table:
            inner = inner.setdefault(name, {})
        inner.update(keys)
        return parsed(path, after) == expected
    except (UsageError, AttributeError):
        return False


def _inner(content: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}
