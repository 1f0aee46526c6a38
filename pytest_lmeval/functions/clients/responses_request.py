"""Parse the request body of OpenAI's Responses interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pytest_lmeval import extra
from pytest_lmeval.functions.clients import models
from pytest_lmeval.functions.clients.body import ClientRequest, Talks
from pytest_lmeval.functions.clients.models import BodyPart, Flag, Limit, Loose, Option, Some, Text, Word
from pytest_lmeval.types import Message, ToolCall

_TEXTS = ("input_text", "output_text", "text")
_MEDIA = frozenset({"input_image", "input_audio", "input_file"})
_OF_PARTS = frozenset({"type", "text", "refusal", "annotations", "logprobs"}) | {"image_url", "detail", "input_audio"}
_OF_FILES = frozenset({"filename", "file_data", "file_url"})
_OF_TOOLS = ("name", "description", "parameters", "strict")


class _MessageItem(BodyPart):
    type: Literal["message"]
    role: Literal["user", "assistant", "system", "developer"]
    content: Annotated[Text, models.text_of(*_TEXTS, "refusal", media=_MEDIA)]


class _CallItem(BodyPart):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class _ResultItem(BodyPart):
    type: Literal["function_call_output"]
    call_id: str
    output: Annotated[Text, models.text_of(*_TEXTS, media=_MEDIA)]


class _ThoughtItem(BodyPart):
    type: Literal["reasoning"]
    encrypted_content: Any = None

    @property
    def carried(self) -> str:
        """The fields of an answer to send back to the model's server, or "" for another endpoint's thoughts."""
        try:
            return extra.checked(self.encrypted_content)
        except ValueError:
            return ""


_Item = Annotated[
    Annotated[_MessageItem | _CallItem | _ResultItem | _ThoughtItem, Field(discriminator="type")],
    BeforeValidator(lambda item: {"type": "message", **item} if isinstance(item, dict) else item),
]


class _ResponsesTool(BodyPart):
    type: Annotated[Literal["function"], models.OWN_TOOL]
    name: str
    parameters: Loose[dict[str, Any]] = None


class _ResponsesChoice(models.NamedTool):
    type: Literal["function"]


class _ResponsesAllowed(BodyPart):
    type: Literal["allowed_tools"]
    mode: str
    tools: list[_ResponsesChoice]

    def option(self) -> dict[str, object]:
        """Return the choice in the format of chat completions."""
        tools = [{"type": "function", "function": {"name": tool.name}} for tool in self.tools]
        return {"type": self.type, self.type: {"mode": self.mode, "tools": tools}}


class _PlainFormat(BodyPart):
    type: Literal["text", "json_object"]


class _SchemaFormat(BodyPart):
    type: Literal["json_schema"]
    name: str
    shape: dict[str, Any] = Field(alias="schema")


class _TextOptions(BodyPart):
    verbosity: Any = None
    format: Annotated[_PlainFormat | _SchemaFormat, Field(discriminator="type")] | None = None


class _Reasoning(BodyPart):
    effort: Any = None


class _ResponsesBody(models.Body):
    input: Annotated[Some[_Item], models.or_text(lambda text: {"role": "user", "content": text})]
    instructions: str = ""
    previous_response_id: str | None = None
    max_output_tokens: Limit | None = None
    tools: list[_ResponsesTool] = Field([])
    tool_choice: Annotated[Word | Literal["any"] | _ResponsesChoice | _ResponsesAllowed, models.CHOICE] = ""
    parallel_tool_calls: Option[Flag] = None
    text: _TextOptions = _TextOptions()
    reasoning: _Reasoning = _Reasoning()
    include: list[str] = Field([])
    stream_options: dict[str, Any] = Field({})
    background: Annotated[Literal[False], models.expects("false: background responses are not supported")] = False
    conversation: Annotated[None, models.expects("nothing: stored conversations are not supported")] = None
    prompt: Annotated[None, models.expects("nothing: stored prompts are not supported")] = None
    # These settings are for the server's storage, and some servers reject them in a chat completion.
    store: Flag = True
    metadata: Any = None
    truncation: Any = "disabled"
    max_tool_calls: Any = None
    context_management: Any = None


def read_request(body: bytes, talks: Talks) -> ClientRequest:
    """Parse the body of a request, which may continue one of the conversations in ``talks``.

    Raise ValueError for an invalid body; the message names the field and the expected value.
    """
    asked, given, options = models.read(_ResponsesBody, body)
    previous = asked.previous_response_id
    if previous is not None and previous not in talks:
        raise ValueError(
            f"previous_response_id: expected the id of a response of this example that was stored, got {previous!r:.80}"
        )
    raw = given["input"] if isinstance(given["input"], list) else [{}]
    talk = (talks[previous] if previous is not None else ()) + _messages(asked.input, raw)
    tools = tuple(
        {name: tool[name] for name in _OF_TOOLS if tool.get(name) is not None} for tool in given.get("tools") or ()
    )
    choice = asked.tool_choice
    if choice == "any" or isinstance(choice, _ResponsesAllowed):
        options["tool_choice"] = choice if isinstance(choice, str) else choice.option()
        choice = ""
    return ClientRequest(
        messages=(Message("system", asked.instructions), *talk) if asked.instructions else talk,
        fields={
            "max_tokens": asked.max_output_tokens,
            "options": options | _renamed(asked),
            "tools": tools,
            "tool_choice": models.chosen(choice, tools),
        },
        model=asked.model,
        streams=asked.stream,
        dropped=tuple(sorted({*_dropped(asked), *_dropped_parts(given["input"])})),
        given=given,
        talk=talk if asked.store else None,
    )


def _messages(items: list[_Item], raw: Sequence[Any]) -> tuple[Message, ...]:
    """Convert input items to messages, and merge an answer with its calls; ``raw`` contains the items as sent."""
    found: list[Message] = []
    carried = ""
    for number, item in enumerate(items):
        if isinstance(item, _ThoughtItem):
            carried = item.carried
            continue
        message, carried = _with_media(_message(item, carried), raw[number], f"input[{number}]"), ""
        last = found[-1] if found and found[-1].role == "assistant" else None
        if last and message.role == "assistant" and (message.tool_calls or not last.content):
            calls, own = last.tool_calls, extra.joined(last.extra, len(last.tool_calls), message.extra)
            found[-1] = Message("assistant", last.content + message.content, calls + message.tool_calls, extra=own)
        else:
            found.append(message)
    return tuple(found)


def _with_media(message: Message, item: Any, place: str) -> Message:
    name = "output" if message.role == "tool" else "content"
    if not models.has_media(item.get(name), _MEDIA):
        return message
    from pytest_lmeval.functions.clients.media import with_media

    return with_media(message, item[name], f"{place}.{name}")


def _message(item: _MessageItem | _CallItem | _ResultItem, carried: str) -> Message:
    """Convert an item to a message; ``carried`` contains the fields from the thoughts before an answer."""
    if isinstance(item, _MessageItem):
        return Message(item.role, item.content, extra=carried if item.role == "assistant" else "")
    if isinstance(item, _CallItem):
        return Message("assistant", "", (ToolCall(item.call_id, item.name, item.arguments),), extra=carried)
    return Message("tool", item.output, (), item.call_id)


def _renamed(asked: _ResponsesBody) -> dict[str, Any]:
    form = asked.text.format
    options = {"reasoning_effort": asked.reasoning.effort, "verbosity": asked.text.verbosity}
    if isinstance(form, _SchemaFormat):
        schema = form.model_dump(by_alias=True, exclude_unset=True, exclude={"type"})
        options["response_format"] = {"type": form.type, "json_schema": schema}
    elif form and form.type == "json_object":
        options["response_format"] = {"type": form.type}
    return extra.present(options)


def _dropped_parts(items: object) -> Iterator[str]:
    for item in models.parts_in(items):
        for part in models.parts_in(item.get("content")):
            yield from (f"input[].content[].{name}" for name in extra.unknown(part, _OF_PARTS | _OF_FILES))


def _dropped(asked: _ResponsesBody) -> Iterator[str]:
    yield from (f"include: {name}" for name in asked.include if name != "reasoning.encrypted_content")
    yield from (name for name in ("max_tool_calls", "context_management") if getattr(asked, name) is not None)
    yield from ("truncation",) if asked.truncation != "disabled" else ()
    yield from (f"reasoning.{name}" for name in asked.reasoning.extras)
    yield from (f"text.{name}" for name in asked.text.extras)
    yield from (f"tools[].{name}" for tool in asked.tools for name in (tool.model_extra or {}).keys() - {*_OF_TOOLS})
