"""Recognize secrets, and hide them in options, command lines and text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from urllib.parse import quote

from pytest_lmeval.extra import is_packed

HIDDEN = "***"
# A name is secret if its last word or last two words are: api_key and Authorization, but not max_tokens or key_word.
_SECRET_WORDS = """
    access apikey auth authorization bearer connectionstring cookie cookies credential credentials dsn header headers
    key pass passphrase passwd password pat private pwd secret secrets session sig signature token
"""
_SECRET_PAIRS = frozenset({"access keys", "api keys", "connection string", "conn str", "private keys", "secret keys"})
# Request fields with secret-sounding names that only select a prompt cache.
_HARMLESS_NAMES = frozenset({"prompt_cache_key"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_USER = re.compile(r"(\w[\w+.-]*://)([^/?#\s\"'<>]+)@")
# A lookahead matches the value, which may contain another assignment, as URLs do. A colon without a quote is prose.
_ASSIGNED = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*)(?:[\"']?\s*=\s*|[\"']\s*:\s*)(?=(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&\"'}]+))"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+([\w.~+/=-]{6,})", re.IGNORECASE)
# Options whose values are expressions or task names.
_HARMLESS_OPTIONS = frozenset({"--lm-threshold", "--lm-min-score", "-k", "-m"})
# Any piece that is long enough reveals a secret, and escapes between pieces do not change that.
_TELLING_PIECE = re.compile(r"[A-Za-z0-9_-]{12,}")
_SHORTEST_MASKED = 4
SHORTEST_IN_ANSWERS = 12
_SHORTEST_HEADER = 16
# Replaces the middle or end of a shortened value, as in tracebacks that show local variables.
_CUT = "..."
Written = TypeVar("Written")


def is_secret_name(name: str) -> bool:
    """Return True if a name marks its value as secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or name.lower() in _HARMLESS_NAMES:
        return False
    return words[-1] in _SECRET_WORDS.split() or " ".join(words[-2:]) in _SECRET_PAIRS


def redact(value: Any, name: str = "") -> Any:
    """Hide in ``value`` all values with secret names, and all secrets in URLs and other text."""
    if is_secret_name(name) and not (value is None or isinstance(value, bool)):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: redact(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact(inner) for inner in value]
    return _redact_text(value) if isinstance(value, str) else value


def redact_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` as JSON values with all secrets hidden; redacting the result again does not change it."""
    redacted: dict[str, Any] = json.loads(json.dumps(redact(dict(options)), default=str))
    return redacted


def redact_arguments(argv: Sequence[str]) -> list[str]:
    """Hide the secrets in command-line arguments."""
    return [_redact_argument(argument, before) for before, argument in zip(["", *argv], argv, strict=False)]


def _redact_argument(argument: str, before: str) -> str:
    if before in _HARMLESS_OPTIONS:
        return argument
    if before.startswith("-") and "=" not in before and is_secret_name(before) and not argument.startswith("-"):
        return HIDDEN
    option, equals, rest = argument.partition("=")
    if option in _HARMLESS_OPTIONS:
        return argument
    # --lm-adapter-arg NAME=VALUE may be one argument or two.
    has_name = option in ("--lm-adapter-arg", "--lm-judge-arg", "--lm-user-arg")
    name, inner, value = rest.partition("=") if has_name else (option, equals, rest)
    if not equals or not inner:
        return _redact_text(argument)
    prefix = argument.removesuffix(value)
    # A value with an assignment is a table with its own quotes.
    hidden = is_secret_name(name) or next(_assigned(value), None) is not None
    return f"{prefix}{HIDDEN}" if hidden else f"{prefix}{_redact_text(value)}"


def _redact_text(text: str) -> str:
    text = _BEARER.sub(rf"\1 {HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))
    parts, end = [], 0
    for start, stop in _assigned(text):
        if start >= end:
            parts += [text[end:start], HIDDEN]
            end = stop
    return "".join([*parts, text[end:]])


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each value that ``text`` assigns to a secret name."""
    return (found.span("value") for found in _ASSIGNED.finditer(text) if is_secret_name(found["name"]))


class Scrubber:
    """Hides a run's known secrets in any text; a scrubber without secrets is falsy.

    All of a run's output passes through a scrubber before it reaches the cache, the journal, reports or the screen.
    Applications, metrics and judges still receive the unchanged text.
    """

    __slots__ = ("_known", "_long", "_masked", "_words")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self._words: tuple[str, ...] = ()
        self._masked: re.Pattern[str] | None = None
        self._long: re.Pattern[str] | None = None
        self.learn(secrets)

    @classmethod
    def of_options(cls, *tables: Mapping[str, Any]) -> Scrubber:
        """Return a scrubber for secrets in adapter options, and in the environment variables that the options name."""
        return cls(secret for options in tables for secret in secrets_among(options))

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on, also hide ``secrets`` of at least four characters."""
        known = self._known | {secret for secret in secrets if len(secret) >= _SHORTEST_MASKED and secret != HIDDEN}
        if known == self._known:
            return
        self._known = known
        # Include the forms that JSON and URLs use.
        written = {form for text in known for form in (text, json.dumps(text)[1:-1], quote(text, safe=""))}
        pieces = {piece for text in written for piece in _TELLING_PIECE.findall(text)}
        self._words = tuple(sorted(written | pieces, key=len, reverse=True))
        self._masked = re.compile("|".join(map(re.escape, self._words)), re.IGNORECASE)
        long = [word for word in self._words if len(word) >= SHORTEST_IN_ANSWERS]
        self._long = re.compile("|".join(map(re.escape, long)), re.IGNORECASE) if long else None

    def __bool__(self) -> bool:
        return self._masked is not None

    def __repr__(self) -> str:
        return f"Scrubber({HIDDEN})" if self else "Scrubber()"

    def scrub(self, text: str) -> str:
        """Hide all secrets in a message, including parts of secrets before and after an ellipsis."""
        if self._masked is None:
            return text
        text = self._masked.sub(HIDDEN, text)
        return _CUT.join(map(self._without_ends, text.split(_CUT))) if _CUT in text else text

    def scrub_answer(self, value: Written) -> Written:
        """Hide secrets of at least 12 characters in a model's answer; a shorter secret may be an ordinary word."""
        return value if self._long is None else _with_texts(value, self._hide_long, self._hide_long)

    def scrub_all(self, value: Written) -> Written:
        """Scrub every string in JSON values; in keys, hide only long secrets, because a key may equal a short one."""
        return _with_texts(value, self.scrub, self._hide_long) if self else value

    def _hide_long(self, text: str) -> str:
        return text if self._long is None else self._long.sub(HIDDEN, text)

    def _without_ends(self, part: str) -> str:
        """Hide partial secrets at the ends of ``part``, which is the text before, after or between ellipses."""
        for word in self._words:
            if word[:_SHORTEST_MASKED] in part[-len(word) :]:
                part = next((f"{part[:-n]}{HIDDEN}" for n in _ends(word) if part.endswith(word[:n])), part)
            if word[-_SHORTEST_MASKED:] in part[: len(word)]:
                part = next((f"{HIDDEN}{part[n:]}" for n in _ends(word) if part.startswith(word[-n:])), part)
        return part


def _ends(word: str) -> range:
    return range(len(word) - 1, _SHORTEST_MASKED - 1, -1)


def _with_texts(value: Any, change: Callable[[str], str], change_key: Callable[[str], str]) -> Any:
    """Apply ``change`` to the strings and ``change_key`` to the keys in all containers and dataclasses in ``value``."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            _with_texts(key, change_key, change_key): _with_texts(
                each, change_key if key == "extra" and is_packed(each) else change, change_key
            )
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        parts = [_with_texts(each, change, change_key) for each in value]
        # A named tuple takes its fields as arguments.
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if is_dataclass(value) and not isinstance(value, type):
        had = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {name: _with_texts(each, change, change_key) for name, each in had.items()}
        return replace(value, **changed) if changed != had else value
    return value


def secrets_among(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the secrets in options, and in the environment variables that the options name."""
    for name, value in options.items():
        yield from _secrets(value, name)


def secrets_in_environment() -> Iterator[str]:
    """Yield the values of environment variables whose names and values look like secrets."""
    for name, value in os.environ.items():
        if is_secret_name(name) and _looks_secret(value) and not os.path.exists(value):
            yield value.strip()


def _looks_secret(value: str) -> bool:
    return len(value) >= _SHORTEST_HEADER and any(map(str.isdigit, value))


def _secrets(value: Any, name: str, within_secret: bool = False) -> Iterator[str]:
    secret = is_secret_name(name)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(inner, str(key), within_secret or secret)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner, name, within_secret)
    elif isinstance(value, str):
        # A header of any name may hold a secret, but "application/json" does not.
        if secret or (within_secret and _looks_secret(value)):
            yield value
        yield from _named_variable(value, name)
        yield from _secrets_in_text(value)


def _named_variable(value: str, name: str) -> Iterator[str]:
    if re.search(r"(^|_)env(ironment)?(_var(iable)?)?$", name, re.IGNORECASE) and value in os.environ:
        yield os.environ[value].strip()


def _secrets_in_text(text: str) -> Iterator[str]:
    for found in _USER.finditer(text):
        yield found[2].partition(":")[2] or found[2]
    yield from (found[2] for found in _BEARER.finditer(text))
    yield from (text[start:stop].strip("\"'") for start, stop in _assigned(text))
