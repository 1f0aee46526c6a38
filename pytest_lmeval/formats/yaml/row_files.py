"""Which ``.jsonl`` files are the rows of a data set, and no tasks themselves."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["is_row_file"]

_FIELDS_OF_TASKS = (b'"prompt"', b'"targets"')
_FIRST_LINE = 1 << 16


def is_row_file(path: Path) -> bool:
    """Tell whether a YAML file beside ``path``, or in the folder above, names it as the file of a data set.

    A file whose first line reads like a record of a task is looked at no further: that costs next to nothing.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError:
        return False
    if all(field in start for field in _FIELDS_OF_TASKS):
        return False
    name = re.escape(path.name.encode())
    named = re.compile(
        rb"^[ \t-]*(?:file_path|path)[ \t]*:[ \t]*[\"']?(?:[^\"'\n]*/)?" + name + rb"[\"']?[ \t\r]*(?:#.*)?$", re.M
    )
    return any(
        named.search(_read(each)) for folder in (path.parent, path.parent.parent) for each in folder.glob("*.yaml")
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
