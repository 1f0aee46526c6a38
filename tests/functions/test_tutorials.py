"""The pages that go through an example: their files are the example's, and their commands print what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunModule
from tests.tutorials import Tutorial

ROOT = Path(__file__).parents[2]
# By the page, its example and the exit codes of its commands.
PAGES = {
    "grade-with-a-judge": ("judge", [0, 0, 1, 1]),
    "talk-like-a-user": ("user", [0, 0, 1, 1]),
    "rag": ("rag", [1, 0, 1, 0, 1]),
    "test-your-application": ("agent", [0, 0, 0, 1, 1]),
    "questions": ("questions", [0, 1, 0, 0, 0, 1]),
    "media": ("invoices", [0, 0, 0, 1]),
    "benchmark-a-model": ("benchmark", [0, 1, 1]),
}


@pytest.mark.parametrize("page", PAGES)
def test_its_files_are_those_of_the_example_and_its_commands_print_what_it_says(
    tmp_path: Path, run_module: RunModule, page: str
) -> None:
    example, codes = PAGES[page]
    tutorial = Tutorial(ROOT / f"docs/{page}.md", ROOT / f"examples/{example}")
    assert tutorial.files == tutorial.shown
    assert codes == tutorial.codes(tmp_path / ("bench" if example == "benchmark" else "shop"), run_module)
