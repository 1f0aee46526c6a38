"""Request log-likelihoods from a server that repeats the prompt with the log-probability of every token.

The request asks for one new token, because some servers cannot generate zero tokens; this module drops that token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.adapters.http.reply import Document, count
from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.adapters.openai.response import first_choice
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import LogLikelihood, LogProb

# Some servers write tokens in their tokenizer's notation.
_BLANKS = str.maketrans({"\u2581": " ", "\u0120": " ", "\u010a": "\n"})


def echo_fields(model: str, options: OpenAIOptions, request: LogLikelihood) -> dict[str, object]:
    """Return the fields of a request's body that asks the server to repeat the prompt with log-probabilities."""
    fields = {
        "model": model,
        "prompt": request.context + request.continuation,
        options.max_tokens_field: 1,
        "temperature": 0,
        "echo": True,
        "logprobs": 1,
    }
    return options.whole(fields, {})


def echoed(document: Document, request: LogLikelihood, latency_ms: float) -> LogProb:
    """Return the log-probabilities of the continuation; raise AdapterError if its first token is uncertain.

    If a token spans the end of the context and the start of the continuation, the token belongs to the continuation.
    The result's ``ids`` are the tokens as text.
    """
    tokens, end = _prompt_tokens(document, request)
    own = tokens[_border(document, tokens, end, request) :]
    if not own:
        raise document.error("the continuation has no tokens")
    each = [token.logprob for token in own]
    if None in each:
        how = "" if request.context else "; name the model's first token: --lm-adapter-arg=begin='<|endoftext|>'"
        raise document.error(f"no log-probability of the continuation's first token{how}")
    known = tuple(value for value in each if value is not None)
    greedy = all(token.is_likeliest for token in own)
    return LogProb(math.fsum(known), known, greedy, latency_ms, tuple(token.text for token in own))


@dataclass(frozen=True, slots=True)
class _Token:
    """One token of the repeated prompt, with ``offset``, the token's start in the text, or None if unknown."""

    text: str
    logprob: float | None
    likeliest: float
    offset: int | None

    @property
    def is_likeliest(self) -> bool:
        return self.logprob is not None and self.logprob >= self.likeliest


def _prompt_tokens(document: Document, request: LogLikelihood) -> tuple[list[_Token], int | None]:
    """Return the prompt's tokens, without the new token, and the end of the last token in the text, or None."""
    choice = first_choice(document)
    text = choice.get("text")
    if not isinstance(text, str) or not text.startswith(request.context + request.continuation):
        raise document.error("the prompt was not repeated; the server must support echo with logprobs")
    tokens = _tokens(document, choice.get("logprobs"))
    written = count(document, "completion_tokens")
    if written is None:
        written = int(len(text) > len(request.context + request.continuation))
    if not written and tokens and not tokens[-1].text:
        written = 1  # an end-of-text token has no text
    tokens, more = tokens[: len(tokens) - written], tokens[len(tokens) - written :]
    last = more[0] if more else tokens[-1] if tokens else None
    if last is None or last.offset is None:
        return tokens, None
    return tokens, last.offset + (0 if more else len(last.text))


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
    if logprob is None:  # the first token has no context
        return _Token(text, None, math.inf, offset)
    likeliest = max(_finite(value) for value in best.values()) if isinstance(best, Mapping) else _finite(None)
    return _Token(text, _finite(logprob), likeliest, offset)


def _finite(value: Any) -> float:
    if not is_number(value):
        raise TypeError
    return float(value)


def _border(document: Document, tokens: Sequence[_Token], end: int | None, request: LogLikelihood) -> int:
    """Return the index of the continuation's first token; raise AdapterError if the index is uncertain.

    Compare the tokens' text backward from the end or, if that fails, forward from the start. One comparison succeeds
    unless both the context and the continuation have characters that consist of several tokens. If both comparisons
    fail, use the offsets, provided that the last offset, ``end``, is the length of the text.
    """
    own = request.continuation
    tokens = [replace(token, text=token.text.translate(_BLANKS)) for token in tokens]
    whole, context = (request.context + own).translate(_BLANKS), request.context.translate(_BLANKS)
    is_begun = bool(tokens) and tokens[0].logprob is None and not (tokens[0].text and whole.startswith(tokens[0].text))
    start = _counted_back(tokens, whole, len(own))
    if start is None:
        start = _counted_forth(tokens, whole, context, int(is_begun))
    if start is None:
        start = _by_offset(tokens, end, len(whole), len(context), is_begun)
    if start is None:
        raise document.error(
            "neither the texts of the tokens nor text_offset show which tokens are the continuation's; use another "
            "server, or hf:MODEL"
        )
    return start


def _counted_back(tokens: Sequence[_Token], whole: str, missing: int) -> int | None:
    start = len(tokens)
    while start and missing > 0:
        start -= 1
        missing -= len(tokens[start].text)
    if missing > 0 or not whole.endswith("".join(token.text for token in tokens[start:])):
        return None
    # Some servers assign a character that consists of several tokens to the last token.
    while missing == 0 and start and tokens[start - 1].text == "" and tokens[start - 1].logprob is not None:
        start -= 1
    return start


def _counted_forth(tokens: Sequence[_Token], whole: str, context: str, start: int) -> int | None:
    text = ""
    for number in range(start, len(tokens)):
        if text == context:
            return number
        text += tokens[number].text
        if not whole.startswith(text):
            return None
        if len(text) > len(context):
            return number
    return None


def _by_offset(tokens: Sequence[_Token], end: int | None, whole: int, context: int, is_begun: bool) -> int | None:
    offsets = [token.offset for token in tokens[1:]] + [end]
    # Some servers count tokens that they add before the text.
    before = offsets[0] if is_begun else 0
    for number, offset in enumerate(offsets):
        if offset is None or before is None or end is None or end - before != whole:
            return None
        if offset - before > context:
            return number
    return None
