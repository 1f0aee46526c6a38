"""Turn a request into the body of a chat or completions request."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.extra import added
from pytest_lmeval.stops import AsSent
from pytest_lmeval.types import Generate, Message

_MOST_STOPS = 4
"""The largest number of stop texts that OpenAI's interface accepts."""


def request_fields(model: str, options: OpenAIOptions, request: Generate) -> dict[str, object]:
    """Return the body's fields; the request's ``max_tokens`` and ``options`` override the adapter's options.

    The body omits options without a value, so that the server chooses their values. Each repeat has a different seed.
    """
    is_text = options.endpoint == "completions"
    fields = {
        "model": model,
        **({"prompt": request.text} if is_text else {"messages": _messages(options.system, request)}),
        "temperature": options.temperature,
        "top_p": options.top_p,
        options.max_tokens_field: options.max_tokens if request.max_tokens is None else request.max_tokens,
        "stop": _stops(options, request) or None,
        "seed": None if options.seed is None else options.seed + request.repeat,
        # The chat endpoint takes a flag, and the completions endpoint takes the number of alternatives per token.
        "logprobs": (not is_text or 1) if options.logprobs else None,
        **_tools(options, request),
        "stream": options.stream or None,
        "stream_options": {"include_usage": True} if options.stream else None,
    }
    return options.whole(fields, request.options)


def _stops(options: OpenAIOptions, request: Generate) -> list[str]:
    """Return only as many stop texts as the interface accepts; the run cuts answers at all of a task's stop texts."""
    stops = options.stops(request)
    if isinstance(request.stop, AsSent) or len(stops) <= _MOST_STOPS:
        return stops
    others = [stop for stop in stops if stop not in options.stop]
    return [*others[: max(0, _MOST_STOPS - len(options.stop))], *options.stop]


def _messages(system: str | None, request: Generate) -> list[dict[str, object]]:
    """Return the request's messages; if they include no system message, begin with the option ``system``."""
    if isinstance(request.prompt, str):
        turns: list[dict[str, object]] = [{"role": "user", "content": request.prompt}]
    else:
        turns = [_turn(turn) for turn in request.prompt]
    if system is None or any(turn["role"] == "system" for turn in turns):
        return turns
    return [{"role": "system", "content": system}, *turns]


def _turn(message: Message) -> dict[str, object]:
    turn = message.to_json()
    if message.parts:
        from pytest_lmeval.adapters.openai.media import content_of

        turn["content"] = content_of(message.parts)
    return added(turn, message.extra) if message.extra else turn


def _tools(options: OpenAIOptions, request: Generate) -> Mapping[str, object]:
    if not request.tools:
        return {}
    if options.endpoint == "completions":
        raise AdapterError("tools need the endpoint 'chat'; this adapter uses endpoint 'completions'")
    tools = {"tools": [{"type": "function", "function": dict(tool)} for tool in request.tools]}
    choice = request.tool_choice
    if choice in ("", "auto"):
        return tools  # the default of every server; some refuse the option
    if choice in ("none", "required"):
        return {**tools, "tool_choice": choice}
    return {**tools, "tool_choice": {"type": "function", "function": {"name": choice}}}
