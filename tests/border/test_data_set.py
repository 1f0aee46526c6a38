"""The border to data sets: csv, jsonl and parquet files that task files and eval functions name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import needs
from tests.border.table import Border, Row, check, refused_run, since_baseline
from tests.conftest import BOTH, PYTEST_INI, Project, RunModule

TASK = """
key: {key}
display_name: {key}
definition:
  dataset: {{path: {data}}}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]
  scorers: [{{type: string_equals, ground_truth: "{{{{ sample.q }}}}"}}]
"""
EVAL = """
from pytest_lmeval import eval_task
@eval_task('{key}', data='{data}')
def test_{key}(row, lm): lm.score('s', float(row['q'] != ''))
"""
SMALL = PYTEST_INI + "\nlm_max_data_bytes = 4000\n"


def evaluated(key: str, name: str, content: str | bytes) -> dict[str, str | bytes]:
    return {f"test_{key}.py": EVAL.format(key=key, data=name), name: content}


def refused(kind: str, what: str, name: str, content: str | bytes, says: str) -> Row:
    files = {**evaluated("bad", name, content), "pytest.ini": SMALL}
    return refused_run(kind, what, says, code=2, files=files)


BORDER = Border(
    name="data set",
    files=evaluated("e", "rows.csv", "id,q\na,1\n"),
    arguments=("--lm-adapter=model:Model",),
    rows=(
        Row(kind="out of order", what="a key before another", example="e:a", status="passed", score=1.0),
        refused_run(
            "absent",
            "a file that is not there",
            "paths begin at the test file's folder",
            code=2,
            files={"test_bad.py": EVAL.format(key="bad", data="none.csv")},
        ),
        refused("empty", "a csv file without rows", "x.csv", "id,q\n", "x.csv"),
        refused("wrong type", "an array of JSON", "x.jsonl", "[1, 2]\n", "expected an object"),
        refused("wrong type", "no parquet", "x.parquet", b"PAR1 and no more", "x.parquet: not parquet"),
        refused(
            "too large",
            "more bytes than may be",
            "x.csv",
            "id,q\n" + "".join(f"{n},{'y' * 100}\n" for n in range(100)),
            "bytes of data, uncompressed; at most 4,000 are read (ini lm_max_data_bytes)",
        ),
        refused("not finite or negative", "a NaN", "x.jsonl", '{"q": NaN}\n', "NaN is not JSON"),
        refused("control characters", "no UTF-8", "x.csv", b"id,q\na,\xff\n", "x.csv:2: not UTF-8; save the file"),
        refused("wrong type", "semicolons", "x.csv", "id;q\na;1\n", "'id;q': the cells are separated by semicolons"),
        refused("wrong type", "tabs", "x.csv", "id\tq\na\t1\n", "the cells are separated by tabs"),
        refused("twice", "a column", "x.csv", "q,q\n1,2\n", "expected a different name for every column"),
        refused("twice", "a key of an object", "x.jsonl", '{"q": 1, "q": 2}\n', "duplicate key 'q'"),
        refused("same name", "an id of two rows", "x.csv", "id,q\na,1\na,2\n", "'a'"),
        refused("raising", "a line that is cut", "x.jsonl", '{"q": 1\n', "x.jsonl:1"),
        Row(
            kind="beside",
            what="a plain test that writes the file anew while the run goes on",
            files={"test_a.py": "def test_a(): __import__('pathlib').Path('rows.csv').write_text('id,q\\nb,1\\n')\n"},
            example="e:a",
            status="passed",
        ),
        refused_run(
            "environment",
            "a parquet file where pyarrow is not installed",
            "pyarrow",
            code=2,
            files={
                **evaluated("bad", "x.parquet", b"PAR1"),
                "conftest.py": "import sys\nsys.modules['pyarrow'] = sys.modules['pyarrow.parquet'] = None\n",
            },
        ),
        since_baseline(
            "changed unseen",
            "a cell since the baseline",
            "not compared: 1 changed (1 passed before); compared: 0 of the baseline's 1 example",
            {"rows.csv": "id,q\na,1\n"},
            code=1,
            files={"rows.csv": "id,q\na,2\n"},
        ),
        Row(kind="earlier run", never="data are files that a task names, and a run writes none of them"),
        Row(kind="kept client", never="to read a file asks no model"),
        Row(kind="late", never="a file is read once, when it is collected"),
        Row(kind="cancelled", never="to read a file cannot be cancelled"),
        Row(kind="secret", never="a data set is the author's; what a model answers to it is another border"),
    ),
)


@pytest.mark.parametrize("processes", BOTH)
def test_the_border(tmp_path: Path, run_module: RunModule, processes: str) -> None:
    needs.installed("pyarrow")
    check(BORDER, tmp_path, run_module, processes)


@pytest.fixture
def bomb(project: Project) -> Project:
    """Provide a task over a parquet file of some kilobytes that holds 200 MB."""
    pyarrow, parquet = needs.module("pyarrow"), needs.module("pyarrow.parquet")
    table = pyarrow.table({"q": pyarrow.array(["x" * 1000] * 200_000)})
    (project.path / "tasks").mkdir()
    parquet.write_table(table, project.path / "tasks/rows.parquet", compression="zstd")
    assert (project.path / "tasks/rows.parquet").stat().st_size < 100_000
    project.write("tasks/t.yaml", TASK.format(key="t", data="rows.parquet"))
    project.write("pytest.ini", PYTEST_INI + "\nlm_max_data_bytes = 20000000\n")
    return project


def test_parquet_that_holds_more_than_it_shows_is_refused_by_every_command(bomb: Project) -> None:
    says = "*rows.parquet: 2*bytes of data, uncompressed; at most 20,000,000 are read*"
    result = bomb.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines([says])
    done = bomb.lmeval("validate", "tasks")
    assert 1 == done.ret
    done.stdout.fnmatch_lines([says])
    bomb.write("tasks/rows.yaml", "key: rows\ndisplay_name: Rows\nfile_path: rows.parquet\n")
    done = bomb.lmeval("add", "-f", "tasks/rows.yaml")
    assert 1 == done.ret
    done.stdout.fnmatch_lines([says])


@pytest.mark.again
def test_a_limit_that_is_none_is_a_usage_error(project: Project) -> None:
    project.small_tasks()
    project.write("pytest.ini", PYTEST_INI + "\nlm_max_data_bytes = much\n")
    result = project.run()
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*ini lm_max_data_bytes: expected a whole number >= 1, got 'much'*"])
    done = project.lmeval("validate", "tasks")
    assert 2 == done.ret
    done.stderr.fnmatch_lines(["*pytest.ini: ini lm_max_data_bytes: expected a whole number*"])


def test_a_pipe_is_refused_and_not_waited_for(project: Project) -> None:
    project.write("test_piped.py", EVAL.format(key="piped", data="rows.csv"))
    os.mkfifo(project.path / "rows.csv")
    result = project.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*rows.csv: it is not a regular file*"])


def test_two_columns_of_one_name_in_parquet_are_refused(project: Project) -> None:
    pyarrow, parquet = needs.module("pyarrow"), needs.module("pyarrow.parquet")
    table = pyarrow.Table.from_arrays([[each] for each in "abc"], names=["id", "q", "q"])
    parquet.write_table(table, project.path / "rows.parquet")
    project.write("test_twice.py", EVAL.format(key="twice", data="rows.parquet"))
    result = project.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*rows.parquet: expected a different name for every column, got id, q, q*"])


def test_a_csv_with_line_ends_of_windows_has_the_rows_that_it_had(project: Project) -> None:
    project.write("test_lines.py", EVAL.format(key="lines", data="rows.csv"))
    project.write(
        "tasks/filled.yaml", 'prompt: "say: {{ q }}"\ndata: rows.csv\ntarget: "{{ q }}"\nmetric: exact_match\n'
    )
    text = 'id, q\na,"one\ntwo"\nb,three\n'
    baseline = ("--lm-baseline=base.json", "--lm-gate=baseline")
    for times, ends in enumerate(("\n", "\r\n")):
        for name in ("rows.csv", "tasks/rows.csv"):
            (project.path / name).write_bytes(text.replace("\n", ends).encode())
        assert 0 == project.run(*baseline, *(() if times else ("--lm-update-baseline",))).ret
    assert "pass" == project.board()["gate"]["verdict"]


@pytest.mark.parametrize("path", ["../pytest.ini", "/etc/passwd", "../../rows.csv"])
def test_lmeval_add_refuses_data_that_a_run_would_refuse(project: Project, path: str) -> None:
    project.write("new/t.yaml", TASK.format(key="t", data=path))
    done = project.lmeval("add", "-f", "new/t.yaml")
    assert 1 == done.ret
    done.stdout.fnmatch_lines(["*new/t.yaml:5: bad_value definition.dataset.path: *expected a file*"])
    assert not (project.path / "tasks/t.yaml").exists()
