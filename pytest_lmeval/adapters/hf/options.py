"""The options of the adapter, checked once, before anything heavy is imported."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_lmeval.adapters.hf.calls import FAMILIES
from pytest_lmeval.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Options:
    """How to load the model and how to ask it.

    ``temperature`` 0 is greedy; above it, tokens are drawn by ``seed`` from the ``top_p`` most probable mass.
    ``max_new_tokens`` counts where a request has no ``max_tokens`` of its own. ``batch_tokens`` is the most tokens
    that go through the model together, padding and what is still to be written included. ``tool_parser`` is the family
    that calls of tools are written like, by default the one whose marks the chat template has. ``threads`` is the
    number of processor threads that torch computes with; by default a worker's share of those it would take.
    """

    device: str = "auto"
    dtype: str = "auto"
    max_new_tokens: int = 256
    temperature: float = 0
    top_p: float = 1
    seed: int = 0
    chat: bool | str = "auto"
    system: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    logprobs: bool = False
    tool_parser: str = "auto"
    batch_tokens: int = 16384
    threads: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    def public(self) -> dict[str, Any]:
        """Return the options that are set, as JSON values."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != {}}


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an option may be, in words, and the test of it; ``words`` are for a did-you-mean."""

    expected: str
    allows: Callable[[Any], bool]
    words: tuple[str, ...] = ()


def _words(*words: str) -> _Rule:
    return _Rule(f"one of {', '.join(words)}", lambda value: value in words, words)


def _whole(low: int) -> _Rule:
    return _Rule(f"a whole number from {low}", lambda value: _is_whole(value) and low <= value < 2**63)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_device(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", value, re.ASCII) is not None


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


_FLAG = _Rule("true or false", lambda value: isinstance(value, bool))
_RULES: Mapping[str, _Rule] = {
    "device": _Rule("auto, cpu, cuda or cuda:N", _is_device, ("auto", "cpu", "cuda")),
    "dtype": _words("auto", "bfloat16", "float16", "float32"),
    "max_new_tokens": _whole(1),
    "temperature": _Rule("a number from 0", lambda value: _is_number(value) and value >= 0),
    "top_p": _Rule("a number above 0, up to 1", lambda value: _is_number(value) and 0 < value <= 1),
    "seed": _whole(0),
    "chat": _Rule("auto, true or false", lambda value: isinstance(value, bool) or value == "auto"),
    "system": _Rule("text", _is_text),
    "chat_template_kwargs": _Rule("a table such as {enable_thinking = false}", _is_table),
    "logprobs": _FLAG,
    "tool_parser": _words("auto", *FAMILIES),
    "batch_tokens": _whole(1),
    "threads": _whole(1),
    "revision": _Rule("text: a branch, a tag or a commit", _is_text),
    "trust_remote_code": _FLAG,
}


def read_options(given: Mapping[str, Any]) -> Options:
    """Return the options that were ``given``; raise UsageError that names the option and what was expected."""
    for name, value in given.items():
        _check(name, value)
    options = Options(**given)
    if options.top_p < 1 and options.temperature == 0:
        raise fault("option top_p has no effect at temperature 0; expected a temperature above 0 with it")
    if options.chat is False and (options.system is not None or options.chat_template_kwargs):
        raise fault("options system and chat_template_kwargs have no place with chat=false")
    return options


def _check(name: str, value: Any) -> None:
    if name not in _RULES:
        hint = did_you_mean(name, _RULES)
        raise fault(f"unknown option {name!r}{';' if hint else ''}{hint} (choices: {', '.join(sorted(_RULES))})")
    rule = _RULES[name]
    if not rule.allows(value):
        hint = did_you_mean(str(value), rule.words)
        raise fault(f"option {name} is {value!r}; expected {rule.expected}{';' if hint else ''}{hint}")


def fault(what: str) -> UsageError:
    """Return the error that says ``what`` is wrong with how the adapter was asked for."""
    return UsageError(f"adapter 'hf': {what}")
