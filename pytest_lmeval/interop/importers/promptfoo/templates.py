"""Nunjucks templates to the sandboxed Jinja of data files, and texts as JavaScript writes values."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut
from pytest_lmeval.templates.rows import RowTemplate

_TAGS = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_QUOTED = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_SPELLINGS = (
    (re.compile(r"(?<![=!])===(?!=)"), "=="),
    (re.compile(r"!==(?!=)"), "!="),
    (re.compile(r"\|\s*dump\b"), "| tojson"),
    (re.compile(r"\|\s*safe\b"), ""),
    (re.compile(r"\b([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.length\b"), r"(\1 | length)"),
)
_ENVIRONMENT = re.compile(r"\{[{%][^}]*\benv\s*[.\[]")
_KEPT_TALK = "_conversation"


def is_template(text: str) -> bool:
    """Tell whether a text has a part that is filled in."""
    return "{{" in text or "{%" in text or "{#" in text


def jinja(text: str) -> str:
    """Return a Nunjucks template as Jinja; raise LeftOut for what has no counterpart."""
    if _ENVIRONMENT.search(text):
        raise LeftOut("env: variables of the environment are in no task file; write the value")
    found = _TAGS.sub(lambda tag: _spelt(tag[0]), text)
    try:
        names = RowTemplate.of(found, "template").used(()) if is_template(found) else set()
    except RecordRefused as refused:
        raise LeftOut(f"not a template of data files: {refused.detail}") from None
    if _KEPT_TALK in names:
        raise LeftOut("_conversation: what was said before is in `turns` of a record, not in a data file")
    return found


def names_in(template: str) -> set[str]:
    """Return the variables of a template, in Jinja."""
    return RowTemplate.of(template, "template").used(()) if is_template(template) else set()


def filled(template: str, row: Mapping[str, Any]) -> str:
    """Return the text of a template for a row, in which what is missing is empty; raise LeftOut."""
    if not is_template(template):
        return template
    missing = {name: "" for name in names_in(template) if row.get(name) is None}
    try:
        return RowTemplate.of(tolerant(template, {**row, **missing}), "template").fill({**row, **missing})
    except RecordRefused as refused:
        raise LeftOut(f"the template cannot be filled: {refused.detail}") from None


def tolerant(template: str, row: Mapping[str, Any]) -> str:
    """Return a template that takes the names that are blank in ``row`` for empty texts, as Nunjucks does."""
    return tolerating(template, [name for name, value in row.items() if is_blank(value)])


def tolerating(template: str, blank: Collection[str]) -> str:
    """Return a template that may be filled where the names among ``blank`` are missing or empty."""
    names = sorted(names_in(template) & {*blank})
    return "".join(f'{{% set {name} = {name} | default("") %}}' for name in names) + template


def is_blank(value: Any) -> bool:
    """Tell whether a data file would call a cell empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def script_text(value: Any) -> str:
    """Return a value as JavaScript's ``String`` does; objects and lists, as promptfoo does, as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _spelt(tag: str) -> str:
    parts = _QUOTED.split(tag)
    for pattern, written in _SPELLINGS:
        parts = [pattern.sub(written, part) if number % 2 == 0 else part for number, part in enumerate(parts)]
    return "".join(parts)
