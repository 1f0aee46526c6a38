"""Which YAML files are tasks; all others are left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml import load
from pytest_lmeval.loading import default_registry
from tests.tables import each_row

REGISTRY = default_registry(entry_points=False)


def _load(text: str, *, named: bool = False, explicit: bool = False) -> LoadedFile:
    return load(TaskSource(Path("tasks/x.yaml"), text.encode(), "x", is_named=named, is_explicit=explicit), REGISTRY)


@each_row(
    "text",
    [
        "",
        "a: 1",
        "- definition",
        "services:\n  web: {image: x}",
        "key: rows\nfile_path: rows.csv",
        "a: !!python/name:os.system",
        "a: [",
        "paths:\n  /x:\n    definition: [broken",
        "definitions: {}",
        "\xff",
    ],
)
def test_other_peoples_files_are_ignored_unless_they_are_named(text: str) -> None:
    loaded = _load(text)
    assert ((), ()) == (loaded.tasks, loaded.errors)
    assert 1 == len(_load(text, named=True).errors)


def test_a_misspelt_key_beside_a_task_s_key_or_title_is_an_error() -> None:
    for text in ("key: x\ndefinitoin: {}", "display_name: x\n'definitions': {}"):
        (error,) = _load(text).errors
        assert (2, "unknown_field") == (error.line_number, error.rule)
        assert error.detail.endswith("no task in the file; did you mean 'definition'?")


def test_a_broken_file_is_an_error_where_a_key_is_indented_wrongly_or_its_folder_was_named() -> None:
    (error,) = _load("key: x\n definition:\n  dataset: {}").errors
    assert (2, "bad_yaml", "column 12") == (error.line_number, error.rule, error.detail.partition(":")[0])
    assert () == _load("a: [1").errors
    (error,) = _load("a: [1", explicit=True).errors
    assert "bad_yaml" == error.rule
    # What is only not read here is no fault of a file of others.
    assert () == _load("a: !vault x\nb: {<<: *c}\nd: 0755\n---\ne: 1", explicit=True).errors


@each_row("text", ["definition: [", '"definition" : {}\na: 1\na: 2', "icl_tasks:\n\t- x", "mixture: {"])
def test_a_broken_task_is_an_error_named_or_not(text: str) -> None:
    (error,) = _load(text).errors
    assert ("bad_yaml", "_document") == (error.rule, error.field)
    assert error.detail.startswith("column ")


def test_a_file_that_is_no_task_costs_no_parser() -> None:
    code = (
        "import sys; from pathlib import Path; from pytest_lmeval.loading import default_registry;"
        "from pytest_lmeval.formats.task import TaskSource; from pytest_lmeval.formats.yaml import load;"
        "load(TaskSource(Path('x.yaml'), b'a: 1', 'x'), default_registry());"
        "print([name for name in ('yaml', 'jinja2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
