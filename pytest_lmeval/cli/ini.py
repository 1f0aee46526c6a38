"""Read a project's pytest configuration for commands that run without pytest."""

from __future__ import annotations

import configparser
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.data.limits import set_max_data_bytes
from pytest_lmeval.data.lines import MAX_LINE_BYTES
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import LoadOptions
from pytest_lmeval.numbers import Number

# In pytest's order: the first file with its table wins; the first four need no table.
_FILES: Sequence[tuple[str, tuple[tuple[str, ...], ...]]] = (
    ("pytest.toml", (("pytest",),)),
    (".pytest.toml", (("pytest",),)),
    ("pytest.ini", (("pytest",),)),
    (".pytest.ini", (("pytest",),)),
    ("pyproject.toml", (("tool", "pytest"), ("tool", "pytest", "ini_options"))),
    ("tox.ini", (("pytest",),)),
    ("setup.cfg", (("tool:pytest",),)),
)

_TEST_FILES = ("test_*.py", "*_test.py")


def load_options(paths: Sequence[Path], configs: Iterable[Any] = ()) -> LoadOptions:
    """Return the options for loading the task files in ``paths``, and apply the project's limit on data sets."""
    apply_max_data_bytes(paths)
    file, options = pytest_options(paths)
    given = options.get("lm_max_line_bytes", MAX_LINE_BYTES)
    longest = Number(1, whole=True).of_option(f"{file}: lm_max_line_bytes", given)
    trusted = _trusted_paths(file, options.get("lm_trusted_paths"))
    return LoadOptions(max_line_bytes=longest, configs=tuple(configs), trusted=trusted)


def apply_max_data_bytes(paths: Iterable[Path]) -> None:
    """Apply the ini option ``lm_max_data_bytes`` of the project that contains ``paths``."""
    file, options = pytest_options(paths)
    if "lm_max_data_bytes" in options:
        try:
            set_max_data_bytes(options["lm_max_data_bytes"])
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from None


def _trusted_paths(file: Path | None, given: object) -> tuple[Path, ...] | None:
    """Return the folders in ``lm_trusted_paths``, or None to trust all."""
    if given is None or file is None:
        return None
    named = shlex.split(given, comments=True) if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(path, str) for path in named):
        raise UsageError(f"{file}: lm_trusted_paths: expected folders, got {given!r}")
    return tuple(file.parent / path for path in named)


def test_files(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the file name patterns of tests: pytest's ``python_files``."""
    file, options = pytest_options(paths)
    given = options.get("python_files", _TEST_FILES)
    named = shlex.split(given) if isinstance(given, str) else given
    if not isinstance(named, Sequence) or not all(isinstance(each, str) for each in named):
        raise UsageError(f"{file}: python_files: expected patterns, got {given!r}")
    return tuple(named)


def pytest_options(paths: Iterable[Path]) -> tuple[Path | None, dict[str, Any]]:
    """Return the file that configures pytest for ``paths`` (or None), and its options.

    The search starts in the common folder of ``paths`` and moves up.
    """
    start = Path(os.path.commonpath([path.absolute() for path in paths]))
    for folder in (start, *start.parents):
        for name, tables in _FILES:
            path = folder / name
            options = _table(path, tables) if path.is_file() else None
            if options is not None:
                return path, options
    return None, {}


def _table(path: Path, tables: Iterable[Sequence[str]]) -> dict[str, Any] | None:
    content = _read(path)
    found: dict[str, Any] | None = {} if path.stem.endswith("pytest") else None
    for keys in tables:
        inner: Any = content
        for key in keys:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            found = {**(found or {}), **inner}
    return None if found is not None and not found and path.name == "pyproject.toml" else found


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        # As in pytest, there is no interpolation, and a value may continue on indented lines.
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (OSError, ValueError, configparser.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    return {section: dict(parser[section]) for section in parser.sections()}
