"""Read a project's pytest configuration for commands that run without pytest."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.data.limits import set_max_data_bytes, set_max_media_bytes
from pytest_lmeval.data.lines import MAX_LINE_BYTES
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import LoadOptions
from pytest_lmeval.numbers import Number
from pytest_lmeval.starter.settings import ALONE, FILES, inner, parsed, read_text

_TEST_FILES = ("test_*.py", "*_test.py")


def load_options(paths: Sequence[Path], configs: Iterable[Any] = ()) -> LoadOptions:
    """Return the options for loading the task files in ``paths``, and apply the project's limits on data and media."""
    apply_limits(paths)
    file, options = pytest_options(paths)
    given = options.get("lm_max_line_bytes", MAX_LINE_BYTES)
    longest = Number(1, whole=True).of_option(f"{file}: lm_max_line_bytes", given)
    trusted = _trusted_paths(file, options.get("lm_trusted_paths"))
    return LoadOptions(max_line_bytes=longest, configs=tuple(configs), trusted=trusted)


def apply_limits(paths: Iterable[Path]) -> None:
    """Apply the limits on data sets and media that the pytest configuration for ``paths`` sets."""
    file, options = pytest_options(paths)
    for name, apply in (("lm_max_data_bytes", set_max_data_bytes), ("lm_max_media_bytes", set_max_media_bytes)):
        if name in options:
            try:
                apply(options[name])
            except UsageError as error:
                raise UsageError(f"{file}: {error}") from None


def _trusted_paths(file: Path | None, given: object) -> tuple[Path, ...] | None:
    """Return the folders in ``lm_trusted_paths``, or None if the option is unset, so that every folder is trusted."""
    if given is None or file is None:
        return None
    named = shlex.split(given, comments=True) if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(path, str) for path in named):
        raise UsageError(f"{file}: lm_trusted_paths: expected folders, got {given!r}")
    return tuple(file.parent / path for path in named)


def test_files(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the file name patterns of test modules, from pytest's ``python_files`` option."""
    file, options = pytest_options(paths)
    given = options.get("python_files", _TEST_FILES)
    named = shlex.split(given) if isinstance(given, str) else given
    if not isinstance(named, Sequence) or not all(isinstance(each, str) for each in named):
        raise UsageError(f"{file}: python_files: expected patterns, got {given!r}")
    return tuple(named)


def pytest_options(paths: Iterable[Path]) -> tuple[Path | None, dict[str, Any]]:
    """Return the file that configures pytest for ``paths``, or None, and the file's options.

    The search starts in the common folder of ``paths`` and moves up.
    """
    start = Path(os.path.commonpath([path.absolute() for path in paths]))
    for folder in (start, *start.parents):
        for name in FILES:
            path = folder / name
            options = _options(path) if path.is_file() else None
            if options is not None:
                return path, options
    return None, {}


def _options(path: Path) -> dict[str, Any] | None:
    content = parsed(path, read_text(path))
    tables = [table for keys in FILES[path.name] if (table := inner(content, keys)) is not None]
    options = {key: value for table in tables for key, value in table.items()}
    # An empty table counts, except in pyproject.toml, which most projects have for other reasons.
    return options if options or path.name in ALONE or (tables and path.name != "pyproject.toml") else None
