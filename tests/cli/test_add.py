"""``lmeval add``: checked, created or updated, and said which."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_lmeval.formats.yaml.parse import parse_yaml
from tests.cli.conftest import Lmeval
from tests.cli.yaml_project import CHOICE, TASK


@pytest.fixture(autouse=True)
def _project(yaml_project: Path) -> None:
    (yaml_project / "new").mkdir()


def _write(name: str, text: str) -> None:
    Path("new", name).parent.mkdir(parents=True, exist_ok=True)
    Path("new", name).write_text(text)


def test_a_new_task_is_created_and_the_same_again_is_not(lmeval: Lmeval) -> None:
    _write("third.yaml", TASK.replace("the-first", "third"))
    assert (0, "task third: created tasks/third.yaml\n") == lmeval("add", "-f", "new/third.yaml")[:2]
    assert Path("new/third.yaml").read_bytes() == Path("tasks/third.yaml").read_bytes()
    assert (0, "task third: unchanged (tasks/third.yaml)\n") == lmeval("add", "-f", "new/third.yaml")[:2]
    assert (0, "task third: unchanged (tasks/third.yaml)\n") == lmeval("add", "-f", "tasks/third.yaml")[:2]


def test_a_task_of_the_same_key_is_updated_where_it_is(lmeval: Lmeval) -> None:
    _write("another-name.yaml", TASK.replace("sample.first", "sample.last") + "  actions: []\n")
    status, out, _ = lmeval("add", "-f", "new/another-name.yaml")
    assert 0 == status
    assert ["task the-first: updated tasks/first.yaml"] == out.splitlines()
    assert "sample.last" in Path("tasks/first.yaml").read_text()
    assert not Path("tasks/another-name.yaml").exists()


def test_what_a_task_includes_is_written_out_and_a_data_set_comes_along(lmeval: Lmeval) -> None:
    snippet = "def compute_scores(sample, solver_output):\n    return {'ok': True}\n"
    scorer = TASK.replace("the-first", "py") + "  - {type: python, compute_scores_snippet: !include conftest.py}\n"
    _write("py.yaml", scorer)
    _write("conftest.py", snippet)
    _write("rows.yaml", "key: rows\nfile_path: rows.csv\n")
    _write("rows.csv", "a,b\n1,2\n")
    status, out, _ = lmeval("add", "-f", "new/*.yaml", "--to", "elsewhere")
    assert 0 == status
    assert [
        "task py: created elsewhere/py.yaml",
        "data set rows: created elsewhere/rows.yaml, elsewhere/rows.csv",
    ] == out.splitlines()
    added = parse_yaml(Path("elsewhere/py.yaml").read_bytes())
    assert snippet == added["definition"]["scorers"][-1]["compute_scores_snippet"]
    assert ["py.yaml", "rows.csv", "rows.yaml"] == sorted(path.name for path in Path("elsewhere").iterdir())
    Path("new/rows.csv").write_text("a,b\n1,3\n")
    updated = lmeval("add", "-f", "new/rows.yaml", "--to", "elsewhere")[1]
    assert "data set rows: updated elsewhere/rows.csv\n" == updated
    assert 0 == lmeval("add", "-f", "elsewhere/py.yaml", "--to", "elsewhere")[0]


def test_a_task_that_waits_for_values_is_checked_without_them(lmeval: Lmeval) -> None:
    _write("c.yaml", CHOICE.replace("the-choice", "c2"))
    assert "task c2: created tasks/c.yaml\n" == lmeval("add", "-f", "new/c.yaml")[1]
    _write("c.yaml", CHOICE.replace("<< config.which >>", "<< config.whihc >>"))
    status, out, _ = lmeval("add", "-f", "new/c.yaml")
    assert 1 == status
    assert "unknown parameter 'whihc'; did you mean 'which'?" in out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("definition: [", "new/bad.yaml:1: bad_yaml _document: column"),
        ("a: 1", "new/bad.yaml:1: missing_required definition: neither a declarative task nor a data set"),
        (TASK.replace("string_equals", "string_equal"), "new/bad.yaml:12: bad_value definition.scorers[0].type: "),
        ("key: x\nfile_path: no.csv", "new/bad.yaml:2: bad_value file_path: column 1: no.csv: cannot be read"),
        ("key: x\nfile_path: ../data/options.jsonl", "expected a file beside the data set's own, or below it"),
    ],
)
def test_where_one_is_wrong_none_is_added(lmeval: Lmeval, text: str, problem: str) -> None:
    _write("good.yaml", TASK.replace("the-first", "good"))
    _write("bad.yaml", text)
    status, out, _ = lmeval("add", "-f", "new/good.yaml", "new/bad.yaml")
    assert 1 == status
    assert problem in out
    assert out.endswith("nothing was added\n")
    assert not Path("tasks/good.yaml").exists()


def test_names_that_are_taken_or_lead_nowhere_are_refused(lmeval: Lmeval) -> None:
    _write("a.yaml", TASK)
    _write("b.yaml", TASK)
    assert "new/b.yaml: new/a.yaml has the same key 'the-first'" in lmeval("add", "-f", "new/a.yaml", "new/b.yaml")[1]
    assert (2, "lmeval add: new/*.yml: no such file\n") == lmeval("add", "-f", "new/*.yml")[::2]
    _write("c.yml", TASK.replace("the-first", "c"))
    assert (1, True) == (
        lmeval("add", "-f", "new/c.yml")[0],
        "only .yaml files are collected" in lmeval("add", "-f", "new/c.yml")[1],
    )


def _files() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in Path("tasks").rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["conftest.py", "test_x.txt"])
def test_rows_in_a_file_that_pytest_would_read_are_never_written(lmeval: Lmeval, name: str) -> None:
    _write("rows.yaml", f"key: rows\nfile_path: {name}\n")
    _write(name, "a,b\n1,2\n")
    before = _files()
    status, out, _ = lmeval("add", "--force", "-f", "new/rows.yaml")
    assert (1, True) == (status, f"bad_value file_path: column 1: {name}: " in out)
    assert before == _files()


def test_a_file_of_another_task_is_replaced_by_force_alone(lmeval: Lmeval) -> None:
    other = TASK.replace("the-first", "other")
    _write("first.yaml", other)
    before = _files()
    status, _, err = lmeval("add", "-f", "new/first.yaml")
    assert (2, before) == (status, _files())
    assert "new/first.yaml: tasks/first.yaml: another file has this name; rename one, or replace it with --force" in err
    assert (0, "task other: created tasks/first.yaml\n") == lmeval("add", "--force", "-f", "new/first.yaml")[:2]
    assert other == Path("tasks/first.yaml").read_text()


def test_two_files_for_one_place_are_refused_before_anything_is_written(lmeval: Lmeval) -> None:
    _write("a/task.yaml", TASK.replace("the-first", "a"))
    _write("b/task.yaml", TASK.replace("the-first", "b"))
    before = _files()
    status, out, err = lmeval("add", "--force", "-f", "new/a/task.yaml", "new/b/task.yaml")
    assert (2, "") == (status, out)
    assert "new/b/task.yaml: tasks/task.yaml: two of the files would have this path; rename one" in err
    assert before == _files()


@pytest.mark.parametrize("link", ["lib", "lib/rows.csv"])
def test_nothing_is_written_through_a_symbolic_link(lmeval: Lmeval, link: str) -> None:
    _write("rows.yaml", "key: rows\nfile_path: lib/rows.csv\n")
    _write("lib/rows.csv", "a,b\n1,2\n")
    Path("outside").mkdir()
    Path("outside/rows.csv").write_text("mine\n")
    Path("tasks", link).parent.mkdir(exist_ok=True)
    Path("tasks", link).symlink_to(Path("outside" if link == "lib" else "outside/rows.csv").resolve())
    status, _, err = lmeval("add", "--force", "-f", "new/rows.yaml")
    assert (2, True) == (status, "tasks/lib/rows.csv: leads out of the task folder, or through a symbolic link" in err)
    assert "mine\n" == Path("outside/rows.csv").read_text()
    assert not Path("tasks/rows.yaml").exists()


def test_a_file_that_cannot_be_written_is_named(lmeval: Lmeval) -> None:
    _write("rows.yaml", "key: rows\nfile_path: lib/rows.csv\n")
    _write("lib/rows.csv", "a,b\n1,2\n")
    Path("tasks/lib").write_text("a file that stands in the place of a folder")
    status, _, err = lmeval("add", "-f", "new/rows.yaml")
    assert (2, True) == (status, "data set rows: tasks/lib/rows.csv: cannot be written: " in err)


def test_the_limit_on_lines_of_task_files_is_not_that_of_data(lmeval: Lmeval) -> None:
    Path("pytest.ini").write_text("[pytest]\nlm_max_line_bytes = 20\n")
    _write("rows.yaml", "key: rows\nfile_path: rows.jsonl\n")
    _write("rows.jsonl", f'{{"a": "{"x" * (2 << 20)}"}}\n')
    assert (0, "data set rows: created tasks/rows.yaml, tasks/rows.jsonl\n") == lmeval("add", "-f", "new/rows.yaml")[:2]


def test_a_row_that_is_too_long_is_refused_with_the_limit_that_applies(lmeval: Lmeval) -> None:
    _write("rows.yaml", "key: rows\nfile_path: rows.jsonl\n")
    with Path("new/rows.jsonl").open("wb") as file:
        # Of zeros, which take no room on the disk.
        file.truncate((64 << 20) + 1)
    status, out, _ = lmeval("add", "-f", "new/rows.yaml")
    place = "new/rows.yaml:2: bad_value file_path: column 1: rows.jsonl:1: "
    limit = "line of 67,108,865 bytes; at most 67,108,864 are read"
    assert (1, [f"{place}{limit}", "nothing was added"]) == (status, out.splitlines())
