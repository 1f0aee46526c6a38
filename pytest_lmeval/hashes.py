"""Hash requests and examples, to decide whether an earlier answer or score is still valid."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.types import Generate, LogLikelihood, Message, Request, values_or_text


def request_hash(requests: Sequence[Request]) -> str:
    """Return a hash of the requests' content, excluding their examples and repeats."""
    content = [_asked_text(request) for request in requests]
    return hashlib.sha256(_dump(content).encode("ascii")).hexdigest()[:32]


def numbered(requests: Sequence[Request]) -> list[Request]:
    """Return the requests; set ``nth`` to distinguish equal requests in the same repeat."""
    seen: Counter[tuple[int, str]] = Counter()
    return [with_ordinal(request, seen) if isinstance(request, Generate) else request for request in requests]


def with_ordinal(request: Generate, seen: Counter[tuple[int, str]]) -> Generate:
    """Count ``request`` in ``seen``, and set its ``nth`` to the number of earlier equal requests in its repeat."""
    key = request.repeat, request_hash([request])
    seen[key] += 1
    return replace(request, nth=seen[key] - 1) if seen[key] > 1 else request


def judge_key(judge: str, request: Generate) -> str:
    """Return a hash of a judge and a request to it, excluding the request's example."""
    text = request.text
    if not isinstance(request.prompt, str) and any(message.parts for message in request.prompt):
        text = _dump(rendered(request.prompt))
    content = "\0".join([judge, text, str(request.repeat), str(request.max_tokens), *request.stop])
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def rendered(prompt: str | Sequence[Message]) -> str | list[list[Any]]:
    """Return a prompt in the form that is hashed: text, or each message's role, content, calls and further fields.

    If a message has media, its content is a list of strings and media identities.
    """
    return prompt if isinstance(prompt, str) else [_message(message) for message in prompt]


def hashes_of(
    prompt: str | list[list[Any]], targets: Sequence[str], metric: str, post_process: str, scoring: Mapping[str, Any]
) -> tuple[str, str]:
    """Return a hash of all arguments, and a hash of all arguments except the prompt."""
    scored = _dump([targets, metric, post_process, scoring])
    # The content hash covers a list of all five parts; encode the parts that decide the score only once.
    content = f"[{_dump(prompt)},{scored[1:]}"
    return hashlib.sha256(content.encode("ascii")).hexdigest(), hashlib.sha256(scored.encode("ascii")).hexdigest()


def _asked_text(request: Request) -> list[Any]:
    if isinstance(request, LogLikelihood):
        talk = rendered(request.messages)
        asked_whole = ["rolling"] if request.rolling else []
        return [request.context, request.continuation, *([talk] if talk else []), *asked_whole]
    asked: list[Any] = [rendered(request.prompt), request.stop, request.max_tokens]
    if request.options:
        asked.append(dict(request.options))
    return [*asked, request.tools, request.tool_choice] if request.tools else asked


def _message(message: Message) -> list[Any]:
    # Servers generate new call ids in every run.
    calls = [[call.name, values_or_text(call)] for call in message.tool_calls]
    content: Any = message.content
    if message.parts:
        content = [part if isinstance(part, str) else part.identity for part in message.parts]
    return [message.role, content, *([calls] if calls else []), *([message.extra] if message.extra else [])]


_dump = compact_encoder(allow_nan=True, sort_keys=True, default=str)
NOTHING_ASKED = request_hash(())
"""The hash of an empty list of requests."""
