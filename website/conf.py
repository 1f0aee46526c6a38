"""Settings of Sphinx: the pages of ``docs/`` as a site. ``python website/build.py`` builds it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from pygments.lexers import JsonLexer, TextLexer
from sphinx.application import Sphinx

import pytest_lmeval
from pytest_lmeval.pages import REPOSITORY

project = "pytest-lmeval"
author = "pytest-lmeval contributors"
version = release = pytest_lmeval.__version__
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
# Links name headings as GitHub does.
myst_heading_anchors = 4
nitpicky = True
# The types in a signature are names of Python and of modules that have no page.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_default_options = {"members": True, "member-order": "bysource"}
copybutton_exclude = ".linenos, .gp, .go"
# Some blocks begin with the name of their file, and some are wrong on purpose.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"pytest-lmeval {release}"
html_favicon = "favicon.svg"
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
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
    # After the theme, which makes the tree.
    app.connect("html-page-context", _reach_by_keyboard, priority=900)


def _prepare(_: Sphinx, name: str, source: list[str]) -> None:
    """Have links out of ``docs/`` lead to the repository; those of a page that lists others are the navigation."""
    if name == root_doc or name.endswith("README"):
        source[0] += navigation(source[0])
    if name == "reference/names":
        source[0] += "\n".join(["", "## Signatures", "", "```{eval-rst}", *signatures(), "```", ""])
    source[0] = _BESIDE.sub(f"]({REPOSITORY}/blob/main/", source[0])


def _reach_by_keyboard(_: Sphinx, _name: str, _template: str, context: dict[str, str], _tree: object) -> None:
    """Let the keyboard scroll code and tables that are wider than the screen, and give the theme's captions a level."""
    wide = {"<pre>": '<pre tabindex="0">', '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper'}
    for old, new in wide.items():
        context["body"] = context.get("body", "").replace(old, new)
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def signatures() -> Iterator[str]:
    """Yield the directives for every class and function that the package exports."""
    for name in pytest_lmeval.__all__:
        found = getattr(pytest_lmeval, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield f".. auto{'class' if inspect.isclass(found) else 'function'}:: pytest_lmeval.{name}"


def navigation(page: str) -> str:
    """Return a hidden table of contents for each section of ``page``, or for all of it if it has none."""
    first, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    found = []
    for section in sections or [first]:
        title, _, text = section.partition("\n")
        if names := dict.fromkeys(_PAGE.findall(text)):
            caption = [] if title.startswith("# ") else [f":caption: {title}"]
            found.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *names, "```"]))
    return "\n\n" + "\n\n".join(found) + "\n"
