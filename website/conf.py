"""Settings of Sphinx: the pages of ``docs/`` as a site. ``python website/build.py`` builds it."""

from __future__ import annotations

import re

from pygments.lexers import JsonLexer, TextLexer
from sphinx.application import Sphinx

import pytest_lmeval
from pytest_lmeval.pages import REPOSITORY

project = "pytest-lmeval"
author = "pytest-lmeval contributors"
version = release = pytest_lmeval.__version__
root_doc = "index"
extensions = ["myst_parser"]
# Links name headings as GitHub does.
myst_heading_anchors = 4
nitpicky = True
# Some blocks begin with the name of their file, and some are wrong on purpose.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"pytest-lmeval {release}"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_use_index = False

_PAGE = re.compile(r"\]\(([\w/-]+)\.md(?:#[\w-]+)?\)")
# What is not in docs/ is no page of the site: files of the repository.
_BESIDE = re.compile(r"\]\((?:\.\./)+(?=[A-Z.]|action|benchmarks|examples|tests|website)")


def setup(app: Sphinx) -> None:
    """Prepare the pages, and let blocks of JSON lines and of csv have colours."""
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", _prepare)


def _prepare(_: Sphinx, name: str, source: list[str]) -> None:
    """Have links out of ``docs/`` lead to the repository; those of a page that lists others are the navigation."""
    if name == root_doc or name.endswith("README"):
        source[0] += navigation(source[0])
    source[0] = _BESIDE.sub(f"]({REPOSITORY}/blob/main/", source[0])


def navigation(page: str) -> str:
    """Return a hidden table of contents for each section of ``page``, or for all of it, that links to other pages."""
    found = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        title, _, text = section.partition("\n")
        if names := dict.fromkeys(_PAGE.findall(text)):
            caption = [] if title.startswith("# ") else [f":caption: {title}"]
            found.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *names, "```"]))
    return "\n\n" + "\n\n".join(found) + "\n"
