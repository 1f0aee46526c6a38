"""The pages on a judge and on a user: their files are the examples', and their commands print what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunModule
from tests.tutorials import Tutorial

ROOT = Path(__file__).parents[2]
PAGES = {
    "judge": Tutorial(ROOT / "docs/grade-with-a-judge.md", ROOT / "examples/judge"),
    "user": Tutorial(ROOT / "docs/talk-like-a-user.md", ROOT / "examples/user"),
}


@pytest.mark.parametrize("name", PAGES)
def test_its_files_are_those_of_the_example_and_its_commands_print_what_it_says(
    tmp_path: Path, run_module: RunModule, name: str
) -> None:
    page = PAGES[name]
    assert page.files == page.shown
    assert [0, 0, 1, 1] == page.codes(tmp_path / "shop", run_module)
