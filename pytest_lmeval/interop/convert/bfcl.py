"""The Berkeley Function Calling Leaderboard as published: https://github.com/ShishirPatil/gorilla.

Supports the Python kinds simple, multiple, parallel, parallel_multiple and irrelevance, live or not, and multi_turn.
Types become JSON Schema types (``dict`` is ``object``, ``float`` is ``number``), and dots in names become underscores.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records
from pytest_lmeval.metrics.parts.tool_schema import fault

_TYPES = {"any": "string", "dict": "object", "float": "number", "tuple": "array"}
_ANSWERS = "possible_answer"
_TOOLS = "multi_turn_func_doc"
_NO_CALL = "irrelevance"
_TURNS = "multi_turn"
# The files of the classes whose methods a conversation may call.
_CLASSES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
_MOST_VALUES = 200
_OPTIONAL = ""


def convert_bfcl(source: Path, destination: Path) -> list[Path]:
    """Write ``NAME.jsonl`` for the published file ``source``, and return its path.

    Answers come from the file of the same name in the folder ``possible_answer`` beside it, the tools of conversations
    from ``multi_turn_func_doc``. Records with an empty list of functions are skipped. Raises UsageError for any other
    form, and for a file that would be replaced.
    """
    answers = _answers(source)
    records = [
        _record(source, place, record, answers)
        for place, record in read_records(source)
        # Without a function every model is right.
        if record.get("function") != []
    ]
    name = f"{source.name.partition('.')[0].lower()}.jsonl"
    return NewFiles(destination, {name: encode_lines(records)}).write()


def _answers(source: Path) -> Mapping[str, Any]:
    path = source.parent / _ANSWERS / source.name
    if not path.exists():
        return {}
    return {str(record.get("id")): record.get("ground_truth") for _, record in read_records(path)}


def _record(source: Path, place: str, record: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    name = _of(record, "id", str, place)
    truth = record.get("ground_truth", answers.get(name))
    if truth is None and _NO_CALL in name:
        truth = []
    if not isinstance(truth, list):
        where = source.parent / _ANSWERS / source.name
        raise UsageError(f"{place}: no list ground_truth for {name!r}, neither in the record nor in {where}")
    if _TURNS in name:
        return _conversation(source, place, record, truth)
    tools = [_tool(each, place) for each in _of(record, "function", list, place)]
    calls = [_call(each, tools, place) for each in truth]
    return {
        "id": name,
        "prompt": _prompt(record, place),
        "metric": "tool_calls",
        "extras": {"tools": tools, "calls": calls, "text": "bfcl"},
    }


def _prompt(record: Mapping[str, Any], place: str) -> str:
    """Return the question; a blank line joins several messages."""
    turns = _of(record, "question", list, place)
    if len(turns) != 1:
        raise UsageError(f"{place}: expected one turn in 'question', got {len(turns)}")
    return "\n\n".join(_texts(turns[0], place))


def _texts(messages: Any, place: str) -> list[str]:
    if not isinstance(messages, list) or not all(
        isinstance(each, dict) and isinstance(each.get("content"), str) for each in messages
    ):
        raise UsageError(f"{place}: expected messages with content in 'question', got {messages!r:.80}")
    return [each["content"] for each in messages]


def _tool(function: Any, place: str) -> dict[str, Any]:
    if not isinstance(function, dict) or not isinstance(function.get("parameters"), dict):
        raise UsageError(f"{place}: expected a function with name and parameters, got {function!r:.80}")
    return {
        "name": _named(_of(function, "name", str, place)),
        "description": str(function.get("description", "")),
        "parameters": _schema(function["parameters"]),
    }


def _named(name: str) -> str:
    # Chat interfaces take no dot in a name.
    return name.replace(".", "_")


def _schema(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the types of JSON Schema; keep all other keywords."""
    found = dict(value)
    if isinstance(found.get("type"), str):
        found["type"] = _TYPES.get(found["type"], found["type"])
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _schema(each) for name, each in found["properties"].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = _schema(found["items"])
    return found


def _call(truth: Any, tools: Sequence[dict[str, Any]], place: str) -> dict[str, Any]:
    """Return the expected call of ``{NAME: {ARGUMENT: [VALUE, ...]}}``; an empty text in a list means optional.

    Some published values are right although their tool's schema forbids them: the schema is widened.
    """
    if not isinstance(truth, dict) or len(truth) != 1 or not isinstance(next(iter(truth.values())), dict):
        raise UsageError(f"{place}: expected ground_truth of one function by its name, got {truth!r:.80}")
    ((name, arguments),) = truth.items()
    tool = next((tool for tool in tools if tool["name"] == _named(name)), None)
    if tool is None:
        raise UsageError(f"{place}: ground_truth: {name!r} is not among the functions")
    properties = tool["parameters"].setdefault("properties", {})
    accept: dict[str, list[Any]] = {}
    for argument, values in arguments.items():
        if not isinstance(values, list):
            raise UsageError(f"{place}: {name}: expected a list of values for {argument!r}, got {values!r:.80}")
        of = properties.get(argument, {})
        right = [each for each in values if each != _OPTIONAL or (values == [each] and of.get("type") == "string")]
        if right:
            accept[argument] = _alternatives(right, of, f"{place}: {name}.{argument}")
            properties[argument] = _widened(of, accept[argument])
    needed = tool["parameters"].get("required", ())
    optional = [each for each in accept if _OPTIONAL in arguments[each] and each not in needed]
    return {"name": _named(name), "accept": accept, **({"optional": optional} if optional else {})}


def _widened(schema: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """Return ``schema`` if all ``values`` are valid by it, else a schema that admits them."""
    invalid = [value for value in values if fault(value, schema)]
    described = {"description": schema["description"]} if "description" in schema else {}
    return {**described, "anyOf": [schema, {"enum": invalid}]} if invalid else schema


def _alternatives(values: Sequence[Any], schema: Mapping[str, Any], place: str) -> list[Any]:
    """Return all right values; objects list the values of each key, with an empty text if the key is optional."""
    of_objects = schema.get("type") == "array" and schema.get("items", {}).get("type") == "object"
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found += islice(_objects(value), _MOST_VALUES + 1)
        elif of_objects and isinstance(value, list) and all(isinstance(each, dict) for each in value):
            lists = product(*([*islice(_objects(each), _MOST_VALUES + 1)] for each in value))
            found += [[*each] for each in islice(lists, _MOST_VALUES + 1)]
        else:
            found.append(value)
    if len(found) > _MOST_VALUES:
        raise UsageError(f"{place}: more than {_MOST_VALUES} right values: write this record as your own task")
    return found


def _objects(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    absent = object()
    choices = []
    for key, values in value.items():
        listed = values if isinstance(values, list) else [values]
        choices.append([(key, absent if each == _OPTIONAL and len(listed) > 1 else each) for each in listed])
    for chosen in product(*choices):
        yield {key: each for key, each in chosen if each is not absent}


def _conversation(source: Path, place: str, record: Mapping[str, Any], truth: Sequence[Any]) -> dict[str, Any]:
    """Return a conversation whose turns are scored by their calls; every tool answers ``{"status": "ok"}``."""
    turns = _of(record, "question", list, place)
    if len(truth) != len(turns):
        raise UsageError(f"{place}: {len(turns)} turns, and ground_truth of {len(truth)}")
    left_out = record.get("excluded_function", [])
    tools = [tool for tool in _tools_of(source, record, place) if tool["name"] not in left_out]
    by_name = {tool["name"]: tool for tool in tools}
    return {
        "id": record["id"],
        "turns": [
            {
                "user": "\n\n".join(_texts(messages, place)),
                "metric": "tool_calls",
                "extras": {"calls": [_call_in(text, by_name, place) for text in calls], "text": "bfcl"},
            }
            for messages, calls in zip(turns, truth, strict=True)
        ],
        "extras": {"tools": tools, "responses": {tool["name"]: {"status": "ok"} for tool in tools}},
    }


def _tools_of(source: Path, record: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    found = []
    for name in _of(record, "involved_classes", list, place):
        if name not in _CLASSES:
            raise UsageError(f"{place}: involved_classes: unknown class {name!r}; known: {', '.join(_CLASSES)}")
        path = source.parent / _TOOLS / f"{_CLASSES[name]}.json"
        found += [_tool(function, where) for where, function in read_records(path)]
    return found


def _call_in(text: Any, tools: Mapping[str, Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Return the call that a line of Python such as ``cd(folder='a')`` makes."""
    try:
        tree = ast.parse(str(text), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise ValueError
        schema = tools[tree.func.id]["parameters"].setdefault("properties", {})
        arguments = dict(zip(schema, map(ast.literal_eval, tree.args), strict=False))
        arguments |= {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords}
        schema |= {name: _widened(schema[name], [value]) for name, value in arguments.items() if name in schema}
    except (SyntaxError, ValueError):
        raise UsageError(f"{place}: ground_truth: expected the call of a function, got {text!r:.80}") from None
    except KeyError as error:
        raise UsageError(f"{place}: ground_truth: {text!r:.80} calls {error}, which is not among the tools") from None
    return {"name": tree.func.id, "arguments": arguments}


def _of(record: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    value = record.get(key)
    if not isinstance(value, kind) or not value:
        raise UsageError(f"{place}: expected a {kind.__name__} under {key!r}, got {value!r:.80}")
    return value
