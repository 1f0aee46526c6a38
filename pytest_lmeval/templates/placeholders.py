"""Replace the placeholders ``<< config.key >>`` with a task's parameters before the rest of the file is read.

Values are always data. In the text of a template, a value becomes text that is not parsed again. In a string within an
expression, the value is escaped. Elsewhere in an expression, a number, a boolean or a list becomes a literal, and a
string must be a name, as in ``sample.<< config.column >>``. No value can add an expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jinja2.exceptions import TemplateSyntaxError

from pytest_lmeval.errors import nearest
from pytest_lmeval.templates.environment import make_environment

_PLACEHOLDER = re.compile(r"<<\s*config\.([A-Za-z_][A-Za-z0-9_]*)\s*>>")
_BROKEN = re.compile(r"<<\s*config\b[^\n]{0,40}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = frozenset(
    {"and", "else", "false", "for", "if", "in", "is", "none", "not", "or", "true", "False", "None", "True"}
)


class PlaceholderError(ValueError):
    """A malformed placeholder, a placeholder for an unknown parameter, or a value that is not valid in its place."""


def placeholders(text: str) -> list[str]:
    """Return the keys of the placeholders in ``text``; raise PlaceholderError for a malformed placeholder."""
    rest = _PLACEHOLDER.sub("", text)
    if broken := _BROKEN.search(rest):
        raise PlaceholderError(f"{broken[0].strip()!r} is not closed, or has no key; expected << config.key >>")
    return _PLACEHOLDER.findall(text)


def fill_value(text: str, values: Mapping[str, Any]) -> Any:
    """Return ``text`` with its placeholders replaced; if ``text`` is a single placeholder, return the value itself."""
    keys = placeholders(text)
    if not keys:
        return text
    if _PLACEHOLDER.fullmatch(text.strip()):
        return _value(keys[0], values)
    return _PLACEHOLDER.sub(lambda match: _as_text(match[1], _value(match[1], values)), text)


def fill_template(text: str, values: Mapping[str, Any]) -> str:
    """Return the template ``text`` with each placeholder replaced by its value, in the form that its place requires."""
    keys = placeholders(text)
    if not keys:
        return text
    mark = _unused_mark(text)
    counter = iter(range(len(keys)))
    marked = _PLACEHOLDER.sub(lambda match: f"{mark}{next(counter)}x", text)
    return "".join(_tokens(marked, re.compile(f"{mark}([0-9]+)x"), [(key, _value(key, values)) for key in keys]))


def _tokens(marked: str, mark: re.Pattern[str], values: list[tuple[str, Any]]) -> Iterator[str]:
    fillers = {"data": _in_text, "string": _in_string, "name": _in_expression, "comment": _in_comment}
    raw = False
    try:
        for _, kind, token in make_environment().lex(marked):
            raw = (raw or kind == "raw_begin") and kind != "raw_end"
            fill = _in_raw if raw and kind == "data" else fillers.get(kind, _in_expression)
            *parts, last = mark.split(token)
            filled = (part if number % 2 == 0 else fill(*values[int(part)]) for number, part in enumerate(parts))
            yield "".join(filled) + last
    except TemplateSyntaxError as error:
        raise PlaceholderError(f"line {error.lineno} of the template: {error.message}") from None


def _in_text(key: str, value: Any) -> str:
    return f'{{{{ "{_in_string(key, value)}" }}}}'


def _in_string(key: str, value: Any) -> str:
    return _escaped(_as_text(key, value))


def _in_comment(key: str, value: Any) -> str:
    return key


def _in_raw(key: str, value: Any) -> str:
    text = _as_text(key, value)
    if "{" in text:
        raise PlaceholderError(f"the value of {key!r} holds a brace, which is not valid in a raw block")
    return text


def _in_expression(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return _literal(value)
    if not _NAME.fullmatch(value) or value in _WORDS:
        hint = f'in quotes, "<< config.{key} >>", any text is valid'
        raise PlaceholderError(f"the value {value!r} of {key!r} is in an expression and is not a name; {hint}")
    return value


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return f"({value!r})"


def _escaped(text: str) -> str:
    # Jinja interprets the same escapes as a Python string.
    return text.encode("unicode_escape").decode("ascii").replace('"', '\\"').replace("'", "\\'")


def _as_text(key: str, value: Any) -> str:
    if value is None:
        raise PlaceholderError(f"the parameter {key!r} has no value, but is part of a text")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(key: str, values: Mapping[str, Any]) -> Any:
    if key not in values:
        raise PlaceholderError(f"unknown parameter {key!r}{nearest(key, values, 'config_spec has')}")
    return values[key]


def _unused_mark(text: str) -> str:
    number = 0
    while (mark := f"placeholder{number}q") in text:
        number += 1
    return mark
