"""Convert text into tokens, and tokens into text.

The tokens of plain text begin with the tokenizer's prefix (usually one BOS token) and have no suffix. The chat template
formats a conversation and adds its special tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pytest_lmeval.adapters.hf.calls import FAMILIES, family_of
from pytest_lmeval.adapters.hf.options import HfOptions, fault
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.postprocess import split_thoughts
from pytest_lmeval.types import Generate, LogLikelihood, Media, Message

_PROBE = "probe"
_BEFORE = 8  # enough tokens to show a tokenizer that the next token does not begin the text


@dataclass(frozen=True, slots=True)
class _Context:
    """Text, with ``is_template`` True if it begins with the chat template's output, including special tokens."""

    text: str
    is_template: bool = False

    def __add__(self, continuation: str) -> _Context:
        return replace(self, text=self.text + continuation)


@dataclass(frozen=True, slots=True)
class Seen:
    """The text of a prompt with images, formatted by the chat template, and its images in order."""

    text: str
    images: Sequence[Media]


class Prompts:
    """Converts requests into tokens with one tokenizer."""

    def __init__(self, tokenizer: Any, options: HfOptions, *, sees: bool = False) -> None:
        self._tokenizer = tokenizer
        self._options = options
        self.is_chat = bool(tokenizer.chat_template) if options.chat == "auto" else bool(options.chat)
        if self.is_chat and not tokenizer.chat_template:
            raise fault("option chat is true, but the tokenizer has no chat template")
        if not self.is_chat and (options.system is not None or options.chat_template_kwargs):
            raise fault("options system and chat_template_kwargs need a chat template, and the tokenizer has none")
        known = options.tool_parser != "auto"
        self.tools_family = options.tool_parser if known else family_of(str(tokenizer.chat_template or ""))
        self.think_tags: tuple[str, str] | None = None
        self._as_parts = sees and self.is_chat and _writes_parts(tokenizer)
        self._prefix = self._find_prefix()
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self.start = next(([token] for token in starts if token is not None), [])

    def read(self, request: Generate) -> tuple[list[int], bool]:
        """Return the tokens of a request's prompt, and True if the prompt ends within thoughts.

        Raise AdapterError if the tokenizer or its chat template does not support the request.
        """
        if not self.is_chat and request.tools:
            raise AdapterError("tools need a chat template, and the tokenizer has none, or the option chat is false")
        if not self.is_chat:
            tokens, opened = self.plain(request.text) or self.start, False
        else:
            text = self.chat(request)
            tokens, opened = self._encode(text), self.opens_thoughts(text)
        if not tokens:
            raise AdapterError("the prompt has no tokens, and the tokenizer has no token to begin a text")
        return tokens, opened

    def opens_thoughts(self, text: str) -> bool:
        """Return True if ``text``, from the chat template, ends with the opening tag for thoughts."""
        return self.think_tags is not None and text.rstrip().endswith(self.think_tags[0])

    def chat(self, request: Generate) -> str:
        """Format the prompt with the chat template; raise the errors of :meth:`read`."""
        return self._with_tools(request) if request.tools else self._converse(request.prompt)

    def split_thoughts(self, text: str, *, opened: bool) -> tuple[str, str]:
        """Split the model's text into thoughts and an answer; ``opened`` is True if the prompt ends within thoughts."""
        found = split_thoughts(text, self.think_tags, opened=opened) if self.think_tags else None
        return found or ("", text)

    def count(self, text: str) -> int:
        """Return the number of tokens in ``text``."""
        return len(self._encode(text))

    def _with_tools(self, request: Generate) -> str:
        tools = [{"type": "function", "function": dict(tool)} for tool in request.tools]
        text = self._converse(request.prompt, tools)
        if text == self._converse(request.prompt):
            raise AdapterError("the chat template does not support tools")
        if request.tool_choice not in ("", "auto"):
            raise AdapterError(f"tool_choice {request.tool_choice!r}: a chat template accepts only auto")
        if not self.tools_family:
            raise AdapterError("the chat template does not show the format of calls; set the option tool_parser")
        return text

    def split_requests(self, requests: Sequence[LogLikelihood]) -> list[tuple[list[int], int] | AdapterError]:
        """Return the tokens of each request and the number of tokens in its continuation, or an error.

        The context's tokens are the leading tokens that do not change when the continuation follows. The tokenizer may
        merge the end of the context (usually a space) with the start of the continuation; the merged token then belongs
        to the continuation. At least one token precedes the continuation. If the context has no tokens, the BOS token,
        or else the EOS token, precedes the continuation.

        The chat template formats a context that consists of messages. One call to the tokenizer converts all texts,
        because a call for each short text could take longer than the model. If a request moves whitespace, its
        continuation begins after as many tokens as the context alone has, as in lm-evaluation-harness.
        """
        contexts = self._contexts(requests)
        pairs = [_moved(*pair) for pair in zip(contexts, requests, strict=True)]
        good = [(before, behind) for before, behind in pairs if not isinstance(before, AdapterError)]
        tokens = self._encode_all({whole for before, behind in good for whole in (before, before + behind)})
        found: list[tuple[list[int], int] | AdapterError] = []
        for (before, behind), request in zip(pairs, requests, strict=True):
            if isinstance(before, AdapterError):
                found.append(before)
                continue
            start, whole = tokens[before], tokens[before + behind]
            if request.moves_blanks and start:
                whole = [*start, *whole[len(start) :]]
            found.append(_border(self.start, start, whole, behind))
        return found

    def _contexts(self, requests: Sequence[LogLikelihood]) -> list[_Context | AdapterError]:
        known: dict[tuple[Message, ...], _Context | AdapterError] = {}
        for messages in {request.messages for request in requests if request.messages and self.is_chat}:
            try:
                if any(message.parts for message in messages):
                    raise AdapterError("an image cannot precede a text to score; ask for a generated answer")
                known[messages] = _Context(self._converse(messages), is_template=True)
            except AdapterError as error:
                known[messages] = error
        return [known.get(request.messages) or _Context(request.context) for request in requests]

    def text_after(self, prompt: Sequence[int], written: Sequence[int]) -> str:
        """Decode the tokens ``written`` after ``prompt``; keep a leading space, which many tokenizers drop."""
        before = list(prompt[-_BEFORE:])
        start, whole = self.decode(before), self.decode([*before, *written])
        return whole[len(start) :] if whole.startswith(start) else self.decode(written)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ``tokens``; keep all whitespace, but only the special tokens for thoughts and calls."""
        kept = self._kept
        if not kept.isdisjoint(tokens):
            tokens = [token for token in tokens if token in kept or token not in self._special]
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=kept.isdisjoint(tokens), clean_up_tokenization_spaces=False
        )
        return text

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self._tokenizer.all_special_ids)

    @cached_property
    def _kept(self) -> frozenset[int]:
        """The special tokens that mark thoughts and tool calls in the model's text."""
        family = FAMILIES.get(self.tools_family)
        marks = {*(self.think_tags or ()), *(family.special if family else ())}
        named = zip(self._tokenizer.all_special_tokens, self._tokenizer.all_special_ids, strict=True)
        return frozenset(token for text, token in named if text in marks)

    def plain(self, text: str) -> list[int]:
        """Return the tokenizer's prefix and the tokens of ``text``."""
        return self._encode_all([_Context(text)])[_Context(text)]

    def _encode_all(self, texts: Collection[_Context]) -> dict[_Context, list[int]]:
        if not texts:
            return {}
        ordered, bos = sorted(texts, key=lambda each: each.text), self._tokenizer.bos_token
        rows = self._tokenizer([each.text for each in ordered], add_special_tokens=False, verbose=False)["input_ids"]
        return {
            each: [*([] if each.is_template or (bos and each.text.startswith(bos)) else self._prefix), *row]
            for each, row in zip(ordered, rows, strict=True)
        }

    def _encode(self, text: str, special: bool = False) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])

    def _find_prefix(self) -> list[int]:
        bare, dressed = self._encode("a"), self._encode("a", special=True)
        places = range(len(dressed) - len(bare) + 1)
        return next((dressed[:place] for place in places if dressed[place : place + len(bare)] == bare), [])

    def _converse(self, messages: str | Sequence[Message], tools: Sequence[Any] | None = None) -> str:
        if isinstance(messages, str):
            messages = (Message("user", messages),)
        turns = [_turn(message, as_parts=self._as_parts) for message in messages]
        if self._options.system is not None and not any(turn["role"] == "system" for turn in turns):
            turns.insert(0, _turn(Message("system", self._options.system), as_parts=self._as_parts))
        # Continue, rather than answer, a conversation that ends with the assistant's words.
        unfinished = bool(turns) and turns[-1]["role"] == "assistant"
        try:
            text: str = self._tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=not unfinished,
                continue_final_message=unfinished,
                **({"tools": tools} if tools else {}),
                **self._options.chat_template_kwargs,
            )
        except Exception as error:
            roles = ", ".join(str(turn["role"]) for turn in turns)
            raise AdapterError(f"the chat template refuses a conversation of {roles}: {error}") from error
        return text


def _turn(message: Message, *, as_parts: bool) -> dict[str, object]:
    """Return a message in the format of chat templates; a tool call's arguments are objects."""
    turn = message.to_json()
    if as_parts or message.parts:
        turn["content"] = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": part.kind}
            for part in message.parts or (message.content,)
        ]
    for shown, call in zip(turn.get("tool_calls", ()), message.tool_calls, strict=True):
        shown["function"]["arguments"] = call.arguments if call.values is None else call.values
    return turn


def _writes_parts(tokenizer: Any) -> bool:
    """Return True if the chat template accepts messages with lists of parts, as most templates for images do."""
    turn = _turn(Message("user", _PROBE), as_parts=True)
    try:
        text = tokenizer.apply_chat_template([turn], tokenize=False)
    except Exception:
        return False
    # Other templates write the list itself.
    return _PROBE in text and "'type'" not in text


def _border(
    start: list[int], before: list[int], whole: list[int], continuation: str
) -> tuple[list[int], int] | AdapterError:
    shared = shared_length(before, whole)
    if shared == 0:
        whole, shared = [*start, *whole], len(start)
    if shared == len(whole):
        return AdapterError(f"the continuation {continuation!r} adds no tokens to its context")
    if shared == 0:
        return AdapterError("the context has no tokens, and the tokenizer has no token to begin a text")
    return whole, len(whole) - shared


def _moved(context: _Context | AdapterError, request: LogLikelihood) -> tuple[_Context | AdapterError, str]:
    """Return the context and the continuation; if requested, move trailing whitespace from the former to the latter.

    Whitespace matters because tokenizers join it with what follows, and many chat templates end with a line break.
    """
    if isinstance(context, AdapterError) or not request.moves_blanks or not (bare := context.text.rstrip()):
        return context, request.continuation
    return replace(context, text=bare), context.text[len(bare) :] + request.continuation


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the number of equal elements at the beginning of both sequences.

    >>> shared_length([1, 2, 3], [1, 2, 4, 5])
    2
    """
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))
