"""Every page and view by the rules of axe-core: of the package ``axe-core-python``, or the file of LMEVAL_TEST_AXE."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import needs
from tests.conftest import MadeOnce, RunModule
from tests.report.html import test_comparison_page, test_page, test_talks
from tests.report.html.browser import Browser

SEVERAL = {
    "three.html": ("", "#/all", "#/all?model=small&show=worse", "#/task/sums?id=e0"),
    "prompts.html": ("", "#/all", "#/task/sums?id=e0"),
    "functions.html": ("", "#/all", "#/task/support?id=one", "#/task/talks?id=talk"),
    "five.html": ("", "#/all"),
    "thirty.html": ("", "#/all"),
    "apart.html": ("", "#/all"),
    "down.html": ("", "#/all?sort=file", "#/task/sums?id=e0"),
}
ONE = {
    "compared.html": ("", "#/all", "#/task/sums", "#/task/sums?id=wrong", "#/task/sums?id=error"),
    "functions.html": ("", "#/all", "#/task/support?id=one", "#/task/support?id=two", "#/task/talks?id=talk"),
}
TALKS = {
    "report.html": (
        "",
        "#/all",
        "#/task/told?id=silent",
        "#/task/silent?id=knows",
        "#/task/played?id=1",
        "#/task/checked?id=two",
    )
}
FOUND = """axe.run(document, {resultTypes: ["violations"]}).then(found =>
    found.violations.flatMap(each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 100)}`)))"""


@pytest.fixture(scope="module")
def several(made_once: MadeOnce) -> Path:
    return made_once("comparisons", test_comparison_page.write_pages)


@pytest.fixture(scope="module")
def one(made_once: MadeOnce) -> Path:
    return made_once("pages", test_page.write_pages)


@pytest.fixture(scope="module")
def talks(made_once: MadeOnce, run_module: RunModule) -> Path:
    return made_once("talks", partial(test_talks.write_page, run_module))


def axe() -> str:
    """Return the script of axe-core; the test is skipped without it."""
    spec = find_spec("axe_core_python")
    named = os.environ.get("LMEVAL_TEST_AXE") or (spec and spec.origin and Path(spec.origin).with_name("axe.min.js"))
    if not named:
        needs.lacking("packages", "needs axe-core-python, or LMEVAL_TEST_AXE with the path of axe.min.js")
    return Path(named).read_text(encoding="utf-8")


def violations(browser: Browser, folder: Path, views: Mapping[str, tuple[str, ...]]) -> list[str]:
    script, found = axe(), []
    for name, fragments in views.items():
        for fragment in fragments:
            browser.open(folder / name, fragment)
            browser.js(f"{script};0")
            found += [f"{name}{fragment}: {each}" for each in browser.js(FOUND)]
    return found


def test_the_overview_of_several_models_has_no_violation(browser: Browser, several: Path) -> None:
    assert [] == violations(browser, several, {"three.html": ("",)})


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 800)], ids=["wide", "phone"])
def test_no_page_and_no_view_has_a_violation(
    browser: Browser, several: Path, one: Path, talks: Path, size: tuple[int, int], dark: bool
) -> None:
    browser.size(*size)
    browser.dark(dark)
    assert [] == violations(browser, several, SEVERAL)
    assert [] == violations(browser, one, ONE)
    assert [] == violations(browser, talks / "reports", TALKS)
