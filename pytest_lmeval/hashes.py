"""Hashes that tell requests and examples apart: what decides whether an answer, or a score, is one to the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.types import LogLikelihood, Request


def request_hash(requests: Sequence[Request]) -> str:
    """Return a SHA-256 over what the model is asked, but for which example and how often."""
    content = [_asked_text(request) for request in requests]
    return hashlib.sha256(_dump(content).encode("ascii")).hexdigest()[:32]


def content_hash_of(
    rendered: str | list[list[str]], targets: Sequence[str], metric: str, post_process: str, scoring: Mapping[str, Any]
) -> str:
    """Return the content hash of an example with these parts; ``metric`` is the registry's name."""
    content = [rendered, targets, metric, post_process, scoring]
    return hashlib.sha256(_dump(content).encode("ascii")).hexdigest()


def scoring_hash_of(targets: Sequence[str], metric: str, post_process: str, scoring: Mapping[str, Any]) -> str:
    """Return the hash of what decides the score of an example with these parts, whatever it asks."""
    content = [targets, metric, post_process, scoring]
    return hashlib.sha256(_dump(content).encode("ascii")).hexdigest()


def _asked_text(request: Request) -> list[Any]:
    if isinstance(request, LogLikelihood):
        talk = [[message.role, message.content] for message in request.messages]
        return [request.context, request.continuation, *([talk] if talk else [])]
    prompt = request.prompt
    rendered = prompt if isinstance(prompt, str) else [[message.role, message.content] for message in prompt]
    return [rendered, request.stop, request.max_tokens, *([dict(request.options)] if request.options else [])]


_dump = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str).encode
