"""Tests in a csv file: columns are variables, but for those that begin with two underscores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.data.rows import BadRows, read_data
from pytest_lmeval.interop.importers.promptfoo.checks import is_kind
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks

_EXPECTED = re.compile(r"__expected\d*")
_METADATA = "__metadata:"
_READ = re.compile(rf"{_EXPECTED.pattern}$|{_METADATA}")
_ASSERTION = re.compile(r"((?:not-)?[a-z][a-z-]*)(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_CODE = ("javascript:", "fn:", "eval:", "file://")
_NAMED = {"__description": "description", "__providerOutput": "providerOutput"}
_OPTIONS = {"__prefix": "prefix", "__suffix": "suffix"}
_KNOWN = {*_NAMED, *_OPTIONS, "__metric", "__threshold"}


def cases_of_csv(path: Path, node: Node, remarks: Remarks) -> Iterator[Node]:
    """Yield a test for each row, in the form of one in YAML; raise LeftOut if the file cannot be read."""
    try:
        data = read_data(path)
    except BadRows as bad:
        raise LeftOut(bad.faults[0], node) from None
    for row, line in zip(data.rows, data.lines, strict=True):
        cells = {key: str("" if value is None else value).strip() for key, value in row.items()}
        yield Node(_test(cells), path.name, None, (), line)
    for column in data.rows[0]:
        if column.startswith("__") and column not in _KNOWN and not _READ.match(column):
            remarks.leave(Node(None, path.name), "nothing here reads the column", column)


def _test(row: Mapping[str, str]) -> dict[str, Any]:
    metric = {"metric": row["__metric"]} if row.get("__metric") else {}
    return {
        "vars": {name: value for name, value in row.items() if not name.startswith("__")},
        "assert": [{**_assertion(row[name]), **metric} for name in row if _EXPECTED.fullmatch(name) and row[name]],
        "options": {option: row[name] for name, option in _OPTIONS.items() if row.get(name)},
        "metadata": {name.removeprefix(_METADATA): row[name] for name in row if name.startswith(_METADATA)},
        **{key: row[name] for name, key in _NAMED.items() if row.get(name)},
        **({"threshold": _number(row["__threshold"])} if row.get("__threshold") else {}),
    }


def _assertion(text: str) -> dict[str, Any]:
    """Return the assertion in a cell: ``contains: Paris``, ``rouge-n(0.8): ...``, or a text to equal."""
    if text.startswith(_CODE):
        return {"type": "javascript", "value": text}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    found = _ASSERTION.fullmatch(text)
    if found is None or not is_kind(found[1]):
        return {"type": "equals", "value": text}
    parts: dict[str, tuple[str | None, Callable[[str], Any]]]
    parts = {"value": (found[3], str.strip), "threshold": (found[2], float)}
    return {"type": found[1], **{key: read(part) for key, (part, read) in parts.items() if part is not None}}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
