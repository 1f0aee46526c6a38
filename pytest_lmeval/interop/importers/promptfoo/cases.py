"""The tests of a config, with what ``defaultTest`` says of all, one for each combination of variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pytest_lmeval.interop.importers.promptfoo.csv_cases import cases_of_csv
from pytest_lmeval.interop.importers.promptfoo.files import MAPPINGS, Folder, is_reference
from pytest_lmeval.interop.importers.promptfoo.nodes import REFERENCE, LeftOut, Node, Remarks
from pytest_lmeval.interop.importers.promptfoo.reasons import ENDS, OF_A_KEY
from pytest_lmeval.interop.importers.promptfoo.templates import checked, filled, is_template, script_text

_KNOWN = frozenset({"description", "vars", "assert", "threshold", "options", "metadata", REFERENCE})
_MOST_CASES = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """A test as promptfoo runs it, with one value for each variable.

    ``asserts``, ``options`` and ``metadata`` are those of ``defaultTest`` and the test, in this order.
    """

    node: Node
    number: str
    description: str
    variables: dict[str, Any]
    asserts: Sequence[Node]
    options: Mapping[str, Node]
    threshold: Node | None
    metadata: Mapping[str, Any]

    def fill(self, template: str) -> str:
        """Return the text of a template for this test; raise LeftOut."""
        values = self.variables.items()
        return filled(
            template, {name: each if isinstance(each, dict | list) else script_text(each) for name, each in values}
        )


def read_cases(config: Node, folder: Folder, remarks: Remarks) -> list[Case]:
    """Return the tests in the order of the config; what has no counterpart is noted."""
    reader = _Reader(folder, remarks)
    default = reader.tests(config.at("defaultTest"))
    found: list[Case] = []
    for number, test in enumerate(reader.tests(config.at("tests")), 1):
        try:
            found += reader.cases([*default, test], number, _MOST_CASES - len(found))
        except LeftOut as left:
            remarks.leave_for(left, test)
    return found


class _Reader:
    """Reads tests, and the files that they name."""

    def __init__(self, folder: Folder, remarks: Remarks) -> None:
        self._folder = folder
        self._remarks = remarks

    def tests(self, node: Node) -> list[Node]:
        """Return the mappings of tests, those in files too."""
        found: list[Node] = []
        for each in node.elements():
            try:
                found += self._of(each)
            except LeftOut as left:
                self._remarks.leave_for(left, each)
        return found

    def _of(self, node: Node) -> Iterator[Node]:
        if isinstance(node.value, dict) and "path" in node.value:
            raise LeftOut("tests that a program makes: run it, and name the file that it writes")
        if isinstance(node.value, dict):
            yield node
        elif isinstance(node.value, str):
            for path in self._folder.find(node):
                yield from self._of_file(path, node)
        else:
            raise LeftOut(f"expected a test or the name of a file, got {node.value!r:.60}")

    def _of_file(self, path: Path, node: Node) -> Iterator[Node]:
        if path.suffix == ".csv":
            yield from cases_of_csv(path, node, self._remarks)
        elif path.suffix in MAPPINGS:
            yield from self.tests(self._folder.parsed(path, node))
        else:
            raise LeftOut(f"{path.name}: tests are read from csv, json and yaml")

    def cases(self, chain: Sequence[Node], number: int, most: int) -> Iterator[Case]:
        """Yield the cases of a test; ``chain`` ends with it, and begins with what is said of all."""
        for part in chain:
            self._check(part.written_out())
        own = chain[-1]
        options = {key: node for part in chain for key, node in part.at("options").written_out().items()}
        first = chain[-1:] if _is_true(options, "disableDefaultAsserts") else chain
        asserts = [each for part in first for each in part.at("assert").elements()]
        metadata = {key: node.value for part in chain for key, node in part.at("metadata").items()}
        thresholds = [part.at("threshold") for part in chain if part.value.get("threshold") is not None]
        values = {name: each for part in chain for name, each in self._variables(part.at("vars").written_out())}
        if _is_true(options, "disableVarExpansion"):
            values = {name: each if len(each) == 1 else [each] for name, each in values.items()}
        count = prod(map(len, values.values()))
        if count > most:
            raise LeftOut(f"more than {_MOST_CASES:,} combinations of variables")
        description = str(own.value.get("description") or "")
        for place, chosen in enumerate(product(*values.values()), 1):
            name = f"{number}.{place}" if count > 1 else str(number)
            row = _rendered(dict(zip(values, chosen, strict=True)))
            yield Case(own, name, description, row, asserts, options, thresholds[-1] if thresholds else None, metadata)

    def _check(self, part: Node) -> None:
        for key, node in part.items():
            if key in ENDS:
                raise LeftOut(f"{key}: {ENDS[key]}", node)
            if part.value[key] is not None and key not in _KNOWN:
                self._remarks.leave(node, OF_A_KEY.get(key, "nothing here reads it"))

    def _variables(self, node: Node) -> Iterator[tuple[str, list[Any]]]:
        """Yield each variable with its values; those of a file are read."""
        if node.value is not None and not isinstance(node.value, dict):
            raise LeftOut("vars: expected a mapping; write what other files hold into the config", node)
        for name, each in node.items():
            yield name, self._values(each)

    def _values(self, node: Node) -> list[Any]:
        if isinstance(node.value, list):
            return [value for each in node.elements() for value in self._values(each)] or [[]]
        if not is_reference(node.written_out().value):
            return [node.value]
        return [self._folder.value(path, node) for path in self._folder.find(node)]


def _rendered(row: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a case; the text of one may be a template over the others."""
    return {
        name: filled(checked(value), row) if isinstance(value, str) and is_template(value) else value
        for name, value in row.items()
    }


def _is_true(options: Mapping[str, Node], name: str) -> bool:
    return name in options and options[name].value is True
