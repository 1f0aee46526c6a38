"""A browser for all tests of this folder: to start one costs as much as a dozen of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import needs
from tests.report.html.browser import Browser, find_chromium, running_browser

WIDE = (1280, 800)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave tests in a browser to runs with ``--again``: an eighth of the time of all tests, for one page."""
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.again)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        needs.lacking("chromium", "needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM")
    with running_browser(program) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """Provide a tab of the usual size, in the light; what the test before has opened may still be open."""
    chromium.size(*WIDE)
    chromium.dark(False)
    return chromium
