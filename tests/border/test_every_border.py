"""Every border has a table, and every table a row for each kind of thing that can cross."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.border.table import KINDS, Border, Row, check, lacking, since_baseline
from tests.conftest import BOTH, RunModule

# Where code or text that is not the project's meets a run.
BORDERS = """
    answer baseline cache collection comparison data_set endpoint environment eval_function harness_task judge names
    options ported_class program replay secrets task_file tool_calls user written_file
"""
MODULES = {
    path.stem.removeprefix("test_"): f"tests.border.{path.stem}"
    for path in Path(__file__).parent.glob("*.py")
    if path.stem != "table" and path != Path(__file__)
}
# Their rows are run beside their tables: they need packages, other rows a run, no workers, or a look at more.
APART = {"data_set", "eval_function", "harness_task", "secrets", "written_file"}


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize("name", sorted(MODULES.keys() - APART))
def test_what_crosses_a_border_is_used_refused_or_reported(
    name: str, processes: str, tmp_path: Path, run_module: RunModule
) -> None:
    check(importlib.import_module(MODULES[name]).BORDER, tmp_path, run_module, processes)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_border_has_a_row_for_every_kind(name: str) -> None:
    assert [] == lacking(importlib.import_module(MODULES[name]).BORDER)


def test_each_border_has_a_table() -> None:
    assert BORDERS.split() == sorted(MODULES)


def test_a_table_without_a_kind_or_with_an_idle_row_is_found() -> None:
    rows = tuple(Row(kind=kind, never="there is no such thing") for kind in KINDS[1:])
    idle = Row(kind="empty", what="an empty text", example="t:a")
    faults = lacking(Border(name="a made up border", rows=(*rows, idle)))
    assert ["no row for 'absent'", "the row 'empty' (an empty text) looks at nothing"] == [
        fault.removeprefix("a made up border: ") for fault in faults
    ]


def test_a_row_that_differs_from_what_happens_is_found(tmp_path: Path, run_module: RunModule) -> None:
    line = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'
    wrong = Row(kind="empty", fate="reported", says="it was not said", example="t:a", status="failed", score=0.0)
    border = Border(name="a made up border", rows=(wrong,), files={"tasks/t.jsonl": line}, code=1)
    with pytest.raises(AssertionError) as caught:
        check(border, tmp_path, run_module)
    told = str(caught.value)
    assert "exit code 0, expected 1" in told
    assert "status passed, expected failed" in told
    assert "score 1.0, expected 0.0" in told
    for front in ("terminal", "board", "markdown", "page"):
        assert f"{front} does not say 'it was not said'" in told


def test_a_row_with_files_before_has_an_earlier_run(tmp_path: Path, run_module: RunModule) -> None:
    line = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'
    says = "not compared: 1 changed (1 passed before)"
    row = since_baseline(
        "changed unseen", "a prompt", says, {"tasks/t.jsonl": line.replace("say:", "now say:")}, code=1
    )
    check(Border(name="a made up border", rows=(row,), files={"tasks/t.jsonl": line}), tmp_path, run_module)
    assert ["a made up border: the row 'late' (a row) has an earlier run, and is not alone"] == [
        fault
        for fault in lacking(
            Border(name="a made up border", rows=(Row(kind="late", what="a row", says="x", before={}),))
        )
        if "earlier run, and" in fault
    ]
