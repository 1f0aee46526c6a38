"""From a row to what the model is asked, and from its answer to what scorers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.data.lines import parse_line
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.declarative.kit import Kit
from pytest_lmeval.formats.declarative.models.solver import ChatInput, GenericInput, SingleTurnSolver
from pytest_lmeval.formats.declarative.snippets import Snippet
from pytest_lmeval.formats.declarative.templates import ROOM, Room, Template, TemplateFault
from pytest_lmeval.formats.declarative.values import attributes, plain
from pytest_lmeval.types import Completion, Message


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model is asked about a row: messages, or text; and the same as scorers see it."""

    prompt: str = ""
    messages: tuple[Message, ...] = ()
    model_input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the data set with what the model made of it; ``solver_output`` is None where no model was asked."""

    sample: Mapping[str, Any]
    model_input: Mapping[str, Any] = field(default_factory=dict)
    solver_output: Mapping[str, Any] | None = None
    room: Room = field(default_factory=Room, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The model's answer."""
        if self.solver_output is None:
            raise ScoringError("no model was asked; a scorer of a data set needs prediction: '{{ sample.COLUMN }}'")
        return _content(self.solver_output)

    def variables(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """Return what templates of scorers and actions see."""
        variables: dict[str, Any] = {"sample": self.sample, "scores": scores, ROOM: self.room}
        if self.solver_output is not None:
            variables["solver_output"] = self.solver_output
            variables["model_output"] = self.solver_output.get("output")
            variables["messages"] = self.solver_output.get("messages", [])
            variables["input_prompt"] = self.text
        return variables


class Solver:
    """Asks about a row once."""

    def __init__(self, model: SingleTurnSolver, postprocess: Snippet | None, kit: Kit) -> None:
        builder = model.input_builder
        self.model = model
        self.postprocess = postprocess
        self._generic = kit.template(builder.template) if isinstance(builder, GenericInput) else None
        self._messages: list[tuple[str, Template]] = []
        if isinstance(builder, ChatInput):
            self._messages = [(each.role, kit.template(each.content)) for each in builder.input_messages]

    def ask(self, sample: Mapping[str, Any]) -> Asked:
        """Return what to ask about a row; raise ScoringError where a template does not fit it."""
        variables = {"sample": sample, ROOM: Room()}
        try:
            if self._generic is not None:
                return _generic_input(self._generic.render(variables))
            filled = [Message(role, template.render(variables)) for role, template in self._messages]
        except TemplateFault as fault:
            raise ScoringError(f"solver: {fault}") from None
        shown = "\n\n".join(message.content for message in filled)
        return Asked(shown, tuple(filled), {"messages": _as_json(filled)})

    def rows(self, sample: Mapping[str, Any], asked: Asked, completion: Completion) -> list[Row]:
        """Return the rows that an answer gives: one, unless the postprocessor makes several of it."""
        row = Row(sample, asked.model_input, _output(asked, completion))
        if self.postprocess is None:
            return [row]
        return rows_of(self.postprocess(attributes(sample), attributes(row.solver_output)), row)


def rows_of(returned: Any, row: Row) -> list[Row]:
    """Return the rows that a postprocessor made of one: its result is text, an output, or a list of pairs."""
    try:
        if isinstance(returned, str):
            return [Row(row.sample, row.model_input, _with_content(row.solver_output, plain(returned)))]
        if isinstance(returned, Mapping):
            return [Row(row.sample, row.model_input, _checked_output(plain(dict(returned))))]
        if isinstance(returned, Sequence) and returned and all(_is_pair(each) for each in returned):
            return [
                Row(plain(dict(sample)), row.model_input, _checked_output(plain(dict(output))))
                for sample, output in returned
            ]
    except ValueError as error:
        raise ScoringError(f"postprocessor: {error}") from None
    wanted = "text, a solver_output, or a list of (sample, solver_output)"
    raise ScoringError(f"postprocessor: returned {returned!r:.80}; expected {wanted}")


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, Mapping) for each in value)


def _generic_input(text: str) -> Asked:
    try:
        value = parse_line(text.strip().encode("utf-8", "surrogatepass"))
    except RecordRefused as refused:
        hint = "write values as {{ sample.x | tojson }}, without quotes around them"
        raise ScoringError(f"solver: the template gave no JSON: {refused.detail}; {hint}") from None
    messages = value.get("messages") if isinstance(value, dict) else None
    model_input = value if isinstance(value, dict) else {"input": value}
    if isinstance(messages, list) and messages and all(_is_message(each) for each in messages):
        filled = tuple(Message(each["role"], each["content"]) for each in messages)
        return Asked("\n\n".join(message.content for message in filled), filled, model_input)
    return Asked(text.strip(), (), model_input)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in ("system", "user", "assistant"):
        return False
    return isinstance(value.get("content"), str)


def _as_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _output(asked: Asked, completion: Completion) -> dict[str, Any]:
    answer = {"role": "assistant", "content": completion.text}
    asked_messages = asked.model_input.get("messages") if asked.messages else None
    before = list(asked_messages or [{"role": "user", "content": asked.prompt}])
    choice = {"index": 0, "message": answer, "finish_reason": completion.finish_reason or None}
    return {"messages": [*before, answer], "output": {"choices": [choice]}}


def _content(output: Mapping[str, Any]) -> str:
    try:
        content = output["output"]["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise ScoringError("solver_output has no output.choices[0].message.content") from None
    if not isinstance(content, str):
        raise ScoringError(f"solver_output: the content is {type(content).__name__}; expected text")
    return content


def _with_content(output: Mapping[str, Any] | None, text: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": text}
    messages = list((output or {}).get("messages", []))[:-1]
    return {"messages": [*messages, answer], "output": {"choices": [{"index": 0, "message": answer}]}}


def _checked_output(output: dict[str, Any]) -> dict[str, Any]:
    _content(output)
    return output
