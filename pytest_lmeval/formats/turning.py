"""Continue a conversation until its script ends: tools answer calls, and the user sends messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.types import Completion, Exchange, Generate, Message, ToolCall

MAX_ROUNDS = 10
Respond = Callable[[ToolCall], str]
"""Returns a tool's answer to a call."""


@dataclass(frozen=True, slots=True)
class Script:
    """The user's messages, turn by turn, and the function that answers tool calls.

    Without ``respond``, a tool call ends the turn. ``max_rounds`` limits the requests in a turn that send tools'
    answers.
    """

    said: Sequence[Message]
    respond: Respond | None = None
    max_rounds: int = MAX_ROUNDS

    def next_request(self, exchanges: Sequence[Exchange]) -> Generate | None:
        """Return the request that follows one or more ``exchanges``, or None at the end."""
        turns, talk = by_turn(exchanges), self.talk(exchanges)
        if self.goes_on(turns[-1]):
            return replace(exchanges[-1].request, prompt=tuple(talk))
        if len(turns) == len(self.said):
            return None
        return replace(exchanges[-1].request, prompt=(*talk, self.said[len(turns)]))

    def talk(self, exchanges: Sequence[Exchange]) -> list[Message]:
        """Return all messages so far, including the last answer and the tools' answers to it."""
        turn, last = by_turn(exchanges)[-1], exchanges[-1]
        talk = [*messages_of(last.request), last.response.message]
        goes_on = self.goes_on(turn)
        for call in last.response.tool_calls:
            content = self.respond(call) if self.respond is not None and goes_on else ""
            talk.append(Message("tool", content, tool_call_id=call.id))
        return talk

    def stopped(self, turn: Sequence[Exchange]) -> str:
        """Return the reason why a turn was cut short, or ""."""
        asks = turn[-1].response.tool_calls and self.respond is not None
        return f"stopped after {self.max_rounds} rounds of calls (max_rounds)" if asks else ""

    def goes_on(self, turn: Sequence[Exchange]) -> bool:
        """Return True if the turn continues, because tools answer its last calls."""
        return bool(turn[-1].response.tool_calls) and self.respond is not None and len(turn) <= self.max_rounds


def by_turn(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Return the exchanges of each turn; each user message begins a turn."""
    turns: list[list[Exchange]] = []
    said = -1
    for each in exchanges:
        users = sum(message.role == "user" for message in messages_of(each.request))
        if users != said:
            turns.append([])
            said = users
        turns[-1].append(each)
    return turns


def answer_of(exchanges: Sequence[Exchange]) -> Completion:
    """Return a turn's last answer, with all calls in the turn."""
    calls = tuple(call for each in exchanges for call in each.response.tool_calls)
    return replace(exchanges[-1].response, tool_calls=calls)


def asked_in(user: Message) -> dict[str, Any]:
    """Return the user's message in a turn as JSON: its text, and its parts if it has media."""
    return {"user": user.content, **({"parts": user.to_json()["content"]} if user.parts else {})}


def said_in(turn: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return the model's and the tools' messages in a turn, as JSON."""
    shown: list[dict[str, Any]] = []
    for number, each in enumerate(turn):
        calls = [{"name": call.name, "arguments": call.values or call.arguments} for call in each.response.tool_calls]
        answer = {"role": "assistant", "content": each.response.text}
        shown.append({**answer, "calls": calls} if calls else answer)
        if number + 1 < len(turn):
            later = messages_of(turn[number + 1].request)[len(messages_of(each.request)) + 1 :]
            shown += [{"role": "tool", "content": one.content} for one in later]
    return shown


def from_table(table: Mapping[str, Any]) -> Respond:
    """Return a function that answers calls from a table, which has a response or a list of responses for each tool."""

    def respond(call: ToolCall) -> str:
        if call.name not in table:
            return json.dumps({"error": f"there is no tool {call.name[:100]!r} with a response"})
        values = call.values
        if values is None:
            return json.dumps({"error": "the arguments are no JSON object"})
        found = next(_responses(table[call.name], values), {"error": "no response for these arguments"})
        return text_of(found)

    return respond


def text_of(response: Any) -> str:
    """Return a tool's response unchanged if it is text, else as JSON."""
    return response if isinstance(response, str) else json.dumps(response)


def _responses(entry: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    if not isinstance(entry, list):
        yield entry
        return
    for each in entry:
        if "arguments" not in each or json_equal(each["arguments"], values):
            yield each["response"]


def messages_of(request: Generate) -> tuple[Message, ...]:
    """Return a request's messages."""
    return (Message("user", request.prompt),) if isinstance(request.prompt, str) else request.prompt
