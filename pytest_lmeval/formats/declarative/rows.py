"""The rows of a declarative task's data set."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.data.rows import read_rows as rows_in


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file, each a mapping of columns, and the hash of the file."""

    path: Path
    rows: Sequence[Mapping[str, Any]]
    sha256: str

    @property
    def columns(self) -> list[str]:
        """Every column that any row has, in the order of their first appearance."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


def read_rows(path: Path) -> Rows:
    """Return the rows of a file as JSON values; raise BadRows."""
    try:
        rows, data = rows_in(path)
    except OSError as error:
        raise BadRows(f"{path.name}: cannot be read: {error.strerror}") from None
    if not rows:
        raise BadRows(f"{path.name}: no row in the file")
    if path.suffix == ".parquet":
        # Dates and the like become text: rows are JSON from here on.
        rows = json.loads(json.dumps(_finite(rows), default=str))
    return Rows(path, rows, hashlib.sha256(data).hexdigest())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
