"""Tests in a csv file: columns are variables, but for those that begin with two underscores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.data.beside import read_data
from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks

_EXPECTED = re.compile(r"__expected(\d*)")
_CONFIG = re.compile(r"__config:__expected(\d*):threshold")
_ASSERTION = re.compile(
    r"((?:not-)?[a-z][a-z-]*(?::(?:cosine|dot|euclidean))?)(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL
)
_CODE = ("javascript:", "fn:", "eval:")
_OPTIONS = {"__prefix": "prefix", "__suffix": "suffix"}


def cases_of_csv(path: Path, node: Node, remarks: Remarks) -> Iterator[Node]:
    """Yield a test for each row, in the form of one in YAML; raise LeftOut where the file cannot be read."""
    try:
        data = read_data(path)
    except BadRows as bad:
        raise LeftOut(bad.faults[0], node) from None
    for row, line in zip(data.rows, data.lines, strict=True):
        yield Node(_test({key: _cell(value) for key, value in row.items()}), path.name, None, (), line)
    for column in data.rows[0] if data.rows else ():
        if column.startswith("__") and not _is_known(column):
            remarks.leave(Node(None, path.name), "nothing here reads the column", column)


def _cell(value: Any) -> str:
    return str(value if value is not None else "").strip()


def _is_known(column: str) -> bool:
    special = column in ("__description", "__metric", "__threshold", "__providerOutput", *_OPTIONS)
    return special or bool(_EXPECTED.fullmatch(column) or _CONFIG.fullmatch(column) or column.startswith("__metadata:"))


def _test(row: Mapping[str, str]) -> dict[str, Any]:
    test: dict[str, Any] = {
        "vars": {name: value for name, value in row.items() if not name.startswith("__")},
        "assert": [_assertion(name, value, row) for name, value in row.items() if _EXPECTED.fullmatch(name) and value],
        "options": {option: row[name] for name, option in _OPTIONS.items() if row.get(name)},
        "metadata": {name[11:]: value for name, value in row.items() if name.startswith("__metadata:") and value},
    }
    for name in ("description", "providerOutput"):
        if row.get(f"__{name}"):
            test[name] = row[f"__{name}"]
    if row.get("__threshold"):
        test["threshold"] = _number(row["__threshold"])
    return {name: value for name, value in test.items() if value or name == "threshold"}


def _assertion(column: str, text: str, row: Mapping[str, str]) -> dict[str, Any]:
    found = assertion_of(text)
    if row.get("__metric"):
        found["metric"] = row["__metric"]
    number = column.removeprefix("__expected")
    # The first column of expectations has a number or none.
    for name in (f"__config:__expected{number}:threshold", *(["__config:__expected1:threshold"] if not number else [])):
        if row.get(name):
            found["threshold"] = _number(row[name])
    return found


def assertion_of(text: str) -> dict[str, Any]:
    """Return the assertion in a cell: ``contains: Paris``, ``similar(0.8): ...``, or a text to equal."""
    if text.startswith(_CODE):
        return {"type": "javascript", "value": text.partition(":")[2].strip()}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    found = _ASSERTION.fullmatch(text)
    if found is None or not _is_kind(found[1]):
        return {"type": "equals", "value": text}
    value = found[3].strip() if found[3] is not None else None
    threshold = {"threshold": float(found[2])} if found[2] else {}
    return {"type": found[1], **({"value": value} if value is not None else {}), **threshold}


def _is_kind(name: str) -> bool:
    from pytest_lmeval.interop.importers.promptfoo.checks import is_kind

    return is_kind(name)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
