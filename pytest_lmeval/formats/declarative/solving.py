"""Turn a row into a prompt for the model, and the answer into variables for scorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.data.lines import parse_line
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.declarative.models.task import (
    ChatInput,
    MultiTurnSolver,
    SingleTurnSolver,
    SolverTool,
)
from pytest_lmeval.formats.declarative.snippets import Snippet, attributes, plain
from pytest_lmeval.formats.persona import Persona, PlayedScript
from pytest_lmeval.formats.turning import Script, asked_in, by_turn, from_table, said_in, text_of
from pytest_lmeval.task import FollowUp
from pytest_lmeval.templates.filters import MEMORY, MemoryBudget
from pytest_lmeval.templates.rows import PartsTemplate
from pytest_lmeval.templates.template import Template, TemplateFault, compile_template
from pytest_lmeval.types import Completion, Exchange, Media, Message, ToolCall

_SOLVER = "definition.solver"


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """A row's prompt, as messages or text, and as ``model_input`` for scorers.

    ``messages`` contains the first request's messages. In a conversation, ``user_turns`` contains the user's messages,
    unless ``persona`` is a simulated user. ``fault`` is the reason why the row has no prompt.
    """

    prompt: str = ""
    messages: tuple[Message, ...] = ()
    model_input: Mapping[str, Any] = field(default_factory=dict)
    user_turns: tuple[Message, ...] = ()
    persona: Persona | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredRow:
    """A data set row with the model's answer.

    ``solver_output`` is None if the task asks no model.
    """

    sample: Mapping[str, Any]
    model_input: Mapping[str, Any] = field(default_factory=dict)
    solver_output: Mapping[str, Any] | None = None
    media: tuple[Media, ...] = ()
    memory: MemoryBudget = field(default_factory=MemoryBudget, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The model's answer."""
        if self.solver_output is None:
            raise ScoringError("no model was asked; a scorer of a data set needs prediction: '{{ sample.COLUMN }}'")
        try:
            content = self.solver_output["output"]["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise ScoringError("solver_output has no output.choices[0].message.content") from None
        if not isinstance(content, str):
            raise ScoringError(f"solver_output: the content is {type(content).__name__}; expected text")
        return content

    @property
    def output(self) -> str:
        """The model's answer as the ledger records it, including tool calls."""
        calls = (self.solver_output or {}).get("tool_calls", ())
        return Completion(self.text, tool_calls=tuple(ToolCall(*call) for call in calls)).output

    def variables(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """Return the variables for the templates of scorers and actions."""
        variables: dict[str, Any] = {"sample": self.sample, "scores": scores, MEMORY: self.memory}
        if self.solver_output is not None:
            variables["solver_output"] = self.solver_output
            variables["model_output"] = self.solver_output.get("output")
            variables["messages"] = self.solver_output.get("messages", [])
            variables["input_prompt"] = self.text
        return variables


@dataclass(frozen=True, slots=True)
class _Message:
    """A message template filled in from rows; error messages call its content ``field``."""

    role: str
    content: Template | PartsTemplate
    field: str

    @classmethod
    def of(cls, role: str, given: str | Sequence[object], field: str) -> _Message:
        is_text = isinstance(given, str)
        return cls(role, compile_template(given) if is_text else PartsTemplate.of(given, field), field)

    def fill(self, variables: Mapping[str, Any], folder: Path) -> Message:
        if isinstance(self.content, Template):
            return Message(self.role, self.content.render(variables))
        from pytest_lmeval.media.given import message_of

        return message_of(self.content.fill(variables), self.field, folder, self.role)


class Solver:
    """Makes a row's requests: one request, or the requests of a conversation.

    ``responding`` maps a tool's name to the snippet that answers calls to the tool. ``folder`` is the task file's
    folder.
    """

    def __init__(
        self,
        model: SingleTurnSolver | MultiTurnSolver,
        postprocess: Snippet | None,
        responding: Mapping[str, Snippet],
        folder: Path,
    ) -> None:
        self.model = model
        self._folder = folder
        self.postprocess = postprocess
        self._responding = responding
        self._turns: list[_Message] = []
        self._user: tuple[Template, Template] | None = None
        self._messages: list[_Message] = []
        self._generic: Template | None = None
        self.request_fields: dict[str, Any] = {"stop": tuple(model.stop), "max_tokens": model.max_tokens}
        if isinstance(model, MultiTurnSolver):
            said = enumerate(turn.user for turn in model.turns)
            self._turns = [_Message.of("user", given, f"{_SOLVER}.turns[{number}].user") for number, given in said]
            self._messages = [_Message.of("system", model.system, f"{_SOLVER}.system")] if model.system else []
            if model.user is not None:
                self._user = compile_template(model.user.persona), compile_template(model.user.goal)
            if model.tools:
                tools = tuple(tool.function() for tool in model.tools)
                self.request_fields |= {"tools": tools, "tool_choice": model.tool_choice}
        elif isinstance(model.input_builder, ChatInput):
            field = f"{_SOLVER}.input_builder.input_messages"
            messages = enumerate(model.input_builder.input_messages)
            self._messages = [
                _Message.of(one.role, one.content, f"{field}[{number}].content") for number, one in messages
            ]
        else:
            self._generic = compile_template(model.input_builder.template)

    def ask(self, sample: Mapping[str, Any]) -> RowPrompt:
        """Return a row's prompt; raise ScoringError if the row cannot fill a template.

        Raises RecordRefused if the row cannot fill a list of text and media, or if the media cannot be read.
        """
        variables = {"sample": sample, MEMORY: MemoryBudget()}
        try:
            if self._generic is not None:
                return _generic_input(self._generic.render(variables))
            turns = tuple(each.fill(variables, self._folder) for each in self._turns)
            filled = [*(each.fill(variables, self._folder) for each in self._messages), *turns[:1]]
            played = None if self._user is None else tuple(template.render(variables) for template in self._user)
        except TemplateFault as fault:
            raise ScoringError(f"solver: {fault}") from None
        shown = "\n\n".join(message.content for message in filled)
        if played is None:
            return RowPrompt(shown, tuple(filled), {"messages": _as_json(filled)}, turns)
        return self._played(filled, *played)

    def _played(self, filled: Sequence[Message], persona: str, goal: str) -> RowPrompt:
        """Return the prompt for a conversation with a simulated user, which has a persona instead of messages."""
        assert isinstance(self.model, MultiTurnSolver)
        assert self.model.user is not None
        user = Persona(persona, goal, self.model.user.max_turns)
        try:
            user.check("user.")
        except RecordRefused as refused:
            raise ScoringError(f"solver: {refused.field}: {refused.detail}") from None
        who = Message("user", "\n".join(filter(None, [f"Played by a model: {persona}", goal])))
        shown = "\n\n".join(message.content for message in (*filled, who))
        return RowPrompt(shown, (*filled, who), {"messages": _as_json(filled)}, (), user)

    def follow_up(self, asked: RowPrompt) -> FollowUp | None:
        """Return the function that continues the conversation about a row, or None for a single request."""
        if asked.persona is not None:
            return self.played(asked)
        return self._script(asked.user_turns).next_request if isinstance(self.model, MultiTurnSolver) else None

    def played(self, asked: RowPrompt) -> PlayedScript:
        """Return the script for a conversation with a simulated user."""
        assert asked.persona is not None
        return PlayedScript(asked.persona, self._script())

    def stopped(self, turn: Sequence[Exchange]) -> str:
        """Return the reason why a turn was cut off before the model ended it, or ""."""
        return self._script().stopped(turn)

    def _script(self, user_turns: Sequence[Message] = ()) -> Script:
        assert isinstance(self.model, MultiTurnSolver)
        answers_calls = any(tool.responses is not None for tool in self.model.tools)
        return Script(user_turns, self._respond if answers_calls else None, self.model.max_rounds)

    def _respond(self, call: ToolCall) -> str:
        assert isinstance(self.model, MultiTurnSolver)
        if call.name in self._responding and call.values is not None:
            return text_of(plain(self._responding[call.name](call.values)))
        return from_table({tool.name: _table(tool) for tool in self.model.tools})(call)

    def rows(self, sample: Mapping[str, Any], asked: RowPrompt, completion: Completion) -> list[AnsweredRow]:
        """Return an answer's rows: one row, or the rows that the postprocessor makes."""
        media = tuple(one for message in (*asked.messages, *asked.user_turns[1:]) for one in message.media)
        row = AnsweredRow(sample, asked.model_input, _output(asked, completion), media)
        if self.postprocess is None:
            return [row]
        return _rows_of(self.postprocess(attributes(sample), attributes(row.solver_output)), row)


def _rows_of(returned: Any, row: AnsweredRow) -> list[AnsweredRow]:
    """Return the rows in a postprocessor's result, which is text, an output, or a list of pairs."""
    try:
        if isinstance(returned, str):
            return [replace(row, solver_output=_with_content(row.solver_output, plain(returned)))]
        pairs = [(row.sample, returned)] if isinstance(returned, Mapping) else returned
        if isinstance(pairs, Sequence) and pairs and all(_is_pair(each) for each in pairs):
            rows = [replace(row, sample=plain(dict(one)), solver_output=plain(dict(output))) for one, output in pairs]
            _ = [each.text for each in rows]  # raises for an output without text
            return rows
    except ValueError as error:
        raise ScoringError(f"postprocessor: {error}") from None
    wanted = "text, a solver_output, or a list of (sample, solver_output)"
    raise ScoringError(f"postprocessor: returned {returned!r:.80}; expected {wanted}")


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, Mapping) for each in value)


def _generic_input(text: str) -> RowPrompt:
    try:
        value = parse_line(text.strip().encode("utf-8", "surrogatepass"))
    except RecordRefused as refused:
        hint = "write values as {{ sample.x | tojson }}, without quotes around them"
        raise ScoringError(f"solver: the template gave no JSON: {refused.detail}; {hint}") from None
    messages = value.get("messages") if isinstance(value, dict) else None
    model_input = value if isinstance(value, dict) else {"input": value}
    if isinstance(messages, list) and messages and all(_is_message(each) for each in messages):
        filled = tuple(Message(each["role"], each["content"]) for each in messages)
        return RowPrompt("\n\n".join(message.content for message in filled), filled, model_input)
    return RowPrompt(text.strip(), (), model_input)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in ("system", "user", "assistant"):
        return False
    return isinstance(value.get("content"), str)


def _as_json(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.to_json() for message in messages]


def _table(tool: SolverTool) -> list[dict[str, Any]]:
    table = tool.responses if isinstance(tool.responses, list) else ()
    return [
        {"response": each.response, **({} if each.arguments is None else {"arguments": each.arguments})}
        for each in table
    ]


def turns_of(completion: Completion) -> list[dict[str, Any]]:
    """Return the messages of each turn of a conversation, for reports and scorers."""
    found = []
    for turn in by_turn(completion.exchanges):
        *_, user = [message for message in turn[0].request.prompt if isinstance(message, Message)]
        found.append({**asked_in(user), "said": said_in(turn), "content": turn[-1].response.text})
    return found


def _output(asked: RowPrompt, completion: Completion) -> dict[str, Any]:
    answer = Message("assistant", completion.text, completion.tool_calls).to_json()
    choice = {"index": 0, "message": answer, "finish_reason": completion.finish_reason or None}
    turns: dict[str, Any] = {}
    calls = completion.tool_calls
    if completion.exchanges:
        last = completion.exchanges[-1].request.prompt
        before = [message.to_json() for message in last if isinstance(message, Message)]
        calls = tuple(call for each in completion.exchanges for call in each.response.tool_calls)
        turns = {"turns": turns_of(completion)}
    else:
        messages = asked.model_input.get("messages") if asked.messages else None
        before = list(messages or [{"role": "user", "content": asked.prompt}])
    variables = {"messages": [*before, answer], "output": {"choices": [choice]}, **turns}
    return {**variables, **({"tool_calls": [list(call) for call in calls]} if calls else {})}


def _with_content(output: Mapping[str, Any] | None, text: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": text}
    messages = list((output or {}).get("messages", []))[:-1]
    return {"messages": [*messages, answer], "output": {"choices": [{"index": 0, "message": answer}]}}
