"""How probable a given text is, from a server that repeats the prompt with the log-probability of every token.

One token is asked for besides, since not every server answers with none, and dropped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.adapters.http.reply import Document, count
from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.adapters.openai.response import first_choice
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import LogLikelihood, LogProb


def echo_body(model: str, options: OpenAIOptions, request: LogLikelihood) -> bytes:
    """Return the JSON body that asks for the prompt again, with log-probabilities; ASCII."""
    fields = {
        "model": model,
        "prompt": request.context + request.continuation,
        options.max_tokens_field: 1,
        "temperature": 0,
        "echo": True,
        "logprobs": 1,
    }
    return json.dumps(fields | dict(options.extra_body), separators=(",", ":")).encode("ascii")


def echoed(document: Document, request: LogLikelihood, latency_ms: float) -> LogProb:
    """Return the continuation's part of the echo; raise AdapterError where that is unknown.

    A token that begins in the context and ends in the continuation counts as the continuation's. ``ids`` are the
    texts of the tokens.
    """
    tokens = _prompt_tokens(document, request)
    own = tokens[_border(document, tokens, request) :]
    if not own:
        raise document.error("the continuation has no tokens")
    each = [token.logprob for token in own]
    if None in each:
        how = "" if request.context else "; give what the model begins with: --lm-adapter-arg=begin='<|endoftext|>'"
        raise document.error(f"no log-probability of the continuation's first token{how}")
    known = tuple(value for value in each if value is not None)
    greedy = all(token.is_likeliest for token in own)
    return LogProb(math.fsum(known), known, greedy, latency_ms, tuple(token.text for token in own))


@dataclass(frozen=True, slots=True)
class _Token:
    """One token of the echo; ``offset`` is where it begins in the text, if known."""

    text: str
    logprob: float | None
    likeliest: float
    offset: int | None

    @property
    def is_likeliest(self) -> bool:
        return self.logprob is not None and self.logprob >= self.likeliest


def _prompt_tokens(document: Document, request: LogLikelihood) -> list[_Token]:
    choice = first_choice(document)
    text = choice.get("text")
    if not isinstance(text, str) or not text.startswith(request.context + request.continuation):
        raise document.error("the prompt was not repeated; the server has to support echo with logprobs")
    tokens = _tokens(document, choice.get("logprobs"))
    written = count(document, "completion_tokens")
    if written is None:
        written = int(len(text) > len(request.context + request.continuation))
    return tokens[: len(tokens) - written]


def _tokens(document: Document, given: Any) -> list[_Token]:
    table = given if isinstance(given, Mapping) else {}
    columns = [table.get(name) for name in ("tokens", "token_logprobs", "top_logprobs")]
    if not all(isinstance(column, list) for column in columns) or len({len(column or ()) for column in columns}) != 1:
        raise document.error(
            "no logprobs of the prompt: expected tokens, token_logprobs and top_logprobs of equal length"
        )
    texts, logprobs, best = (column or [] for column in columns)
    offsets = table.get("text_offset")
    if not isinstance(offsets, list) or len(offsets) != len(texts):
        offsets = [None] * len(texts)
    try:
        return [_token(*fields) for fields in zip(texts, logprobs, best, offsets, strict=True)]
    except (TypeError, ValueError):
        raise document.error("a token without text, log-probability or alternatives") from None


def _token(text: Any, logprob: Any, best: Any, offset: Any) -> _Token:
    if not isinstance(text, str):
        raise TypeError
    offset = offset if isinstance(offset, int) else None
    if logprob is None:  # nothing comes before the very first token
        return _Token(text, None, math.inf, offset)
    likeliest = max(_finite(value) for value in best.values()) if isinstance(best, Mapping) else _finite(None)
    return _Token(text, _finite(logprob), likeliest, offset)


def _finite(value: Any) -> float:
    if not is_number(value):
        raise TypeError
    return float(value)


def _border(document: Document, tokens: Sequence[_Token], request: LogLikelihood) -> int:
    """Return the number of the continuation's first token.

    Counted back over the texts of the tokens, which a letter of many bytes in the context cannot upset; by the offsets
    where the continuation itself has such a letter.
    """
    whole = request.context + request.continuation
    start, missing = len(tokens), len(request.continuation)
    while start and missing > 0:
        start -= 1
        missing -= len(tokens[start].text)
    if missing <= 0 and whole.endswith("".join(token.text for token in tokens[start:])):
        return start
    ends = [token.offset for token in tokens[1:]] + [len(whole)]
    for number, end in enumerate(ends):
        if end is None:
            break
        if end > len(request.context):
            return number
    raise document.error("text_offset does not say which tokens are the continuation's")
