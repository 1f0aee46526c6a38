"""The page on benchmarking a model: its files are the example's, and its commands print what it says."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import RunModule
from tests.tutorials import Tutorial

ROOT = Path(__file__).parents[2]
PAGE = Tutorial(ROOT / "docs/benchmark-a-model.md", ROOT / "examples/benchmark")


def test_its_files_are_those_of_the_example() -> None:
    assert PAGE.files == PAGE.shown


def test_its_commands_print_what_it_says(tmp_path: Path, run_module: RunModule) -> None:
    assert [0, 1, 1] == PAGE.codes(tmp_path / "bench", run_module)
