"""The data files that task files in YAML name: where they may be, and their rows as JSON values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.data.limits import TooLarge, read_files
from pytest_lmeval.data.rows import SUFFIXES, BadRows, numbered_rows
from pytest_lmeval.errors import nearest


class DataFile(NamedTuple):
    """The rows of a file as JSON values, the line on which each begins (of parquet its number), and the file's hash."""

    rows: Sequence[dict[str, Any]]
    lines: Sequence[int]
    sha256: str


def local_path(holder: Path, name: str) -> Path:
    """Return the data file that ``holder`` calls ``name``; raise BadRows for another kind, and outside the project."""
    path = (holder.parent / name).resolve()
    if path.suffix not in SUFFIXES:
        raise BadRows(f"{name}: expected a file that ends in {', '.join(SUFFIXES)}")
    roots = (holder.parent.resolve(), Path.cwd())
    if not any(path.is_relative_to(root) for root in roots):
        raise BadRows(f"{name}: outside of the project; expected a file below {roots[0].name} or the working folder")
    return path


def read_data(path: Path) -> DataFile:
    """Return the rows of a file; raise BadRows for one that is empty or cannot be read, too."""
    try:
        (data,) = read_files([path])
    except TooLarge as error:
        raise BadRows(str(error)) from None
    except OSError as error:
        raise BadRows(f"{path.name}: cannot be read: {error.strerror}{_instead(path)}") from None
    rows, lines = numbered_rows(path, data)
    if not rows:
        raise BadRows(f"{path.name}: no row in the file")
    if path.suffix == ".parquet":
        # Dates and the like become text: rows are JSON from here on.
        rows = json.loads(json.dumps(_finite(rows), default=str))
    return DataFile(rows, lines, hashlib.sha256(data).hexdigest())


def _instead(path: Path) -> str:
    if path.exists() or not path.parent.is_dir():
        return ""
    return nearest(path.name, [each.name for each in path.parent.iterdir() if each.suffix in SUFFIXES])


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
