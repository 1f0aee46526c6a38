"""Parse the body of a chat-completion request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasPath, Field, FiniteFloat

from pytest_lmeval.extra import of_message, present, unknown
from pytest_lmeval.functions.clients import models
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.models import BodyPart, Flag, Limit, Loose, Option, Some, Text, Word
from pytest_lmeval.stops import AsSent
from pytest_lmeval.types import Message, ToolCall

_MEDIA = frozenset({"image_url", "input_audio", "file"})
_OF_PARTS = frozenset({"type", "text", "refusal"}) | _MEDIA
_Gone = Annotated[None, models.expects("nothing: use tools instead of functions")]


class _ChatTool(BodyPart):
    type: Annotated[Loose[Literal["function"]], models.OWN_TOOL] = None
    name: str = Field(validation_alias=AliasPath("function", "name"))
    parameters: Loose[dict[str, Any]] = Field(None, validation_alias=AliasPath("function", "parameters"))


class _ChatCall(BodyPart):
    id: Loose[str] = None
    name: str = Field(validation_alias=AliasPath("function", "name"))
    arguments: Loose[str] = Field(None, validation_alias=AliasPath("function", "arguments"))


class _ChatMessage(BodyPart):
    role: str
    content: Annotated[Text | None, models.text_of("text", media=_MEDIA)] = None
    tool_calls: Loose[list[_ChatCall]] = None
    tool_call_id: Loose[str] = None
    refusal: Loose[str] = None

    def message(self, given: Mapping[str, Any], place: str) -> Message:
        """Convert the message, sent as ``given``, and keep its unknown fields; raise ValueError for invalid content."""
        content = self.refusal if self.content is None else self.content
        if content is None and not self.tool_calls:
            raise ValueError("messages: expected text content, got None")
        calls = (ToolCall(call.id or "", call.name, call.arguments or "") for call in self.tool_calls or ())
        found = Message(self.role, content or "", tuple(calls), self.tool_call_id or "", of_message(given))
        if not models.has_media(given.get("content"), _MEDIA):
            return found
        from pytest_lmeval.functions.clients.media import with_media

        return with_media(found, given["content"], f"{place}.content")


class _ChatChoice(models.NamedTool):
    type: Literal["function"] = "function"
    name: str = Field(validation_alias=AliasPath("function", "name"))


class _ChatAllowed(BodyPart):
    type: Literal["allowed_tools"]
    allowed_tools: dict[str, Any]


class _ChatBody(models.Body):
    messages: Some[_ChatMessage]
    n: Annotated[int, Field(ge=1, le=1), models.expects("1: this endpoint gives one answer per request")] = 1
    stop: Annotated[list[str], models.or_text(str)] = Field([])
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    tools: list[_ChatTool] = Field([])
    tool_choice: Annotated[Word | Literal["any"] | _ChatChoice | _ChatAllowed, models.CHOICE] = ""
    functions: _Gone = None
    function_call: _Gone = None
    stream_options: dict[str, Any] = Field({})
    logprobs: Option[Flag] = None
    frequency_penalty: Option[FiniteFloat] = None
    presence_penalty: Option[FiniteFloat] = None
    seed: Option[int] = None
    response_format: Option[dict[str, Any]] = None


def read_request(body: bytes) -> ClientRequest:
    """Parse the body of a request; raise a ValueError that names the invalid field and the expected value."""
    asked, given, options = models.read(_ChatBody, body)
    limits = {asked.max_completion_tokens, asked.max_tokens} - {None}
    if len(limits) > 1:
        raise ValueError("max_completion_tokens and max_tokens: expected one of them, or two equal numbers")
    tools = tuple(present(tool["function"]) for tool in given.get("tools") or ())
    choice = asked.tool_choice
    if choice == "any" or isinstance(choice, _ChatAllowed):
        # Not every server has this field, so it is an option of the request.
        choice, options = "", {**options, "tool_choice": given["tool_choice"]}
    parts = (part for message in given["messages"] for part in models.parts_in(message.get("content")))
    dropped = {f"messages[].content[].{name}" for part in parts for name in unknown(part, _OF_PARTS)}
    return ClientRequest(
        messages=tuple(
            one.message(each, f"messages[{number}]")
            for number, (one, each) in enumerate(zip(asked.messages, given["messages"], strict=True))
        ),
        fields={
            "stop": AsSent(filter(None, asked.stop)),
            "max_tokens": next(iter(limits), None),
            "options": options,
            "tools": tools,
            "tool_choice": models.chosen(choice, tools),
        },
        model=asked.model,
        streams=asked.stream,
        wants_usage=bool(asked.stream_options.get("include_usage")),
        dropped=tuple(sorted(dropped | ({"choices[].logprobs"} if asked.logprobs else set()))),
        limit="max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens",
    )
