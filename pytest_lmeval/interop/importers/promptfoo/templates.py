"""Accept templates that Nunjucks and Jinja fill in the same way, and print values as promptfoo does."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.interop.importers.promptfoo.config import LeftOut
from pytest_lmeval.templates.rows import RowTemplate

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_QUOTED = r"\"[^\"\\{}]*\"|'[^'\\{}]*'"
_FILTERS = "abs|capitalize|first|join|last|length|lower|replace|title|trim|upper|urlencode"
_ARGUMENTS = rf"\((?:{_QUOTED})(?:,\s*(?:{_QUOTED}))?\)"
_SAME = re.compile(rf"\{{\{{-?\s*([A-Za-z_]\w*)(\.\w+|\[\d+\])*(\s*\|\s*({_FILTERS})({_ARGUMENTS})?)*\s*-?\}}\}}")


def is_template(text: str) -> bool:
    """Return True if ``text`` contains a template tag."""
    return "{{" in text or "{%" in text or "{#" in text


def checked(text: str) -> str:
    """Return the text; raise LeftOut for a tag that Jinja may fill differently."""
    for tag in _TAG.findall(text):
        found = _SAME.fullmatch(tag)
        if found is None:
            raise LeftOut(f"{tag!r:.60}: only names and plain filters are imported; write the text into rows")
        if found[1] == "env":
            raise LeftOut("env: task files do not read environment variables; write the value")
        if found[1] == "_conversation":
            raise LeftOut("_conversation: data files have no earlier messages; use `turns` of a record")
    names_in(text)
    return text


def names_in(template: str) -> set[str]:
    """Return a template's variables; raise LeftOut if the template is not valid."""
    try:
        return RowTemplate.of(template, "template").used(()) if is_template(template) else set()
    except RecordRefused as refused:
        raise LeftOut(f"not a template of data files: {refused.detail}") from None


def filled(template: str, row: Mapping[str, Any]) -> str:
    """Return a template, filled in from a row, with empty text for missing values; raise LeftOut if that fails."""
    if not is_template(template):
        return template
    whole = {**dict.fromkeys(names_in(template), ""), **{key: each for key, each in row.items() if each is not None}}
    try:
        blank = [name for name, value in whole.items() if is_blank(value)]
        return RowTemplate.of(tolerating(template, blank), "template").fill(whole)
    except RecordRefused as refused:
        raise LeftOut(f"the template cannot be filled: {refused.detail}") from None


def tolerating(template: str, blank: Collection[str]) -> str:
    """Return a template that accepts missing and empty values of the variables in ``blank``."""
    names = sorted(names_in(template) & {*blank})
    return "".join(f'{{% set {name} = {name} | default("") %}}' for name in names) + template


def is_blank(value: Any) -> bool:
    """Return True if a data file treats ``value`` as empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def script_text(value: Any) -> str:
    """Return ``value`` as promptfoo prints it: "" for null, JSON for objects and lists, else as in JavaScript."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
