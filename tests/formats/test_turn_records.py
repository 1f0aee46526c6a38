"""Records with tools and with turns: what is refused, and how a conversation goes on and is scored."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks, run_leaderboard
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.loading import default_registry, validate_task
from pytest_lmeval.schemas import load_schema
from pytest_lmeval.types import Completion, ExampleResult, Generate, ToolCall
from tests.needs import module
from tests.tables import each_row

jsonschema = module("jsonschema")
SCHEMA = jsonschema.Draft202012Validator(load_schema("compact-record"))
WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALLED: dict[str, Any] = {
    "id": "a",
    "prompt": "How is the weather in Riga?",
    "metric": "tool_calls",
    "extras": {"tools": [WEATHER], "calls": [{"name": "weather", "arguments": {"city": "Riga"}}]},
}
TURNS: dict[str, Any] = {
    "id": "a",
    "turns": [{"user": "one?", "targets": ["1"]}, {"user": "and?"}, {"user": "two?", "targets": ["2"], "metric": "f1"}],
    "extras": {"tools": [WEATHER], "responses": {"weather": "rain"}, "max_rounds": 2},
}


def changed(record: Mapping[str, Any], place: str, value: Any) -> dict[str, Any]:
    """Return a copy of ``record`` with a value at a dotted place, or without one where the value is ``...``."""
    made = copy.deepcopy(dict(record))
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    holder: Any = made
    for part in path:
        holder = holder[part]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return made


@each_row(
    "record",
    [
        CALLED,
        TURNS,
        changed(CALLED, "extras.calls", []),
        changed(CALLED, "targets", ["weather"]),
        changed(CALLED, "extras.tools", [{"type": "function", "function": WEATHER}]),
        changed(CALLED, "extras.tool_choice", "weather"),
        changed(TURNS, "extras", ...),
        changed(TURNS, "turns.2", {"user": "?", "metric": "tool_calls", "extras": {"calls": []}}),
        changed(TURNS, "extras.responses", {"weather": [{"arguments": {"city": "Riga"}, "response": {"c": 1}}]}),
    ],
)
def test_good_records_are_taken(record: Mapping[str, Any]) -> None:
    validate_task(record)
    assert SCHEMA.is_valid(record)


BAD_CALLED: list[tuple[str, Any, str]] = [
    ("extras.tools", [], "bad_type extras.tools: non-empty array of functions"),
    ("extras.tools", [{}], "bad_type extras.tools[0]: with a name and parameters"),
    ("extras.tools.0.parameters", "x", "bad_type extras.tools[0].parameters: a JSON Schema"),
    ("extras.tools.0.parameters.type", "dict", "bad_value extras.tools[0].parameters.type: "),
    (
        "extras.tools.0.parameters.properties.city",
        {"type": "str"},
        "bad_value extras.tools[0].parameters.properties.city.type: did you mean 'string'?",
    ),
    ("extras.tools.0.parameters.required", "city", "bad_type extras.tools[0].parameters.required: an array of names"),
    ("extras.tools", [WEATHER, WEATHER], "bad_value extras.tools: two tools are called"),
    ("extras.tools.0.name", "a b", "bad_value extras.tools[0].name: characters"),
    ("extras.calls", ..., "missing_required extras.calls: [] if no call may be made"),
    ("extras.calls.0.name", "wether", "bad_value extras.calls[0].name: unknown tool 'wether'; did you mean 'weather'?"),
    ("extras.calls.0.arguments", {"town": "Riga"}, "bad_value extras.calls[0].arguments: no parameter 'town'"),
    ("extras.order", "random", "bad_value extras.order: any, exact"),
    ("extras.arguments", "some", "bad_value extras.arguments: exact, subset"),
    ("extras.tool_choice", "wether", "bad_value extras.tool_choice: did you mean 'weather'?"),
    ("metric", "exact_match", "missing_required targets: required: prompt, targets, metric"),
    (
        "extras.tools.0.parameters",
        {"properties": ["city"]},
        "bad_type extras.tools[0].parameters.properties: an object, got an array",
    ),
    (
        "extras.calls.0.arguments",
        '{"city": "Riga"}',
        'bad_type extras.calls[0].arguments: an object, got \'{"city": "Riga"}\'',
    ),
    ("extras.tools", ..., "missing_required extras.tools: needs the tools"),
]
BAD_TURNS: list[tuple[str, Any, str]] = [
    ("turns", [], "bad_type turns: an empty one"),
    ("turns", [{"user": "?"}], "bad_value turns: no turn has targets"),
    ("turns.1", "and?", "bad_type turns[1]: an object with user"),
    ("turns.1", {"usr": "and?"}, "unknown_field turns[1].usr: did you mean 'user'?"),
    ("turns.1", {}, "missing_required turns[1].user: begins with a message of the user"),
    ("turns.0.user", "", "bad_type turns[0].user: an empty one"),
    ("turns.0.targets", [], "bad_type turns[0].targets: an empty one"),
    ("turns.2.targets", ..., "missing_required turns[2].targets: f1 needs targets"),
    ("turns.0.metric", "code_exec", "bad_value turns[0].metric: runs programs"),
    ("turns.0.metric", "exact", "bad_value turns[0].metric: did you mean"),
    ("prompt", "?", "unknown_field prompt: its turns have messages"),
    ("extras.responses", {"news": "x"}, "bad_value extras.responses: is not one of weather"),
    ("extras.responses", {"weather": [1]}, "bad_type extras.responses.weather[0]: response"),
    (
        "extras.responses",
        {"weather": [{"arguments": {"city": "Riga"}}]},
        "bad_type extras.responses.weather[0]: expected an object with response",
    ),
    (
        "extras.responses",
        {"weather": [{"arguments": {"town": "Riga"}, "response": 1}]},
        "bad_value extras.responses.weather[0].arguments: no parameter 'town'",
    ),
    ("extras.max_rounds", 0, "bad_value extras.max_rounds: in [1, 100]"),
    ("extras.tools", ..., "missing_required extras.tools: answers of tools"),
    ("extras.responses", ..., "missing_required extras.responses: max_rounds"),
]
BAD: list[tuple[Mapping[str, Any], str, Any, str]] = [
    *((CALLED, *row) for row in BAD_CALLED),
    *((TURNS, *row) for row in BAD_TURNS),
    ({**CALLED, "targets": ["x"]}, "metric", "turns", "bad_value metric: a record that has turns instead of a prompt"),
    (
        {"id": "a", "turns": [{"user": "?", "metric": "tool_calls", "extras": {"calls": []}}]},
        "id",
        "a",
        "missing_required extras.tools: turns[0] has the metric tool_calls",
    ),
]


@each_row(("record", "place", "value", "said"), BAD)
def test_bad_records_are_refused_by_rule_field_and_choices(
    record: Mapping[str, Any], place: str, value: Any, said: str
) -> None:
    fault, _, detail = said.partition(": ")
    bad = changed(record, place, value)
    with pytest.raises(RecordRefused) as refused:
        validate_task(bad)
    assert fault == f"{refused.value.rule} {refused.value.field}"
    assert detail in refused.value.detail
    # A schema knows neither the registry nor the names of the tools.
    known_to_the_registry = ("metric", "calls", "tools", "tool_choice", "responses")
    assert not SCHEMA.is_valid(bad) or any(word in refused.value.field for word in known_to_the_registry)


# How it goes on


class Scripted:
    """Answers the last message by a function, and keeps the requests, call by call."""

    name = "scripted"

    def __init__(self, answer: Callable[[Generate], Completion]) -> None:
        self._answer = answer
        self.calls: list[list[Generate]] = []

    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        self.calls.append(list(requests))
        return [self._answer(request) for request in requests]

    @property
    def talks(self) -> list[list[tuple[str, str]]]:
        """What each request held, as roles and contents."""
        return [
            [(message.role, message.content) for message in request.prompt if not isinstance(message, str)]
            for call in self.calls
            for request in call
        ]


def run(folder: Path, *records: Mapping[str, Any], model: Scripted, **options: Any) -> list[ExampleResult]:
    (folder / "talk.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    board = run_leaderboard(load_tasks(folder, registry=options.get("registry")), model, **options)
    return list(board.tasks[0].per_example)


def echo(request: Generate) -> Completion:
    return Completion(request.prompt[-1].content[0] if isinstance(request.prompt, tuple) else "", thoughts="hm")


def test_turns_are_asked_one_after_another_with_the_models_own_answers_and_no_thoughts(tmp_path: Path) -> None:
    model = Scripted(echo)
    said = [{"user": "1?", "targets": ["1"]}, {"user": "and?"}, {"user": "2?", "targets": ["3"]}]
    (result,) = run(tmp_path, {"id": "a", "turns": said}, model=model)
    first = [("user", "1?"), ("assistant", "1"), ("user", "and?")]
    assert [first[:1], first, [*first, ("assistant", "a"), ("user", "2?")]] == model.talks
    assert (0.5, "turns", ("1\n2",)) == (result.score, result.metric, result.predictions)
    assert ('["1","a","2"]',) == result.outputs
    assert [True, None, False] == [turn.get("passed") for turn in result.details["turns"]]
    assert ["hm"] * 3 == [each["thoughts"] for each in result.exchanges]


def test_thoughts_without_an_answer_pass_no_turn_that_asks_for_an_absence(tmp_path: Path) -> None:
    turn = {"user": "1?", "targets": ["1"], "metric": "contains_any", "extras": {"not": True}}
    (result,) = run(tmp_path, {"id": "a", "turns": [turn]}, model=Scripted(lambda _: Completion("", thoughts="hm")))
    assert (0.0, True) == (result.score, result.unparsed)


def test_the_next_turn_of_all_examples_of_a_batch_is_one_call(tmp_path: Path) -> None:
    model = Scripted(echo)
    said = [{"user": "1?", "targets": ["1"]}, {"user": "2?"}]
    run(tmp_path, *[{"id": str(number), "turns": said[: 1 + number % 2]} for number in range(4)], model=model)
    assert [4, 2] == [len(call) for call in model.calls]


def test_repeats_are_conversations_of_their_own(tmp_path: Path) -> None:
    model = Scripted(lambda request: Completion(str(request.repeat)))
    said = [{"user": "1?", "targets": ["1"]}, {"user": "2?", "targets": ["1"]}]
    (result,) = run(tmp_path, {"id": "a", "turns": said}, model=model, repeats=2)
    assert ('["0","0"]', '["1","1"]') == result.outputs
    assert [0.0, 1.0] == result.details["scores"]


class Half:
    """A number of another library, which is no float."""

    def __float__(self) -> float:
        return 0.5


def test_a_turn_takes_whatever_number_its_metric_gives(tmp_path: Path) -> None:
    registry = default_registry(entry_points=False)
    registry.add_metric("half", lambda *_: Half(), threshold=0.5)
    said = [{"user": "1?", "targets": ["1"], "metric": "half"}]
    (result,) = run(tmp_path, {"id": "a", "turns": said}, model=Scripted(echo), registry=registry)
    assert (1.0, 0.5) == (result.score, result.details["turns"][0]["score"])


def _calling(request: Generate) -> Completion:
    assert isinstance(request.prompt, tuple)
    last = request.prompt[-1]
    if last.role == "tool":
        return Completion(f"It is {last.content}.")
    return Completion("Let me see.", tool_calls=(ToolCall("c1", "weather", '{"city": "Riga"}'),))


def test_a_tool_answers_from_the_table_until_the_model_answers(tmp_path: Path) -> None:
    model = Scripted(_calling)
    table = {"weather": [{"arguments": {"city": "Oslo"}, "response": "snow"}, {"response": {"sky": "rain"}}]}
    expected = {"calls": [{"name": "weather", "arguments": {"city": "Riga"}}]}
    turns = [
        {"user": "Weather?", "targets": ["rain"], "metric": "substring_contains"},
        {"user": "Again?", "metric": "tool_calls", "extras": expected},
    ]
    record = {"id": "a", "turns": turns, "extras": {"tools": [WEATHER], "responses": table}}
    (result,) = run(tmp_path, record, model=model)
    assert ("tool", '{"sky": "rain"}') == model.talks[1][-1]
    assert (4, 1.0) == (len(model.talks), result.score)
    said = result.details["turns"][0]["said"]
    assert [("assistant", "Let me see."), ("tool", '{"sky": "rain"}'), ("assistant", 'It is {"sky": "rain"}.')] == [
        (each["role"], each["content"]) for each in said
    ]
    assert [{"name": "weather", "arguments": {"city": "Riga"}}] == said[0]["calls"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("c", "weather", '{"city": "Rome"}'), "no response for these arguments"),
        (ToolCall("c", "news", "{}"), "there is no tool 'news' with a response"),
        (ToolCall("c", "weather", "{"), "the arguments are no JSON object"),
    ],
)
def test_a_call_that_no_tool_answers_is_told_so_and_goes_on(tmp_path: Path, call: ToolCall, told: str) -> None:
    def answer(request: Generate) -> Completion:
        last = request.prompt[-1]
        return Completion("done") if getattr(last, "role", "") == "tool" else Completion("", tool_calls=(call,))

    model = Scripted(answer)
    table = {"weather": [{"arguments": {"city": "Riga"}, "response": "rain"}]}
    record = {"turns": [{"user": "?", "targets": ["done"]}], "extras": {"tools": [WEATHER], "responses": table}}
    (result,) = run(tmp_path, record, model=model)
    assert 1.0 == result.score
    assert told in model.talks[1][-1][1]


def test_a_model_that_calls_for_ever_is_stopped_and_the_limit_is_named(tmp_path: Path) -> None:
    model = Scripted(lambda request: Completion("x", tool_calls=(ToolCall("c", "weather", "{}"),)))
    extras = {"tools": [WEATHER], "responses": {"weather": "rain"}, "max_rounds": 2}
    record = {"turns": [{"user": "?", "targets": ["x"]}, {"user": "!", "targets": ["x"]}], "extras": extras}
    (result,) = run(tmp_path, record, model=model)
    assert ("failed", 0.0) == (result.status, result.score)
    assert "stopped after 2 rounds of calls (max_rounds)" == result.details["turns"][0]["stopped"]
    assert 6 == len(model.talks)


def test_without_responses_a_turn_ends_with_the_calls(tmp_path: Path) -> None:
    model = Scripted(lambda request: Completion("", tool_calls=(ToolCall("c", "weather", '{"city": "Riga"}'),)))
    turn = {"user": "?", "metric": "tool_calls", "extras": {"calls": CALLED["extras"]["calls"]}}
    (result,) = run(tmp_path, {"turns": [turn, turn], "extras": {"tools": [WEATHER]}}, model=model)
    assert (1.0, [("user", "?"), ("assistant", ""), ("tool", ""), ("user", "?")]) == (result.score, model.talks[1])


def test_a_single_request_is_asked_with_its_tools_and_scored_by_its_calls(tmp_path: Path) -> None:
    seen: list[Generate] = []

    def answer(request: Generate) -> Completion:
        seen.append(request)
        return _calling(Generate((*request.prompt,) if isinstance(request.prompt, tuple) else _user(request.prompt)))

    (result,) = run(tmp_path, changed(CALLED, "extras.tool_choice", "required"), model=Scripted(answer))
    assert (1.0, (WEATHER,), "required") == (result.score, seen[0].tools, seen[0].tool_choice)
    assert ['weather(city="Riga")'] == result.details["expected"]


def _user(text: str) -> Any:
    from pytest_lmeval.types import Message

    return (Message("user", text),)


def test_tools_of_other_metrics_are_their_own_business(tmp_path: Path) -> None:
    model = Scripted(lambda request: Completion("x", tool_calls=()) if not request.tools else Completion("y"))
    record = {"prompt": "?", "targets": ["x"], "metric": "exact_match", "extras": {"tools": "any"}}
    (result,) = run(tmp_path, record, model=model)
    assert 1.0 == result.score


def test_an_adapter_that_takes_only_texts_is_not_asked_with_tools(tmp_path: Path) -> None:
    class Texts:
        name = "texts"

        def generate(self, prompts: list[str]) -> list[str]:
            return ["2" for _ in prompts]

    (tmp_path / "talk.jsonl").write_text(json.dumps(CALLED))
    (result,) = run_leaderboard(load_tasks(tmp_path), Texts()).tasks[0].per_example
    assert "adapter texts accepts only text, no tools: it has only generate" in result.error
