"""Parse the request body of Anthropic's Messages interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from pytest_lmeval.extra import BLOCKS, lacks_thoughts, packed, present, unknown
from pytest_lmeval.functions.clients import models
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.models import BodyPart, Limit, Loose, Option, Some, Text
from pytest_lmeval.stops import AsSent
from pytest_lmeval.types import Message, ToolCall

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
# Fields of blocks and tools that adapters never receive, with their names in the report.
_DROPPED = {"cache_control": "cache_control", "citations": "citations", "is_error": "tool_result.is_error"}
_OF_DOCUMENTS = {"title": "document.title", "context": "document.context"}
_MEDIA = frozenset({"image", "document"})
_Blocks = models.or_text(lambda text: {"type": "text", "text": text})


class _TextBlock(BodyPart):
    type: Literal["text"]
    text: str


class _MediaBlock(BodyPart):
    type: Literal["image", "document"]
    source: dict[str, object]


class _ToolUse(BodyPart):
    type: Literal["tool_use"]
    id: Any = None
    name: str
    input: dict[str, Any]


class _Thinking(BodyPart):
    type: Literal["thinking", "redacted_thinking"]
    signature: Any = None

    @property
    def is_carried(self) -> bool:
        """True if the model's server signed or redacted the thoughts, so that it accepts them in a request."""
        return bool(self.signature) or self.type == "redacted_thinking"


class _ToolResult(BodyPart):
    type: Literal["tool_result"]
    tool_use_id: str
    content: Annotated[Loose[Text], models.text_of("text", media=_MEDIA)] = None


class _UserMessage(BodyPart):
    role: Literal["user"]
    content: Annotated[list[Annotated[_TextBlock | _ToolResult | _MediaBlock, Field(discriminator="type")]], _Blocks]

    def messages(self, given: Any, place: str) -> Iterator[Message]:
        """Yield one message for each block of ``given``; ``anthropic`` merges adjacent messages into one turn."""
        for number, block in enumerate(self.content):
            if isinstance(block, _TextBlock):
                yield Message("user", block.text)
            elif isinstance(block, _MediaBlock):
                blocks = given["content"][number : number + 1]
                yield _with_media(Message("user", ""), blocks, f"{place}.content", number)
            else:
                message = Message("tool", block.content or "", (), block.tool_use_id)
                blocks = given["content"][number].get("content")
                yield _with_media(message, blocks, f"{place}.content[{number}].content")


def _with_media(message: Message, blocks: Any, place: str, first: int = 0) -> Message:
    if not models.has_media(blocks, _MEDIA):
        return message
    from pytest_lmeval.functions.clients.media import with_media

    return with_media(message, blocks, place, first)


class _ModelMessage(BodyPart):
    role: Literal["assistant"]
    content: Annotated[list[Annotated[_TextBlock | _ToolUse | _Thinking, Field(discriminator="type")]], _Blocks]

    def messages(self, given: Any, place: str) -> Iterator[Message]:
        """Yield a single message, with the thoughts that the server signed."""
        uses = [block for block in self.content if isinstance(block, _ToolUse)]
        calls = tuple(ToolCall(str(use.id or ""), use.name, json.dumps(use.input)) for use in uses)
        text = "".join(block.text for block in self.content if isinstance(block, _TextBlock))
        signed = [block for block in self.content if isinstance(block, _Thinking) and block.is_carried]
        thoughts = {BLOCKS: [block.model_dump(exclude_unset=True) for block in signed]} if signed else {}
        more = [unknown(use.model_extra or {}, _DROPPED) for use in uses]
        yield Message("assistant", text, calls, extra=packed(thoughts, more))


class _MessagesTool(BodyPart):
    type: Annotated[Loose[Literal["custom"]], models.OWN_TOOL] = None
    name: str
    input_schema: Loose[dict[str, Any]] = None


class _MessagesChoice(models.NamedTool):
    type: Literal["auto", "any", "none", "tool"]
    name: str = ""


class _MessagesBody(models.Body):
    max_tokens: Limit
    system: Annotated[list[_TextBlock], _Blocks] = Field([])
    messages: Some[Annotated[_UserMessage | _ModelMessage, Field(discriminator="role")]]
    stop_sequences: list[str] = Field([])
    tools: list[_MessagesTool] = Field([])
    tool_choice: _MessagesChoice | None = None
    thinking: Option[dict[str, Any]] = None
    mcp_servers: Annotated[None, models.expects("nothing: tools of other servers are not supported")] = None
    container: Annotated[None, models.expects("nothing: containers are not supported")] = None


def read_request(body: bytes, beta: str = "") -> ClientRequest:
    """Parse the body of a request; ``beta`` is the value of the header that enables beta features.

    Raise ValueError for an invalid body; the message names the field and the expected value.
    """
    asked, given, options = models.read(_MessagesBody, body)
    system = [Message("system", block.text) for block in asked.system if block.text]
    turns = enumerate(zip(asked.messages, given["messages"], strict=True))
    said = (one for number, (turn, raw) in turns for one in turn.messages(raw, f"messages[{number}]"))
    messages = (*system, *said)
    tools = tuple(map(_tool, given.get("tools") or ()))
    choice = asked.tool_choice
    dropped = {*_dropped(asked), *([f"anthropic-beta: {beta}"] if beta else ())}
    # The server would expect the thoughts before the calls that were just answered.
    is_answer = messages[-1:] and messages[-1].role == "tool"
    if options.get("thinking", {}).get("type") == "enabled" and is_answer and lacks_thoughts(messages):
        del options["thinking"]
        dropped.add("thinking")
    return ClientRequest(
        messages=messages,
        fields={
            "stop": AsSent(filter(None, asked.stop_sequences)),
            "max_tokens": asked.max_tokens,
            "options": options,
            "tools": tools,
            "tool_choice": models.chosen(_CHOICES.get(choice.type, choice), tools) if choice else "",
        },
        model=asked.model,
        streams=asked.stream,
        dropped=tuple(sorted(dropped)),
    )


def _tool(given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in present(given).items() if name not in ("type", "cache_control")}
    return {"parameters" if name == "input_schema" else name: value for name, value in kept.items()}


def _dropped(asked: _MessagesBody) -> Iterator[str]:
    if asked.tool_choice and "disable_parallel_tool_use" in asked.tool_choice.extras:
        yield "tool_choice.disable_parallel_tool_use"
    for part in [*asked.system, *(block for turn in asked.messages for block in turn.content), *asked.tools]:
        yield from (_DROPPED[name] for name in part.extras & _DROPPED.keys())
        if isinstance(part, _MediaBlock):
            yield from (_OF_DOCUMENTS[name] for name in part.extras & _OF_DOCUMENTS.keys())
