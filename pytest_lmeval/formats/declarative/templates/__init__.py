"""Jinja templates that nobody trusts: what is in a task file, filled with what is in a data set or a model wrote.

A template sees plain data and returns text, within limits on size and work. Nothing that it is given is ever read as
a template again.
"""

from __future__ import annotations

from pytest_lmeval.formats.declarative.templates.filters import ROOM, Room
from pytest_lmeval.formats.declarative.templates.placeholders import (
    PlaceholderError,
    fill_template,
    fill_value,
    placeholders,
)
from pytest_lmeval.formats.declarative.templates.template import Kit, Template, TemplateFault, compile_template

__all__ = [
    "ROOM",
    "Kit",
    "PlaceholderError",
    "Room",
    "Template",
    "TemplateFault",
    "compile_template",
    "fill_template",
    "fill_value",
    "placeholders",
]
