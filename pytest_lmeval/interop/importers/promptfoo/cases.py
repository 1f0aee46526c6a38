"""Read a config's tests, merge them with ``defaultTest``, and make a case for each combination of variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pytest_lmeval.data.rows import BadRows, read_data
from pytest_lmeval.interop.importers.promptfoo.checks import is_kind
from pytest_lmeval.interop.importers.promptfoo.config import (
    MAPPINGS,
    REFERENCE,
    Folder,
    LeftOut,
    Node,
    Remarks,
    is_reference,
)
from pytest_lmeval.interop.importers.promptfoo.reasons import ENDS, OF_A_KEY
from pytest_lmeval.interop.importers.promptfoo.templates import checked, filled, is_template, script_text

_KNOWN = frozenset({"description", "vars", "assert", "threshold", "options", REFERENCE})
_MOST_CASES = 100_000
_EXPECTED = re.compile(r"__expected\d*")
_ASSERTION = re.compile(r"((?:not-)?[a-z][a-z-]*)(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_CODE = ("javascript:", "fn:", "eval:", "file://")
_NAMED = ("__description", "__prefix", "__providerOutput", "__suffix")
_COLUMNS = {*_NAMED, "__metric", "__threshold"}


@dataclass(frozen=True, slots=True)
class Case:
    """A test as promptfoo runs it, with one value for each variable.

    ``asserts`` and ``options`` come from ``defaultTest`` and the test, in that order.
    """

    node: Node
    number: str
    description: str
    variables: dict[str, Any]
    asserts: Sequence[Node]
    options: Mapping[str, Node]
    threshold: Node | None

    def fill(self, template: str) -> str:
        """Return a template, filled in for this test; raise LeftOut if the template cannot be filled."""
        values = self.variables.items()
        return filled(
            template, {name: each if isinstance(each, dict | list) else script_text(each) for name, each in values}
        )


def read_cases(config: Node, folder: Folder, remarks: Remarks) -> list[Case]:
    """Return the tests in the config's order; add remarks about tests without a counterpart."""
    reader = _Reader(folder, remarks)
    default = reader.tests(config.at("defaultTest"))
    found: list[Case] = []
    for number, test in enumerate(reader.tests(config.at("tests")), 1):
        try:
            found += reader.cases([*default, test], number, _MOST_CASES - len(found))
        except LeftOut as left:
            remarks.leave_for(left, test)
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    folder: Folder
    remarks: Remarks

    def tests(self, node: Node) -> list[Node]:
        """Return the tests at ``node`` as mappings, including tests in files."""
        found: list[Node] = []
        for each in node.elements():
            try:
                found += self._of(each)
            except LeftOut as left:
                self.remarks.leave_for(left, each)
        return found

    def _of(self, node: Node) -> Iterator[Node]:
        if isinstance(node.value, dict):
            if "path" in node.value:
                raise LeftOut("tests that a program makes: run it, and name the file that it writes")
            yield node
            return
        if not isinstance(node.value, str):
            raise LeftOut(f"expected a test or the name of a file, got {node.value!r:.60}")
        for path in self.folder.find(node):
            if path.suffix == ".csv":
                yield from _csv_tests(path, node, self.remarks)
            elif path.suffix in MAPPINGS:
                yield from self.tests(self.folder.parsed(path, node))
            else:
                raise LeftOut(f"{path.name}: tests are read from csv, json and yaml")

    def cases(self, chain: Sequence[Node], number: int, most: int) -> Iterator[Case]:
        """Yield the cases of the last element of ``chain``, a test; the elements before it are the defaults."""
        for part in chain:
            self._check(part.written_out())
        own = chain[-1]
        options = {key: node for part in chain for key, node in part.at("options").written_out().items()}
        asserts = [each for part in chain for each in part.at("assert").elements()]
        thresholds = [part.at("threshold") for part in chain if part.value.get("threshold") is not None]
        values = {name: each for part in chain for name, each in self._variables(part.at("vars").written_out())}
        count = prod(map(len, values.values()))
        if count > most:
            raise LeftOut(f"more than {_MOST_CASES:,} combinations of variables")
        description = str(own.value.get("description") or "")
        for place, chosen in enumerate(product(*values.values()), 1):
            name = f"{number}.{place}" if count > 1 else str(number)
            row = _rendered(dict(zip(values, chosen, strict=True)))
            yield Case(own, name, description, row, asserts, options, thresholds[-1] if thresholds else None)

    def _check(self, part: Node) -> None:
        for key, node in part.items():
            if key in ENDS:
                raise LeftOut(f"{key}: {ENDS[key]}", node)
            if part.value[key] is not None and key not in _KNOWN:
                self.remarks.leave(node, OF_A_KEY.get(key, "nothing here reads it"))

    def _variables(self, node: Node) -> Iterator[tuple[str, list[Any]]]:
        if node.value is not None and not isinstance(node.value, dict):
            raise LeftOut("vars: expected a mapping; write what other files hold into the config", node)
        for name, each in node.items():
            yield name, self._values(each)

    def _values(self, node: Node) -> list[Any]:
        if isinstance(node.value, list):
            return [value for each in node.elements() for value in self._values(each)] or [[]]
        if not is_reference(node.written_out().value):
            return [node.value]
        return [self.folder.value(path, node) for path in self.folder.find(node)]


def _rendered(row: dict[str, Any]) -> dict[str, Any]:
    """Return a case's variables; a string may be a template that uses the other variables."""
    return {
        name: filled(checked(value), row) if isinstance(value, str) and is_template(value) else value
        for name, value in row.items()
    }


def _csv_tests(path: Path, node: Node, remarks: Remarks) -> Iterator[Node]:
    """Yield a test for each row, in the form of a YAML test; raise LeftOut if the file cannot be read."""
    try:
        data = read_data(path)
    except BadRows as bad:
        raise LeftOut(bad.faults[0], node) from None
    for row, line in zip(data.rows, data.lines, strict=True):
        cells = {key: str("" if value is None else value).strip() for key, value in row.items()}
        yield Node(_csv_test(cells), path.name, first_line=line)
    for column in data.rows[0]:
        if column.startswith("__") and column not in _COLUMNS and not _EXPECTED.fullmatch(column):
            remarks.leave(Node(None, path.name), "nothing here reads the column", column)


def _csv_test(row: Mapping[str, str]) -> dict[str, Any]:
    metric = {"metric": row["__metric"]} if row.get("__metric") else {}
    return {
        "vars": {name: value for name, value in row.items() if not name.startswith("__")},
        "assert": [{**_assertion(row[name]), **metric} for name in row if _EXPECTED.fullmatch(name) and row[name]],
        **{name.removeprefix("__"): row[name] for name in _NAMED if row.get(name)},
        **({"threshold": _number(row["__threshold"])} if row.get("__threshold") else {}),
    }


def _assertion(text: str) -> dict[str, Any]:
    """Return the assertion in a cell, such as ``contains:Paris`` or ``rouge-n(0.8):...``; other text must be equal."""
    if text.startswith(_CODE):
        return {"type": "javascript", "value": text}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    found = _ASSERTION.fullmatch(text)
    if found is None or not is_kind(found[1]):
        return {"type": "equals", "value": text}
    value = {} if found[3] is None else {"value": found[3].strip()}
    return {"type": found[1], **value, **({} if found[2] is None else {"threshold": float(found[2])})}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
