"""Read a project's settings files, and add lines without changing existing content."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError

FILES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pytest.toml": (("pytest",),),
    ".pytest.toml": (("pytest",),),
    "pytest.ini": (("pytest",),),
    ".pytest.ini": (("pytest",),),
    "pyproject.toml": (("tool", "pytest"), ("tool", "pytest", "ini_options")),
    "tox.ini": (("pytest",),),
    "setup.cfg": (("tool:pytest",),),
}
"""The files that may configure pytest, with their tables, in pytest's order; pytest uses the first file with a
table."""
ALONE = frozenset({"pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"})
"""The files that pytest uses even if they have no table."""


def read_text(path: Path) -> str:
    """Return the text of a file, or "" if it does not exist; raise UsageError if it cannot be read."""
    try:
        return path.read_text("utf-8") if path.exists() else ""
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None


def parsed(path: Path, text: str) -> dict[str, Any]:
    """Return the content of a settings file; raise UsageError if it cannot be parsed."""
    try:
        if path.suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        # As in pytest, do not interpolate values; a value may continue on indented lines.
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (ValueError, configparser.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def pytest_settings(folder: Path) -> tuple[Path, tuple[str, ...], Mapping[str, Any]]:
    """Return the file that configures pytest in ``folder``, the name of its table, and the table's content.

    If no file configures pytest, return the table ``tool.pytest.ini_options`` of ``pyproject.toml``, which may not
    exist.
    """
    for name, tables in FILES.items():
        path = folder / name
        for keys in tables if path.is_file() else ():
            found = in_table(path, read_text(path), keys)
            if found.keys() - {"ini_options"} or name in ALONE:
                return path, keys, found
    return folder / "pyproject.toml", FILES["pyproject.toml"][-1], {}


def with_keys(path: Path, text: str, table: tuple[str, ...], keys: Mapping[str, Any]) -> str | None:
    """Return ``text`` with ``keys`` added at the start of the table, or None if the file needs other changes."""
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
    """Return a table of a settings file, or an empty mapping if the table does not exist."""
    return inner(parsed(path, text), table) or {}


def _adds(path: Path, before: str, after: str, table: tuple[str, ...], keys: Mapping[str, Any]) -> bool:
    """Return True if the change only adds ``keys`` to the table."""
    expected = within = parsed(path, before)
    try:
        for name in table:
            within = within.setdefault(name, {})
        within.update(keys)
        return parsed(path, after) == expected
    except (UsageError, AttributeError):
        return False


def inner(content: Any, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the table below ``keys``, or None if there is no such table."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else None
