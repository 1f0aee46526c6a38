"""``lmeval add``: checked, created or updated, and said which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Lmeval
from tests.cli.yaml_project import CHOICE, TASK, write_project


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path)
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path)


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
    assert [
        "task the-first: updated tasks/first.yaml",
        '  definition.scorers[0].ground_truth: "{{ sample.first }}" -> "{{ sample.last }}"',
        "  definition.actions: (not there) -> []",
    ] == out.splitlines()
    assert "sample.last" in Path("tasks/first.yaml").read_text()
    assert not Path("tasks/another-name.yaml").exists()


def test_what_a_task_includes_and_a_data_set_come_along(lmeval: Lmeval) -> None:
    _write(
        "py.yaml", TASK.replace("the-first", "py") + "  - {type: python, compute_scores_snippet: !include lib/s.py}\n"
    )
    _write("lib/s.py", "def compute_scores(sample, solver_output):\n    return {'ok': True}\n")
    _write("rows.yaml", "key: rows\nfile_path: rows.csv\n")
    _write("rows.csv", "a,b\n1,2\n")
    status, out, _ = lmeval("add", "-f", "new/*.yaml", "--to", "elsewhere")
    assert 0 == status
    assert [
        "task py: created elsewhere/py.yaml, elsewhere/lib/s.py",
        "data set rows: created elsewhere/rows.yaml, elsewhere/rows.csv",
    ] == out.splitlines()
    Path("new/rows.csv").write_text("a,b\n1,3\n")
    assert "data set rows: updated elsewhere/rows.csv\n" == lmeval("add", "-f", "new/rows.yaml", "--to", "elsewhere")[1]


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
    _write("first.yaml", TASK.replace("the-first", "other"))
    status, _, err = lmeval("add", "-f", "new/first.yaml")
    assert 2 == status
    assert "tasks/first.yaml: another file has this name, and its key is not 'other'; rename one" in err
    _write("a.yaml", TASK)
    _write("b.yaml", TASK)
    assert (
        "new/b.yaml: the key 'the-first' is that of new/a.yaml, too"
        in lmeval("add", "-f", "new/a.yaml", "new/b.yaml")[1]
    )
    assert (2, "lmeval add: new/*.yml: no such file\n") == lmeval("add", "-f", "new/*.yml")[::2]
