"""From the body of a reply to a completion.

Answers, which are scored: text, the empty text included, calls of tools, thoughts without an answer, and a refusal,
since it is what the model said. Errors, which are not: an error object, no choice, nothing of all these, and whatever a
content filter stopped or cut. Asking again may help after an error object that does not blame the request, an empty
body, and the page of a proxy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.adapters.http.faults import one_line
from pytest_lmeval.adapters.http.reply import Document, count, may_pass, shown_name
from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import Completion, ToolCall

REFUSAL = "refusal"
"""The finish reason of a completion whose text is the model's refusal."""


def completion(
    document: Document, options: OpenAIOptions, latency_ms: float, ttft_ms: float | None = None
) -> Completion:
    """Return the first choice as a completion; raise AdapterError where it holds no answer."""
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
        # What the model wrote between its thoughts and its answer: some servers leave it, some only in a stream.
        text = text.lstrip("\r\n")
    prompt_tokens, completion_tokens = count(document, "prompt_tokens"), count(document, "completion_tokens")
    return Completion(
        text=text,
        latency_ms=latency_ms,
        finish_reason=REFUSAL if refused else one_line(reason) if isinstance(reason, str) else "",
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=options.cost(prompt_tokens, completion_tokens),
        logprobs=() if thoughts else _logprobs(choice.get("logprobs")),
        thoughts=thoughts,
        reasoning_tokens=_reasoning_tokens(document),
        tool_calls=calls,
        ttft_ms=ttft_ms,
        served_by=_served_by(document.fields),
    )


def _served_by(fields: Mapping[str, object]) -> str:
    """Return what the reply says of the model: its name, and the fingerprint of what it runs on."""
    name, mark = fields.get("model"), fields.get("system_fingerprint")
    name = name if isinstance(name, str) else ""
    return shown_name(f"{name} ({mark})".strip() if isinstance(mark, str) and mark else name)


def first_choice(document: Document) -> Mapping[str, object]:
    """Return the first of the choices; raise AdapterError if there is no choice."""
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
    """Return what the server reports of the model's thoughts, in any of the fields that servers have for them."""
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
    """Return the text of a part of the content that is a thought: text, or parts with text."""
    found = part.get("thinking") if isinstance(part, dict) and part.get("type") == "thinking" else None
    return joined(found) if isinstance(found, list) else found


def _tool_calls(document: Document, choice: Mapping[str, object]) -> tuple[ToolCall, ...]:
    """Return the calls that the model asks for, the arguments as it wrote them; raise AdapterError for no calls."""
    message = choice.get("message")
    given = message.get("tool_calls") if isinstance(message, dict) else None
    if not given:
        return ()
    calls = [_tool_call(call) for call in given] if isinstance(given, list) else [None]
    found = tuple(call for call in calls if call is not None)
    if len(found) != len(calls):
        raise document.error("tool_calls that are no list of function calls")
    return found


def _tool_call(call: Any) -> ToolCall | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments", "")
    # Some servers send the arguments by name, not as the text of them.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(call.get("id") or ""), function["name"], text)


def _reasoning_tokens(document: Document) -> int | None:
    usage = document.fields.get("usage")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    places = [details, usage]
    values = [place.get("reasoning_tokens") for place in places if isinstance(place, dict)]
    return next((value for value in values if value is not None), None)


def joined(parts: list[Any]) -> str | None:
    """Return the text of content that is a list of parts, thoughts aside; None where a part is no text."""
    parts = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "thinking")]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found and len(found) == len(parts) else None


def _logprobs(given: Any) -> tuple[float, ...]:
    """Return the log-probability of each token, from either endpoint's form; () where any is not a number."""
    if not isinstance(given, dict):
        return ()
    content, flat = given.get("content"), given.get("token_logprobs")
    if isinstance(content, list):
        flat = [token.get("logprob") if isinstance(token, dict) else None for token in content]
    if not isinstance(flat, list) or not all(is_number(value) for value in flat):
        return ()
    return tuple(map(float, flat))
