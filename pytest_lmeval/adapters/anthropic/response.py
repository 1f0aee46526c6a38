"""Turn a reply's body into a completion.

A run scores text, tool calls, thoughts without an answer, an empty turn, and a refusal with the text before it. The run
reports an error, without a score, for an error object, for a reply that is not a message, and for a block of unknown
kind. A reply without blocks that used all its tokens is also an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_lmeval.adapters.anthropic.options import MessagesOptions
from pytest_lmeval.adapters.http.faults import one_line
from pytest_lmeval.adapters.http.reply import Document, count, shown_name
from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.extra import BLOCKS, CALLS, Fields, of_answer, unknown
from pytest_lmeval.stops import first_stop
from pytest_lmeval.types import Completion, ToolCall

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_OF_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_OF_USES = frozenset({"type", "id", "name", "input"})
# Prompt tokens that the server's cache stored, and prompt tokens that it supplied.
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")


def completion(
    document: Document,
    options: MessagesOptions,
    stops: Sequence[str] = (),
    latency_ms: float | None = None,
    ttft_ms: float | None = None,
) -> Completion:
    """Convert the message into a completion; raise AdapterError if the message is not an answer.

    The function cuts the text before the first of ``stops``, because the server does not receive stop texts that are
    only whitespace.
    """
    blocks = _blocks(document)
    thoughts, text = _joined(blocks, "thinking"), _joined(blocks, "text")
    uses = [block for block in blocks if block["type"] == "tool_use"]
    calls = tuple(_tool_call(document, block) for block in uses)
    given = document.fields.get("stop_reason")
    if not blocks and given == "max_tokens":
        raise document.error(
            "no text (stop_reason 'max_tokens', all tokens allowed were used before any text)", kind=RequestRefused
        )
    reason = _REASONS.get(given, one_line(given)) if isinstance(given, str) else ""
    if thoughts:
        text = text.lstrip("\r\n")  # between thoughts and answer
    end = first_stop(text, stops)
    of_calls = [] if end is not None else [unknown(block, _OF_USES) for block in uses]
    prompt_tokens, completion_tokens = _prompt_tokens(document), count(document, "output_tokens")
    return Completion(
        text=text[:end],
        latency_ms=latency_ms,
        finish_reason=reason if end is None else "stop",
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=_cost(document, options, prompt_tokens, completion_tokens),
        thoughts=thoughts,
        reasoning_tokens=_reasoning_tokens(document),
        tool_calls=calls if end is None else (),
        ttft_ms=ttft_ms,
        served_by=shown_name(document.fields.get("model")),
        extra=of_answer(_signed(blocks, thoughts), of_calls, _from_cache(document), options.thoughts_back or CALLS),
    )


def _signed(blocks: Sequence[Mapping[str, object]], thoughts: str) -> Fields:
    """Return the blocks of thoughts; replace text equal to ``thoughts`` with None."""
    found = [block for block in blocks if block["type"] in _OF_THOUGHTS]
    signed = [{**block, "thinking": None} if block.get("thinking") == thoughts else block for block in found]
    return {BLOCKS: signed} if signed else {}


def _from_cache(document: Document) -> Fields:
    return {name: tokens for name in _CACHED if (tokens := count(document, name))}


def _blocks(document: Document) -> list[Mapping[str, object]]:
    """Return the message's blocks; raise AdapterError for content of any other kind."""
    content = document.fields.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise document.error("no content; expected a list of blocks")
    for block in content:
        kind = block.get("type")
        if kind in ("text", "thinking"):
            if not isinstance(block.get(kind), str):
                raise document.error(f"a block {kind} without its text")
        elif kind not in ("tool_use", "redacted_thinking"):
            raise document.error(f"a block {one_line(repr(kind))}; expected text, thinking or tool_use")
    return content


def _joined(blocks: Sequence[Mapping[str, object]], kind: str) -> str:
    return "".join(str(block[kind]) for block in blocks if block["type"] == kind)


def _tool_call(document: Document, block: Mapping[str, object]) -> ToolCall:
    """Return a tool call; a streamed call's arguments arrive as text, which may be invalid JSON."""
    name, given = block.get("name"), block.get("input")
    if not isinstance(name, str) or not isinstance(given, dict | str):
        raise document.error("a block tool_use without name or input")
    return ToolCall(str(block.get("id") or ""), name, given if isinstance(given, str) else json.dumps(given))


def _prompt_tokens(document: Document) -> int | None:
    """Return the number of tokens in the prompt; add the cached tokens, which ``input_tokens`` excludes."""
    own = count(document, "input_tokens")
    return None if own is None else own + sum(count(document, name) or 0 for name in _CACHED)


def _cost(
    document: Document, options: MessagesOptions, prompt_tokens: int | None, completion_tokens: int | None
) -> float | None:
    cost = options.cost(prompt_tokens, completion_tokens)
    if cost is None or options.price_input is None:
        return None
    prices = zip(_CACHED, (options.price_cache_write, options.price_cache_read), strict=True)
    each = ((count(document, name) or 0, price) for name, price in prices if price is not None)
    return cost + sum(tokens * (price - options.price_input) for tokens, price in each) / 1e6


def _reasoning_tokens(document: Document) -> int | None:
    usage = document.fields.get("usage")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    return details.get("thinking_tokens") if isinstance(details, dict) else None
