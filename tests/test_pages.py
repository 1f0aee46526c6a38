"""The pages of docs/ as a site: each link and address leads somewhere, and the site is built without a warning."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pytest_lmeval
from pytest_lmeval.pages import REPOSITORY, page
from tests import needs
from tests.prose import of_page
from tests.report.html.browser import find_chromium, running_browser
from tests.report.html.test_accessibility import FOUND, axe
from website.pictures import COLUMNS, IMAGES, PICTURES, svg
from website.questions import QUESTIONS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_lmeval"
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def text_of(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^( *)(```+)[^\n]*\n.*?^\1\2$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE):
        plain = re.sub(r"\]\([^)]*\)", "]", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


def dead_links(path: Path) -> Iterator[str]:
    """Yield the links of a page to files or headings that do not exist."""
    for link in re.findall(r"\]\((?![a-z]+:)([^) ]+)\)", text_of(path)):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    found = {path.relative_to(ROOT).as_posix(): [*dead_links(path)] for path in PAGES}
    assert {} == {path: links for path, links in found.items() if links}


def test_a_link_has_the_title_of_its_page_for_a_text_and_not_the_name_of_its_file() -> None:
    found = [link for path in PAGES for link in re.findall(r"\[`?[\w/.-]+\.md`?\]\([^)]*\)", text_of(path))]
    assert [] == found


def test_a_guide_has_at_most_1800_words_and_all_of_them_40000() -> None:
    words = {path.name: of_page(path.read_text("utf-8")).words for path in sorted(DOCS.glob("*.md"))}
    assert {} == {name: count for name, count in words.items() if count > 1800}
    assert sum(words.values()) <= 40_000


def pages_named(source: str) -> Iterator[str]:
    """Yield the pages that messages of Python ``source`` name: the arguments of ``page()``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "page":
            assert isinstance(node.args[0], ast.Constant), "the name of a page is written where it is used"
            yield str(node.args[0].value)


def test_every_page_that_a_message_names_exists() -> None:
    sources = [path.read_text("utf-8") for path in PACKAGE.rglob("*.py")]
    named = {name for source in sources if "page(" in source for name in pages_named(source)}
    assert named
    dead = [
        name
        for name, _, anchor in (each.partition("#") for each in named)
        if not (DOCS / name).exists() or (anchor and anchor not in anchors(DOCS / name))
    ]
    assert [] == dead


def test_no_message_names_a_file_of_docs_that_a_user_of_pip_lacks() -> None:
    named = re.compile(r"(?<![/`\w])docs/[\w-]+\.md(?!`)")
    found = [path for path in PACKAGE.rglob("*.py") if named.search(path.read_text("utf-8"))]
    assert [] == found


def test_the_address_of_a_page_is_that_of_its_version() -> None:
    assert f"{REPOSITORY}/blob/v1.2.0/docs/tasks.md#metrics" == page("tasks.md#metrics", "1.2.0")
    assert f"{REPOSITORY}/blob/main/docs/tasks.md" == page("tasks.md", "1.2.0.dev0")


def test_the_reference_is_what_the_code_says() -> None:
    write = runpy.run_path(str(ROOT / "website" / "reference.py"))
    found = {path.name: path.read_text("utf-8") for path in (DOCS / "reference").iterdir()}
    written = {name: text for name, text in found.items() if text.startswith("<!-- Written by ")}
    assert write["pages"]() == written, "python website/reference.py"


# The page of the search has no heading, the drawer no name, and two buttons lie outside of it: the theme's own.
OF_THE_THEME = ("page-has-heading-one", "landmark-unique: <aside", 'region: <span class="visually-hidden">')


@pytest.mark.slow
def test_the_site_is_built_strictly_searched_from_the_disk_and_accessible(tmp_path: Path) -> None:
    needs.installed("furo", "docs")
    chromium = find_chromium()
    if chromium is None:
        needs.lacking("chromium", "needs Chromium")
    build = [sys.executable, str(ROOT / "website" / "build.py"), str(tmp_path / "site")]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert (0, "") == (done.returncode, done.stderr)
    with running_browser(chromium) as browser:
        browser.call("Page.navigate", url=(tmp_path / "site" / "search.html").as_uri() + "?q=quarantine")
        browser.wait_for("[...document.querySelectorAll('ul.search li a')].some(a => a.textContent == 'The gate')")
        found = []
        for name, width in product(("index", "gate", "functions", "reference/names"), (1280, 390)):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.call("Emulation.setDeviceMetricsOverride", **size)
            browser.call("Page.navigate", url=(tmp_path / "site" / f"{name}.html").as_uri())
            browser.wait_for("document.readyState == 'complete' && !!document.querySelector('h1')")
            browser.js(f"{axe()};0")
            found += [f"{name} at {width}: {each}" for each in browser.js(FOUND) if not each.startswith(OF_THE_THEME)]
        asked = [
            event["params"]["request"]["url"]
            for event in browser.events
            if event["method"] == "Network.requestWillBeSent"
        ]
    assert [] == [url for url in asked if not url.startswith(("file:", "data:", "about:"))]
    assert [] == found
    signatures = (tmp_path / "site" / "reference" / "names.html").read_text("utf-8")
    missing = [name for name in pytest_lmeval.__all__ if f'id="pytest_lmeval.{name}"' not in signatures]
    assert ["Row", "SPEC_VERSION"] == missing, "what is neither a class nor a function"


@pytest.mark.again
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    needs.installed("furo", "docs")
    tmp_path.joinpath("mine.txt").write_text("mine")
    build = [sys.executable, str(ROOT / "website" / "build.py"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert (2, f"{tmp_path}: is not empty, and no site; name another folder\n") == (done.returncode, done.stderr)
    assert ["mine.txt"] == [path.name for path in tmp_path.iterdir()]


def test_each_picture_is_made_by_the_script_and_shown() -> None:
    shown = {
        name
        for path in PAGES
        for name in re.findall(r"!\[[^]]+\]\((?:docs/)?images/([^)]+)\)", path.read_text("utf-8"))
    }

    assert set(PICTURES) == {path.name for path in IMAGES.iterdir()} == shown


def test_each_question_to_the_page_of_several_models_has_its_picture() -> None:
    written = (DOCS / "compare.md").read_text("utf-8")
    found = re.findall(r"^\*\*([^*]+\?)\*\*.*\n+!\[[^]]+\]\(images/([^)]+)\)$", written, re.MULTILINE)
    assert sorted((question.text, question.picture) for question in QUESTIONS) == sorted(found)
    # The report's own table has the same questions and their clicks.
    rows = dict(re.findall(r"^\| ([^|]+\?) \|.*\| (\d) \|$", (DOCS / "report.md").read_text("utf-8"), re.MULTILINE))
    assert {question.text: str(len(question.clicks)) for question in QUESTIONS} == rows


def test_a_picture_of_a_terminal_has_its_texts_and_colours_in_rows_of_its_width() -> None:
    root = ElementTree.fromstring(svg(f"$ <run> & go\n\x1b[31mFAILED\x1b[0m {'x' * COLUMNS}\n", "a run"))
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))

    assert ["$ <run> & go", "FAILED", " " + "x" * (COLUMNS - 7), "x" * 7] == [each.text for each in texts]
    assert 3 == len({each.get("y") for each in texts}) == len({each.get("fill") for each in texts}) + 1
