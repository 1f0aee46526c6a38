"""Files of the Berkeley Function Calling Leaderboard: what becomes of them, and that they score as its checker does."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import ToolCall, load_tasks
from pytest_lmeval.cli import main
from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.convert.bfcl import convert_bfcl
from pytest_lmeval.loading import default_registry
from pytest_lmeval.postprocess import Extraction, apply_metric
from pytest_lmeval.types import Completion, Example
from tests.tables import each_row

STRING, INTEGER, FLOAT, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "float"}, {"type": "boolean"}
STRINGS, FLOATS = {"type": "array", "items": STRING}, {"type": "array", "items": FLOAT}
PERSON = {"type": "dict", "properties": {"name": STRING, "age": INTEGER}}
PEOPLE = {"type": "array", "items": PERSON}
ADA = {"name": ["Ada"], "age": [36, ""]}
# The type of an argument, the values that are right ("" among them: it may be left out), the value that is given ("-"
# for none), and what the leaderboard's checker says of the call.
CASES: list[tuple[dict[str, Any], list[Any], Any, bool]] = [
    (STRING, ["New York"], "New York", True),
    (STRING, ["New York"], "new york", True),
    (STRING, ["New York"], "New_York,", True),
    (STRING, ["New York"], "New*York^", True),
    (STRING, ["New York"], "New York!", False),
    (STRING, ["New York"], "York", False),
    (STRING, ["New York", "NY"], "N.Y.", True),
    (STRING, ["it's"], 'it"s', True),
    (STRING, ["it's"], "its", False),
    (STRING, ["April 1, 2024"], "April 1,2024", True),
    (STRING, ["April 1, 2024"], "April 1 2024", True),
    (STRING, ["April 1, 2024"], "1 April 2024", False),
    (STRING, ["5"], 5, False),
    (STRING, ["units", ""], "-", True),
    (STRING, ["units", ""], "units", True),
    (STRING, ["units", ""], "other", False),
    (STRING, ["units"], "-", False),
    (STRING, [""], "-", True),
    (STRING, [""], "", True),
    (INTEGER, [10], 10, True),
    (INTEGER, [10], 11, False),
    (INTEGER, [10], "10", False),
    (INTEGER, [10, 20], 20, True),
    (INTEGER, [10, ""], "-", True),
    (INTEGER, [1], True, False),
    (INTEGER, [10], 10.5, False),
    (FLOAT, [5.0], 5.0, True),
    (FLOAT, [5.0], 5, True),
    (FLOAT, [5.0], 5.1, False),
    (FLOAT, [0.05, 5], 0.05, True),
    (BOOLEAN, [True], True, True),
    (BOOLEAN, [True], False, False),
    (BOOLEAN, [True], "true", False),
    (STRINGS, [["a", "b"]], ["a", "b"], True),
    (STRINGS, [["a", "b"]], ["A.", "B "], True),
    (STRINGS, [["a", "b"]], ["b", "a"], False),
    (STRINGS, [["a", "b"], ["b", "a"]], ["b", "a"], True),
    (STRINGS, [["a", "b"]], ["a"], False),
    (STRINGS, [["a", "b"]], "a", False),
    (FLOATS, [[1.0, 2.0]], [1.0, 2.0], True),
    (FLOATS, [[1.0, 2.0]], [1.0, 2.5], False),
    (PERSON, [ADA], {"name": "Ada", "age": 36}, True),
    (PERSON, [ADA], {"name": "ada"}, True),
    (PERSON, [ADA], {"age": 36}, False),
    (PERSON, [ADA], {"name": "Ada", "age": 37}, False),
    (PERSON, [ADA], {"name": "Ada", "job": "x"}, False),
    (PERSON, [ADA, {"name": ["Eve"]}], {"name": "Eve"}, True),
    (PERSON, [ADA, ""], "-", True),
    (PEOPLE, [[ADA]], [{"name": "ADA", "age": 36}], True),
    (PEOPLE, [[ADA]], [{"name": "Ada"}, {"name": "Ada"}], False),
    (PEOPLE, [[ADA, {"name": ["Eve"]}]], [{"name": "Ada"}, {"name": "Eve"}], True),
    (PEOPLE, [[ADA, {"name": ["Eve"]}]], [{"name": "Eve"}, {"name": "Ada"}], False),
]


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": properties, "required": []}
    return {"name": name, "description": f"{name}.", "parameters": parameters}


def published(folder: Path, name: str, record: dict[str, Any], truth: Any = None) -> Path:
    """Write a file as it is published, with its answers beside it, and return its path."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record) + "\n")
    if truth is not None:
        (folder / "possible_answer").mkdir(exist_ok=True)
        (folder / "possible_answer" / path.name).write_text(json.dumps({"id": record["id"], "ground_truth": truth}))
    return path


def question(id: str, *functions: Any, text: str = "Do it.") -> dict[str, Any]:
    return {"id": id, "question": [[{"role": "user", "content": text}]], "function": list(functions)}


def converted(tmp_path: Path, source: Path) -> Example:
    path = convert_bfcl(source, tmp_path / "out")[0]
    (task,) = load_tasks(path)
    (example,) = task.examples
    return example


def score(example: Example, *calls: tuple[str, Any]) -> float:
    made = tuple(ToolCall(str(n), name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls))
    metric = default_registry(entry_points=False).metric("tool_calls")
    output = Extraction(Completion("", tool_calls=made).output, True)
    return apply_metric(metric, output, example.targets, example.metadata).value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bfcl")


def test_calls_score_as_the_checker_of_the_leaderboard_says(folder: Path) -> None:
    wrong = []
    for number, (schema, right, given, expected) in enumerate(CASES):
        place = folder / str(number)
        place.mkdir()
        source = published(place, "s", question("simple_0", function("f", a=schema)), [{"f": {"a": right}}])
        found = score(converted(place, source), ("f", {} if given == "-" else {"a": given}))
        if found != expected:
            wrong.append((number, schema, right, given, expected))
    assert [] == wrong


@each_row(
    ("calls", "expected"),
    [
        ([("math_sum", {"n": 1}), ("math_sum", {"n": 2})], 1.0),
        ([("math_sum", {"n": 2}), ("math_sum", {"n": 1})], 1.0),
        ([("math_sum", {"n": 1})], 0.0),
        ([("math_sum", {"n": 1}), ("math_sum", {"n": 2}), ("other", {})], 0.0),
        ([("other", {}), ("math_sum", {"n": 2})], 0.0),
    ],
)
def test_parallel_calls_are_right_in_any_order(calls: list[tuple[str, Any]], expected: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        tools = [function("math.sum", n=INTEGER), function("other")]
        truth = [{"math.sum": {"n": [1]}}, {"math.sum": {"n": [2]}}]
        source = published(Path(name), "p", question("parallel_multiple_0", *tools), truth)
        assert expected == score(converted(Path(name), source), *calls)


def test_a_value_that_the_schema_of_its_tool_refuses_is_right_all_the_same(tmp_path: Path) -> None:
    unit = {"type": "string", "enum": ["meter"], "description": "The unit."}
    source = published(tmp_path, "w", question("simple_0", function("f", a=unit)), [{"f": {"a": ["meter", "ft"]}}])
    example = converted(tmp_path, source)
    assert [1.0, 1.0, 0.0] == [score(example, ("f", {"a": value})) for value in ("meter", "ft", "mile")]


def test_a_record_with_nothing_to_call_is_left_out(tmp_path: Path) -> None:
    source = published(tmp_path, "e", question("irrelevance_0", function("f")))
    source.write_text(f"{source.read_text()}{json.dumps(question('irrelevance_1'))}\n")
    assert "irrelevance_0" == converted(tmp_path, source).id


def test_numbers_that_are_equal_are_equal_in_lists_too(tmp_path: Path) -> None:
    # The leaderboard's checker takes 1 for 1.0, but not [1] for [1.0]. In JSON they are the same number.
    source = published(tmp_path, "n", question("simple_0", function("f", a=FLOATS)), [{"f": {"a": [[1.0]]}}])
    assert 1.0 == score(converted(tmp_path, source), ("f", {"a": [1]}))


def test_an_irrelevant_tool_must_not_be_called(tmp_path: Path) -> None:
    example = converted(tmp_path, published(tmp_path, "i", question("irrelevance_0", function("f"))))
    assert [1.0, 0.0] == [score(example), score(example, ("f", {}))]


def test_any_call_is_right_where_the_tools_are_relevant(tmp_path: Path) -> None:
    example = converted(tmp_path, published(tmp_path, "r", question("live_relevance_0-0-0", function("f", a=INTEGER))))
    two = score(example, ("f", {}), ("f", {"a": 2}))
    assert [0.0, 1.0, 1.0] == [score(example), score(example, ("f", {"a": 1})), two]


def test_kinds_without_a_counterpart_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("memory_0-customer-0", "web_search_0", "web_search_1", "multi_turn_base_0", "live_irrelevance_9")
    lines = [{**question(kind, function("f")), "involved_classes": ["X"]} for kind in kinds]
    lines.append({"id": "memory_1-x", "question": [[{"role": "user", "content": "?"}]]})
    lines.append(question("irrelevance_1"))
    source = tmp_path / "BFCL_v4_all.json"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert 0 == main(["convert", "bfcl", str(source), "-o", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "left out: 2 web_search: its tools search the web" in shown
    assert "left out: 2 memory: its tools keep state over several turns" in shown
    assert "left out: 1 multi_turn: " in shown
    assert "left out: 1 without any function to call" in shown
    (task,) = load_tasks(tmp_path / "out" / "bfcl_v4_all.jsonl")
    assert ["live_irrelevance_9"] == [example.id for example in task.examples]

    source.write_text("".join(json.dumps(line) + "\n" for line in lines[1:3]))
    with pytest.raises(UsageError, match="no record has a counterpart; left out: 2 web_search"):
        convert_bfcl(source, tmp_path / "other")


@each_row(
    ("record", "truth", "message"),
    [
        (question("simple_0", function("f")), None, "no list ground_truth for 'simple_0'"),
        (question("simple_0", function("f")), [{"f": {"a": 1}}], "expected a list of values for 'a', got 1"),
        (question("simple_0", function("f")), ["f"], "expected ground_truth of one function by its name, got 'f'"),
        ({"id": "simple_0", "question": [[]], "function": {}}, [], "expected a list under 'function', got {}"),
        ({"id": "simple_0", "function": [function("f")], "question": "?"}, [], "expected a list under 'question'"),
        (question("simple_0", function("f")), [{"g": {"a": [1]}}], "'g' is not among the functions"),
        ({"question": []}, [], "expected a str under 'id', got ''"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line(record: dict[str, Any], truth: Any, message: str) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.raises(UsageError) as caught:
        convert_bfcl(published(Path(name), "b", {"id": "", **record}, truth), Path(name) / "out")
    assert "b.json:1: " in str(caught.value)
    assert message in str(caught.value)
