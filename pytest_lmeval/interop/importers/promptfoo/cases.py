"""The tests of a config: from files and scenarios, with what ``defaultTest`` says of all, one for each combination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.interop.importers.promptfoo.csv_cases import cases_of_csv
from pytest_lmeval.interop.importers.promptfoo.files import Folder, is_reference
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks
from pytest_lmeval.interop.importers.promptfoo.templates import filled, is_template, jinja

_KEYS = ("description", "vars", "assert", "threshold", "options", "metadata")
_KNOWN = frozenset(_KEYS)
_WITHOUT = {
    "provider": "a test of one provider: choose tests with -k, and adapters with --lm-adapter",
    "providers": "a test of some providers: choose tests with -k, and adapters with --lm-adapter",
    "prompts": "a test of some prompts: a data file has all rows for all prompts",
}
_ENDS = {
    "assertScoringFunction": "the score is that of a program, which is not run",
    "providerOutput": "an answer that is there already: record it, and score it with --lm-adapter=replay:FILE",
}
_MOST_CASES = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """A test as promptfoo runs it, with one value for each variable.

    ``asserts``, ``options`` and ``metadata`` are those of ``defaultTest``, a scenario and the test, in this order.
    """

    node: Node
    number: str
    description: str
    variables: Mapping[str, Any]
    asserts: Sequence[Node]
    options: Mapping[str, Node]
    threshold: Node | None
    metadata: Mapping[str, Any]


def read_cases(config: Node, folder: Folder, remarks: Remarks) -> list[Case]:
    """Return the tests in the order of the config; what has no counterpart is noted."""
    reader = _Reader(folder, remarks)
    default = reader.default(config.at("defaultTest"))
    found: list[Case] = []
    for chain in [*reader.tests(config.at("tests")), *reader.scenarios(config.at("scenarios"))]:
        try:
            found += reader.cases([*default, *chain], len(found))
        except LeftOut as left:
            remarks.leave(chain[-1], left.why)
    return found


class _Reader:
    """Reads tests from wherever they are."""

    def __init__(self, folder: Folder, remarks: Remarks) -> None:
        self._folder = folder
        self._remarks = remarks
        self._numbers = 0

    def default(self, node: Node) -> list[Node]:
        if not is_reference(node.value):
            return [node] if isinstance(node.value, dict) else []
        try:
            return [self._folder.parsed(path, node) for path in self._folder.find(node)]
        except LeftOut as left:
            self._remarks.leave(node, left.why)
            return []

    def tests(self, node: Node) -> Iterator[list[Node]]:
        for each in node.elements():
            try:
                yield from ([test] for test in self._of(each))
            except LeftOut as left:
                self._remarks.leave(left.node or each, left.why)

    def scenarios(self, node: Node) -> Iterator[list[Node]]:
        """Yield each test of a scenario behind each element of its ``config``."""
        for scenario in node.elements():
            tests = [chain[-1] for chain in self.tests(scenario.at("tests"))]
            for common, test in product(scenario.at("config").elements(), tests):
                yield [common, test]
            self._remarks.leave_others(scenario, frozenset({"config", "tests"}), "rows have no group to describe")

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
        elif path.suffix == ".jsonl":
            yield from _of_lines(path, self._folder.text(path, node), node)
        elif path.suffix in (".json", ".yaml", ".yml"):
            for each in self._folder.parsed(path, node).elements():
                yield from self._of(each)
        else:
            raise LeftOut(f"{path.name}: tests are read from csv, json, jsonl and yaml")

    def cases(self, chain: Sequence[Node], before: int) -> Iterator[Case]:
        """Yield the cases of a test; ``chain`` ends with it, and begins with what is said of all."""
        self._numbers += 1
        own = chain[-1]
        self._check(chain)
        options = {key: node for part in chain for key, node in part.at("options").items()}
        first = chain[-1:] if _is_true(options, "disableDefaultAsserts") else chain
        asserts = [each for part in first for each in part.at("assert").elements()]
        metadata = {key: node.value for part in chain for key, node in part.at("metadata").items()}
        thresholds = [part.at("threshold") for part in chain if part.value.get("threshold") is not None]
        rows = _combinations(self._variables(chain), spread=not _is_true(options, "disableVarExpansion"))
        if before + len(rows) > _MOST_CASES:
            raise LeftOut(f"more than {_MOST_CASES:,} combinations of variables")
        for number, row in enumerate(rows, 1):
            name = f"{self._numbers}.{number}" if len(rows) > 1 else str(self._numbers)
            description = str(own.value.get("description") or "")
            threshold = thresholds[-1] if thresholds else None
            yield Case(own, name, description, _rendered(row), asserts, options, threshold, metadata)

    def _check(self, chain: Sequence[Node]) -> None:
        for part in chain:
            for key, node in part.items():
                if key in _ENDS:
                    raise LeftOut(f"{key}: {_ENDS[key]}", node)
                if key not in _KNOWN and not (key == "description" or part.value[key] is None):
                    self._remarks.leave(node, _WITHOUT.get(key, "nothing here reads it"))

    def _variables(self, chain: Sequence[Node]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for part in chain:
            for holder in self._mappings(part.at("vars")):
                found |= {name: self._values(node) for name, node in holder.items()}
        return found

    def _mappings(self, node: Node) -> Iterator[Node]:
        """Yield the mappings of variables: the value itself, or what is in the files that it names."""
        for each in [node] if isinstance(node.value, dict) else node.elements():
            if isinstance(each.value, dict):
                yield each
            else:
                yield from (self._folder.parsed(path, each) for path in self._folder.find(each))

    def _values(self, node: Node) -> list[Any]:
        if isinstance(node.value, list):
            return [value for each in node.elements() for value in self._values(each)] if node.value else [[]]
        if not is_reference(node.value):
            return [node.value]
        paths = self._folder.find(node)
        return [
            self._folder.parsed(path, node).value
            if path.suffix in (".json", ".yaml", ".yml")
            else self._folder.text(path, node).strip()
            for path in paths
        ]


def _combinations(values: Mapping[str, Sequence[Any]], *, spread: bool) -> list[dict[str, Any]]:
    if not spread:
        return [{name: each[0] if len(each) == 1 else [*each] for name, each in values.items()}]
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def _rendered(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a case; the text of one may be a template over the others."""
    return {
        name: filled(jinja(value), row) if isinstance(value, str) and is_template(value) else value
        for name, value in row.items()
    }


def _is_true(options: Mapping[str, Node], name: str) -> bool:
    return name in options and options[name].value is True


def _of_lines(path: Path, text: str, node: Node) -> Iterator[Node]:
    for number, line in number_lines(text.encode()):
        try:
            yield Node(parse_line(line, len(line)), path.name, None, (), number)
        except RecordRefused as refused:
            raise LeftOut(f"{path.name}:{number}: {refused.detail}", node) from None
