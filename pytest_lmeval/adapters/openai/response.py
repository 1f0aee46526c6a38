"""Turn a reply's body into a completion.

A run scores text (even if empty), tool calls, thoughts without an answer, and a refusal. The run reports an error,
without a score, for an error object, a reply without a choice, a choice without an answer, and an answer that a content
filter stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.adapters.http.faults import one_line
from pytest_lmeval.adapters.http.reply import Document, count, may_pass, shown_name, usage_of
from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError
from pytest_lmeval.extra import AS_THOUGHTS, CALLS, Fields, of_answer, of_calls, present, unknown
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import Completion, ToolCall

READ = frozenset({"role", "content", "tool_calls", "refusal", "thinking"})
"""The message fields that this module reads; :mod:`.stream` stores thoughts from the content as ``thinking``."""


def completion(
    document: Document, options: OpenAIOptions, latency_ms: float, ttft_ms: float | None = None
) -> Completion:
    """Convert the first choice into a completion; raise AdapterError if the choice contains no answer.

    If the model refused, ``finish_reason`` is "refusal".
    """
    choice = first_choice(document)
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise document.error("stopped by a content filter", kind=RequestRefused)
    text, refused = _chat_text(document, choice) if options.endpoint == "chat" else (choice.get("text"), False)
    thoughts = _thoughts(choice)
    calls = _tool_calls(document, choice)
    if text is None and (thoughts or calls):
        text = ""
    if not isinstance(text, str):
        hint = ", all tokens allowed were used before any text" if reason == "length" else ""
        raise document.error(f"no text (finish_reason {one_line(repr(reason))}{hint})", kind=RequestRefused)
    if thoughts:
        text = text.lstrip("\r\n")  # between thoughts and answer: some servers keep it, some only in a stream
    prompt_tokens, completion_tokens = count(document, "prompt_tokens"), count(document, "completion_tokens")
    return Completion(
        text=text,
        latency_ms=latency_ms,
        finish_reason="refusal" if refused else one_line(reason) if isinstance(reason, str) else "",
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=options.cost(prompt_tokens, completion_tokens, usage_of(document)),
        logprobs=() if thoughts else _logprobs(choice.get("logprobs")),
        thoughts=thoughts,
        reasoning_tokens=_reasoning_tokens(document),
        tool_calls=calls,
        ttft_ms=ttft_ms,
        served_by=_served_by(document.fields),
        extra=_extra(document, choice, thoughts, options.thoughts_back or CALLS),
    )


def _extra(document: Document, choice: Mapping[str, object], thoughts: str, thoughts_back: str) -> str:
    """Pack the fields of the message, its calls and the usage that this package does not recognize."""
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    fields = unknown(message, READ)
    fields |= {name: None for name in AS_THOUGHTS if thoughts and fields.get(name) == thoughts}
    return of_answer(fields, of_calls(message.get("tool_calls")), _details(document), thoughts_back)


def _details(document: Document) -> Fields:
    usage = document.fields.get("usage")
    known = usage.items() if isinstance(usage, dict) else ()
    found = {name: value for name, value in known if name.endswith("_details") and isinstance(value, dict)}
    return {name: counts for name, value in found.items() if (counts := present(value))}


def _served_by(fields: Mapping[str, object]) -> str:
    """Return the model's name, with its system fingerprint if any, from the reply."""
    name, mark = fields.get("model"), fields.get("system_fingerprint")
    name = name if isinstance(name, str) else ""
    return shown_name(f"{name} ({mark})".strip() if isinstance(mark, str) and mark else name)


def first_choice(document: Document) -> Mapping[str, object]:
    """Return the first choice of the reply; raise AdapterError if there is no choice, or if it reports an error."""
    choices = document.fields.get("choices")
    if not isinstance(choices, list) or not choices:
        raise document.error("no choices")
    if not isinstance(choices[0], dict):
        raise document.error(f"expected a choice to be an object, got {type(choices[0]).__name__}")
    if error := choices[0].get("error"):
        raise document.error("error in the choice", kind=TransientError if may_pass(error) else AdapterError)
    return choices[0]


def _chat_text(document: Document, choice: Mapping[str, object]) -> tuple[Any, bool]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise document.error("a choice without a message")
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        content = joined(content)
    if isinstance(refusal, str) and refusal and not content:
        return refusal, True
    return content, False


def _thoughts(choice: Mapping[str, object]) -> str:
    """Return the model's thoughts from the first non-empty field that servers use for thoughts."""
    message = choice.get("message")
    if not isinstance(message, dict):
        return ""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(text := message.get(name), str) and text:
            return text
    content = message.get("content")
    parts = map(thought_in, content) if isinstance(content, list) else ()
    return next((text for text in parts if isinstance(text, str) and text), "")


def thought_in(part: Any) -> Any:
    """Return the text of a content part if it is a thought; otherwise, return None."""
    found = part.get("thinking") if isinstance(part, dict) and part.get("type") == "thinking" else None
    return joined(found) if isinstance(found, list) else found


def _tool_calls(document: Document, choice: Mapping[str, object]) -> tuple[ToolCall, ...]:
    """Return the tool calls, with the arguments as text; raise AdapterError for an entry that is not a call."""
    message = choice.get("message")
    given = message.get("tool_calls") if isinstance(message, dict) else None
    if not given:
        return ()
    calls = [_tool_call(call) for call in given] if isinstance(given, list) else [None]
    found = tuple(call for call in calls if call is not None)
    if len(found) != len(calls):
        raise document.error("tool_calls that are not a list of function calls")
    return found


def _tool_call(call: Any) -> ToolCall | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments", "")
    # Some servers send the arguments as an object, not as text.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(call.get("id") or ""), function["name"], text)


def _reasoning_tokens(document: Document) -> int | None:
    usage = usage_of(document)
    details = usage.get("completion_tokens_details")
    values = [place.get("reasoning_tokens") for place in (details, usage) if isinstance(place, Mapping)]
    return next((value for value in values if value is not None), None)


def joined(parts: list[Any]) -> str | None:
    """Concatenate the text of content parts that are not thoughts; return None if a part is not text."""
    parts = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "thinking")]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found and len(found) == len(parts) else None


def _logprobs(given: Any) -> tuple[float, ...]:
    """Return the log-probability of each token, from either endpoint's format, or () if a value is not a number."""
    if not isinstance(given, dict):
        return ()
    content, flat = given.get("content"), given.get("token_logprobs")
    if isinstance(content, list):
        flat = [token.get("logprob") if isinstance(token, dict) else None for token in content]
    if not isinstance(flat, list) or not all(is_number(value) for value in flat):
        return ()
    return tuple(map(float, flat))
