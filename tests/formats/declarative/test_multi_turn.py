"""YAML tasks that are conversations, with tools that answer from a table or by a snippet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import ExampleResult, load_tasks, run_leaderboard
from pytest_lmeval.errors import BadTaskFile
from pytest_lmeval.types import Completion, Generate, Message, ToolCall

TASK = """
key: trip
display_name: Trip
definition:
  dataset: {path: rows.csv}
  solver:
    type: multi_turn_solver
    system: "You know {{ sample.city }}."
    turns:
    - user: "How is the weather in {{ sample.city }}?"
    - user: "And what shall I wear?"
    tools:
    - name: weather
      description: The weather in a city.
      parameters: {type: object, properties: {city: {type: string}}, required: [city]}
      responses:
RESPONSES
  scorers:
  - key: wear
    type: string_equals
    ground_truth: "{{ sample.wear }}"
  - key: called
    type: tool_calls
    extras: {calls: [{name: weather, arguments: {city: "{{ sample.city }}"}}]}
    metrics: [{type: mean, field: score}]
  - key: first
    type: substring_contains
    prediction: "{{ solver_output.turns[0].content }}"
    ground_truth: rain
"""
USER_TURNS = """\
    turns:
    - user: "How is the weather in {{ sample.city }}?"
    - user: "And what shall I wear?"
"""
TABLE = """
      - {arguments: {city: Riga}, response: {sky: rain}}
      - response: sun
"""
SNIPPET = """
        type: python
        respond_snippet: |
          def respond(arguments):
              return "rain in " + arguments["city"]
"""


class Model:
    """Calls the tool, says what it told, and answers the second question by a table."""

    name = "model"

    def __init__(self, city: Callable[[str], str] = str) -> None:
        self.asked: list[Generate] = []
        self._city = city

    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        self.asked += requests
        return [self._answer(request) for request in requests]

    def _answer(self, request: Generate) -> Completion:
        assert isinstance(request.prompt, tuple)
        last = request.prompt[-1]
        city = self._city(request.prompt[0].content.removeprefix("You know ").strip("."))
        if last.role == "tool":
            return Completion(f"It says {last.content}", cost=1.0)
        if "weather" in last.content:
            return Completion("", tool_calls=(ToolCall("x", "weather", f'{{"city": "{city}"}}'),))
        return Completion({"Riga": "boots"}.get(city, "shoes"))


def _write(folder: Path, responses: str) -> Path:
    (folder / "rows.csv").write_text("city,wear\nRiga,boots\nRome,sandals\n")
    (folder / "trip.yaml").write_text(TASK.replace("RESPONSES\n", responses.lstrip("\n")))
    return folder


def _run(folder: Path, model: Any) -> list[ExampleResult]:
    return list(run_leaderboard(load_tasks(folder), model).tasks[0].per_example)


@pytest.mark.parametrize(("responses", "told"), [(TABLE, '{"sky": "rain"}'), (SNIPPET, "rain in Riga")])
def test_a_row_is_asked_turn_by_turn_and_its_tools_answer(tmp_path: Path, responses: str, told: str) -> None:
    model = Model()
    riga, rome = _run(_write(tmp_path, responses), model)
    assert ((1.0, "boots"), (0.0, "shoes")) == tuple((each.score, each.predictions[0]) for each in (riga, rome))
    # A conversation, not a text.
    last = next(each for each in reversed(model.asked) if "Riga" in each.prompt[0].content)  # type: ignore[union-attr]
    assert ["system", "user", "assistant", "tool", "assistant", "user"] == [
        message.role for message in last.prompt if isinstance(message, Message)
    ]
    assert told == last.prompt[3].content  # type: ignore[union-attr]  # a conversation, not a text
    assert ("weather", "auto") == (last.tools[0]["name"], last.tool_choice)
    scorers = riga.details["scorers"]
    assert (1.0, 1.0) == (scorers["called"]["score"], scorers["first"]["score"])
    turns = riga.details["turns"]
    assert ["assistant", "tool", "assistant"] == [said["role"] for said in turns[0]["said"]]
    assert "And what shall I wear?" == turns[1]["user"]


def test_the_calls_of_all_turns_are_scored(tmp_path: Path) -> None:
    riga, _ = _run(_write(tmp_path, TABLE), Model(city=lambda city: "Oslo"))
    difference = riga.details["scorer_details"]["called"]["difference"]
    assert 'call of weather: argument city: expected "Riga", got "Oslo"' == difference


def test_an_answer_that_only_calls_a_tool_is_not_unparsed(tmp_path: Path) -> None:
    path = _write(tmp_path, TABLE) / "trip.yaml"
    text = path.read_text()
    first, called = text.index("  - key: wear"), text.index("  - key: called")
    path.write_text(text[:first] + text[called : text.index("  - key: first")])
    riga, _ = _run(tmp_path, Model())
    assert (1.0, False) == (riga.score, riga.unparsed)


def test_a_snippet_that_raises_is_an_error_of_the_row(tmp_path: Path) -> None:
    broken = SNIPPET.replace("city", "town")
    riga, _ = _run(_write(tmp_path, broken), Model())
    assert ("error", "tool weather: respond in trip.yaml") == (riga.status, riga.error[:34])
    assert 1 == len(riga.exchanges)


@pytest.mark.parametrize(
    ("responses", "old", "new", "detail"),
    [
        (TABLE, "type: multi_turn_solver", "type: multi_turn", "multi_turn_solver"),
        (TABLE, '- user: "And', '- usr: "And', "did you mean 'user'?"),
        (TABLE, "sample.city }}?", "sample.town }}?", "no column 'town'"),
        (TABLE, "{type: string}", "{type: str}", "did you mean 'string'?"),
        (TABLE, "type: object", "type: dict", "'dict' is not one of"),
        (TABLE, "    tools:\n", "    tool_choice: wether\n    tools:\n", "did you mean 'weather'?"),
        (TABLE, "    tools:\n", "    max_rounds: 0\n    tools:\n", "max_rounds"),
        (TABLE, USER_TURNS, "    turns: []\n", "definition.solver.turns: column 5: List should have at least 1 item"),
        (SNIPPET, "def respond(", "def answer(", "no function respond(...)"),
        (
            TABLE,
            "city: Riga",
            "town: Riga",
            "tools[0].responses[0].arguments: not valid by the schema of weather: argument town: there is",
        ),
        (TABLE, "[{name: weather, ", "[{name: wether, ", "unknown tool 'wether'; did you mean 'weather'?"),
        (
            TABLE,
            "weather, arguments: {city:",
            "weather, arguments: {town:",
            "argument town: there is no parameter 'town' (choices: city)",
        ),
        (TABLE, "extras: {calls: ", "extras: {call: ", "needs the expected calls"),
        (TABLE, "type: string_equals", "type: turns", "unknown scorer type 'turns'"),
        (SNIPPET, "respond(arguments)", "respond()", "takes 0 arguments; expected 1"),
    ],
)
def test_what_is_wrong_with_a_conversation_is_said_at_collection(
    tmp_path: Path, responses: str, old: str, new: str, detail: str
) -> None:
    folder = _write(tmp_path, responses)
    text = (folder / "trip.yaml").read_text()
    assert old in text
    (folder / "trip.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(BadTaskFile) as refused:
        load_tasks(folder)
    assert detail in str(refused.value)


def test_message_builders_are_refused_with_what_stands_for_them(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("city\nRome\n")
    text = TASK.replace("RESPONSES", TABLE).replace(
        "    turns:", "    message_builders: [{type: chat_message}, {type: generate}]\n    turns:"
    )
    (tmp_path / "trip.yaml").write_text(text)
    with pytest.raises(
        BadTaskFile, match="unknown field 'message_builders': write turns, one message of the user each"
    ):
        load_tasks(tmp_path)
