"""Convert the published Berkeley Function Calling Leaderboard (https://github.com/ShishirPatil/gorilla).

Supports these Python kinds, live or not: simple, multiple, parallel, parallel_multiple, relevance and irrelevance.
Types become JSON Schema types, such as ``object`` for ``dict``, and dots in names become underscores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records, text_of
from pytest_lmeval.metrics.parts.tool_schema import fault

_TYPES = {"any": "string", "dict": "object", "float": "number", "tuple": "array"}
_ANSWERS = "possible_answer"
_NO_CALL, _ANY_CALL = "irrelevance", "relevance"
_STATEFUL = "its tools keep state over several turns; write it as an eval function"
_DROPPED = {
    "multi_turn": _STATEFUL,
    "memory": _STATEFUL,
    "web_search": "its tools search the web",
    "format_sensitivity": "it asks the questions of other files in other formats",
}
_MOST_VALUES = 200
_OPTIONAL = ""


class NoCounterpartError(ValueError):
    """A record that a task cannot represent; the text gives the record's kind and the reason."""


def convert_bfcl(source: Path, destination: Path) -> list[Path]:
    """Write ``NAME.jsonl`` for the published file ``source``, and ``NAME.left_out.txt`` for the records left out.

    Answers come from the records, or from the file with the same name in the subfolder ``possible_answer``. Omit and
    count the records of a kind without a counterpart, and the records with an empty list of functions. Raises
    UsageError if no record has a counterpart.
    """
    answers = _answers(source)
    records = []
    left_out: Counter[str] = Counter()
    for place, record in read_records(source):
        try:
            records.append(_record(source, place, record, answers))
        except NoCounterpartError as error:
            left_out[str(error)] += 1
    lines = [f"left out: {count} {reason}" for reason, count in left_out.items()]
    if not records:
        raise UsageError(f"{source}: no record has a counterpart; {'; '.join(lines)}")
    name = source.name.partition(".")[0].lower()
    files = {f"{name}.jsonl": encode_lines(records)}
    if lines:
        files[f"{name}.left_out.txt"] = "".join(f"{line}\n" for line in lines).encode()
    return NewFiles(destination, files).write()


def _answers(source: Path) -> Mapping[str, Any]:
    path = source.parent / _ANSWERS / source.name
    if not path.exists():
        return {}
    return {str(record.get("id")): record.get("ground_truth") for _, record in read_records(path)}


def _record(source: Path, place: str, record: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    name = _of(record, "id", str, place)
    if kind := next((kind for kind in _DROPPED if name.startswith(kind)), None):
        raise NoCounterpartError(f"{kind}: {_DROPPED[kind]}")
    if record.get("function") == []:
        raise NoCounterpartError("without any function to call")
    truth = record.get("ground_truth", answers.get(name))
    if truth is None and _ANY_CALL in name:  # "irrelevance", too
        truth = []
    is_any_call = truth == [] and _ANY_CALL in name and _NO_CALL not in name
    if not isinstance(truth, list):
        where = source.parent / _ANSWERS / source.name
        raise UsageError(f"{place}: no list ground_truth for {name!r}, neither in the record nor in {where}")
    tools = [_tool(each, place) for each in _of(record, "function", list, place)]
    calls = [_call(each, tools, place) for each in truth]
    # If any call is right, an answer is right unless it has no call.
    negated = {"not": True} if is_any_call else {}
    return {
        "id": name,
        "prompt": _prompt(record, place),
        "metric": "tool_calls",
        "extras": {"tools": tools, "calls": calls, "text": "bfcl", **negated},
    }


def _prompt(record: Mapping[str, Any], place: str) -> str:
    """Return the question; blank lines separate several messages."""
    turns = _of(record, "question", list, place)
    if len(turns) != 1:
        raise NoCounterpartError(f"with several turns: {_STATEFUL}")
    (messages,) = turns
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise UsageError(f"{place}: expected messages with content in 'question', got {messages!r:.80}")
    return "\n\n".join(text_of(each, "content", place) for each in messages)


def _tool(function: Any, place: str) -> dict[str, Any]:
    if not isinstance(function, dict) or not isinstance(function.get("parameters"), dict):
        raise UsageError(f"{place}: expected a function with name and parameters, got {function!r:.80}")
    return {
        "name": _named(_of(function, "name", str, place)),
        "description": str(function.get("description", "")),
        "parameters": _schema(function["parameters"]),
    }


def _named(name: str) -> str:
    # Chat interfaces do not allow dots in function names.
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
    """Return the expected call of ``{NAME: {ARGUMENT: [VALUE, ...]}}``; an empty string marks an optional argument.

    If the tool's schema forbids a published value, widen the schema, because the published value is right.
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
            accept[argument] = _alternatives(right, of)
            properties[argument] = _widened(of, accept[argument])
    needed = tool["parameters"].get("required", ())
    optional = [each for each in accept if _OPTIONAL in arguments[each] and each not in needed]
    return {"name": _named(name), "accept": accept, **({"optional": optional} if optional else {})}


def _widened(schema: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """Return ``schema`` if it allows all ``values``, else a schema that also allows the other values."""
    invalid = [value for value in values if fault(value, schema)]
    described = {"description": schema["description"]} if "description" in schema else {}
    return {**described, "anyOf": [schema, {"enum": invalid}]} if invalid else schema


def _alternatives(values: Sequence[Any], schema: Mapping[str, Any]) -> list[Any]:
    """Return all right values; an object lists the values of each key, with an empty string for an optional key."""
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
        raise NoCounterpartError(f"with more than {_MOST_VALUES} right values for an argument")
    return found


def _objects(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    absent = object()
    choices = []
    for key, values in value.items():
        listed = values if isinstance(values, list) else [values]
        choices.append([(key, absent if each == _OPTIONAL and len(listed) > 1 else each) for each in listed])
    for chosen in product(*choices):
        yield {key: each for key, each in chosen if each is not absent}


def _of(record: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    value = record.get(key)
    if not isinstance(value, kind) or not value:
        raise UsageError(f"{place}: expected a {kind.__name__} under {key!r}, got {value!r:.80}")
    return value
