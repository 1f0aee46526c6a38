"""Read a list of rows from a JSON or YAML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_lmeval.data.limits import check_rows, read_files
from pytest_lmeval.data.lines import parse_line
from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.errors import RecordRefused


def read_list(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """Return a file's rows and bytes; raise BadRows for unusable rows, or OSError if the file cannot be read."""
    (data,) = read_files([path])
    rows = (_json if path.suffix == ".json" else _yaml)(path, data)
    if not isinstance(rows, list):
        raise BadRows(f"{path.name}: expected a list of rows, got {rows!r:.80}")
    check_rows(path.name, len(rows))
    faults = [
        f"{path.name}: row {n}: expected an object, got {row!r:.80}"
        for n, row in enumerate(rows, start=1)
        if not isinstance(row, dict)
    ]
    if faults:
        raise BadRows(*faults[:20])
    return [dict(row) for row in rows], data


def _json(path: Path, data: bytes) -> Any:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        raise BadRows(f"{path.name}:{error.lineno}: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):
        pass  # the strict parser reports what is wrong
    try:
        return parse_line(data.strip(), len(data))
    except RecordRefused as refused:
        raise BadRows(f"{path.name}: {refused.detail}") from None


def _yaml(path: Path, data: bytes) -> Any:
    from pytest_lmeval.formats.yaml.document import YamlFault
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    try:
        return parse_yaml(data)
    except YamlFault as fault:
        raise BadRows(f"{path.name}:{fault.place.line}: {fault.detail}") from None
