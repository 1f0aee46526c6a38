"""Pages with an example of their own: their files are the example's, and their commands print what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunModule
from tests.tutorials import Tutorial

ROOT = Path(__file__).parents[2]
BENCHMARK = Tutorial(ROOT / "docs/benchmark-a-model.md", ROOT / "examples/benchmark")
QUESTIONS = Tutorial(ROOT / "docs/questions.md", ROOT / "examples/questions")


@pytest.mark.parametrize("page", [BENCHMARK, QUESTIONS], ids=["benchmark", "questions"])
def test_the_files_of_a_page_are_those_of_the_example(page: Tutorial) -> None:
    assert page.files == page.shown


@pytest.mark.parametrize(
    ("page", "folder", "codes"), [(BENCHMARK, "bench", [0, 1, 1]), (QUESTIONS, "shop", [0, 1, 0, 0, 0, 1])]
)
def test_the_commands_of_a_page_print_what_it_says(
    page: Tutorial, folder: str, codes: list[int], tmp_path: Path, run_module: RunModule
) -> None:
    assert codes == page.codes(tmp_path / folder, run_module)
