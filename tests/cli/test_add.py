"""``lmeval add``: checked, created or updated, and said which."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    lines = out.splitlines()
    assert ["--- tasks/first.yaml (now)", "+++ tasks/first.yaml (new)"] == lines[:2]
    changed = [line[0] + line[1:].strip() for line in lines[3:] if line[0] in "+-"]
    assert ['-ground_truth: "{{ sample.first }}"', '+ground_truth: "{{ sample.last }}"', "+actions: []"] == changed
    assert "task the-first: updated tasks/first.yaml" == lines[-1]
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
    updated = lmeval("add", "-f", "new/rows.yaml", "--to", "elsewhere")[1].splitlines()
    assert ["-1,2", "+1,3", " ", "data set rows: updated elsewhere/rows.csv"] == updated[-4:]


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
    assert "new/first.yaml: tasks/first.yaml: another file has this name; rename one, or replace it with --force" in err
    _write("a.yaml", TASK)
    _write("b.yaml", TASK)
    assert (
        "new/b.yaml: the key 'the-first' is that of new/a.yaml, too"
        in lmeval("add", "-f", "new/a.yaml", "new/b.yaml")[1]
    )
    assert (2, "lmeval add: new/*.yml: no such file\n") == lmeval("add", "-f", "new/*.yml")[::2]
    _write("c.yml", TASK.replace("the-first", "c"))
    assert (1, True) == (lmeval("add", "-f", "new/c.yml")[0], "ends in .yaml" in lmeval("add", "-f", "new/c.yml")[1])


SNIPPET = "def compute_scores(sample, solver_output):\n    return {'ok': True}\n"


def _python_task(key: str, include: str) -> str:
    return TASK.replace("the-first", key) + f"  - {{type: python, compute_scores_snippet: !include {include}}}\n"


def _files() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in Path("tasks").rglob("*") if path.is_file()}


EXECUTED = [
    "conftest.py",
    "CONFTEST.py",
    "task_x.py",
    "test_x.py",
    "x_test.py",
    "sub/test_x.py",
    "__init__.py",
    "__main__.py",
    "setup.py",
    "sitecustomize.py",
    "usercustomize.py",
    "test_x.txt",
    "evil.pth",
    "pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "pytest.toml",
    ".pytest.ini",
    ".coveragerc",
    ".hidden/x.py",
    "x.dist-info/entry_points.txt",
    "random.py",
    "jinja2.py",
]


@pytest.mark.parametrize(
    ("name", "force"),
    [
        *((name, ()) for name in EXECUTED),
        *((name, ("--force",)) for name in EXECUTED[::6]),
        *(pytest.param(name, ("--force",), marks=pytest.mark.slow) for n, name in enumerate(EXECUTED) if n % 6),
    ],
)
def test_what_pytest_or_python_would_execute_is_never_written(
    lmeval: Lmeval, name: str, force: tuple[str, ...]
) -> None:
    _write("good.yaml", TASK.replace("the-first", "good"))
    _write("py.yaml", _python_task("py", name))
    _write(name, SNIPPET)
    before = _files()
    status, out, err = lmeval("add", *force, "-f", "new/good.yaml", "new/py.yaml")
    assert (2, "") == (status, out)
    assert f"new/py.yaml: tasks/{name}: never written: by its name, pytest or Python may run this file" in err
    assert before == _files()


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("python_files = check_*.py", "check_it.py"),
        ("addopts = -q --doctest-modules", "score.py"),
        ("addopts = --doctest-glob=*.md", "prompt.md"),
        ("addopts = --doctest-glob *.rst", "prompt.rst"),
    ],
)
def test_what_the_project_has_pytest_execute_is_never_written(lmeval: Lmeval, setting: str, name: str) -> None:
    _write("py.yaml", _python_task("py", name))
    _write(name, SNIPPET)
    assert 0 == lmeval("add", "-f", "new/py.yaml", "--to", "elsewhere")[0]
    Path("pytest.ini").write_text(f"[pytest]\n{setting}\n")
    status, _, err = lmeval("add", "-f", "new/py.yaml")
    assert (2, True) == (status, f"tasks/{name}: never written" in err)


def test_a_file_of_another_task_is_replaced_only_by_force_and_after_a_diff(lmeval: Lmeval) -> None:
    _write("py.yaml", _python_task("py", "lib/s.py"))
    _write("lib/s.py", SNIPPET)
    Path("tasks/lib").mkdir()
    Path("tasks/lib/s.py").write_text("x = 1\n")
    before = _files()
    status, out, err = lmeval("add", "-f", "new/py.yaml")
    assert (2, "") == (status, out)
    assert "new/py.yaml: tasks/lib/s.py: another file has this name; rename one, or replace it with --force" in err
    assert before == _files()
    status, out, _ = lmeval("add", "--force", "-f", "new/py.yaml")
    assert 0 == status
    assert [
        "--- tasks/lib/s.py (now)",
        "+++ tasks/lib/s.py (new)",
        "@@ -1,2 +1,3 @@",
        "-x = 1",
        "+def compute_scores(sample, solver_output):",
        "+    return {'ok': True}",
        " ",
        "task py: created tasks/py.yaml, tasks/lib/s.py",
    ] == out.splitlines()
    assert SNIPPET == Path("tasks/lib/s.py").read_text()


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("other.yaml", _python_task("other", "s.py")),
        ("task_quiz.py", "from .s import x\n"),
        ("broken.yaml", "definition: [\n# !include s.py\n"),
    ],
)
def test_an_include_that_others_use_too_is_not_replaced(lmeval: Lmeval, user: str, text: str) -> None:
    _write("py.yaml", _python_task("py", "s.py"))
    _write("s.py", SNIPPET)
    assert 0 == lmeval("add", "-f", "new/py.yaml")[0]
    _write("s.py", SNIPPET + "# changed\n")
    Path("tasks", user).write_text(text)
    status, _, err = lmeval("add", "-f", "new/py.yaml")
    assert (2, True) == (status, f"tasks/s.py: tasks/{user} uses this file, too; rename one" in err)
    Path("tasks", user).unlink()
    assert "task py: updated tasks/s.py" == lmeval("add", "-f", "new/py.yaml")[1].splitlines()[-1]


def test_tasks_that_share_an_include_are_updated_together(lmeval: Lmeval) -> None:
    for key in ("one", "two"):
        _write(f"{key}.yaml", _python_task(key, "s.py"))
    for text in (SNIPPET, SNIPPET + "# changed\n"):
        _write("s.py", text)
        assert 0 == lmeval("add", "-f", "new/one.yaml", "new/two.yaml")[0]
        assert text == Path("tasks/s.py").read_text()


def test_a_task_that_others_name_is_updated(lmeval: Lmeval) -> None:
    Path("tasks/mixed.yaml").write_text("mixture: [first.yaml]\n")
    _write("first.yaml", TASK.replace("sample.first", "sample.last"))
    assert 0 == lmeval("add", "-f", "new/first.yaml")[0]


def test_two_files_for_one_place_are_refused_before_anything_is_written(lmeval: Lmeval) -> None:
    _write("a/task.yaml", TASK.replace("the-first", "a"))
    _write("b/task.yaml", TASK.replace("the-first", "b"))
    before = _files()
    status, out, err = lmeval("add", "--force", "-f", "new/a/task.yaml", "new/b/task.yaml")
    assert (2, "") == (status, out)
    assert "new/a/task.yaml: tasks/task.yaml: new/b/task.yaml has another file for this place; rename one" in err
    assert before == _files()


@pytest.mark.parametrize("link", ["lib", "lib/s.py"])
def test_nothing_is_written_through_a_symbolic_link(lmeval: Lmeval, link: str) -> None:
    _write("py.yaml", _python_task("py", "lib/s.py"))
    _write("lib/s.py", SNIPPET)
    Path("outside").mkdir()
    Path("outside/s.py").write_text("x = 1\n")
    Path("tasks", link).parent.mkdir(exist_ok=True)
    Path("tasks", link).symlink_to(Path("outside" if link == "lib" else "outside/s.py").resolve())
    status, _, err = lmeval("add", "--force", "-f", "new/py.yaml")
    assert (2, True) == (status, "tasks/lib/s.py: leads out of the task folder, or through a symbolic link" in err)
    assert "x = 1\n" == Path("outside/s.py").read_text()
    assert not Path("tasks/py.yaml").exists()


def test_where_a_file_cannot_be_written_those_before_it_are_put_back(lmeval: Lmeval) -> None:
    _write("first.yaml", TASK.replace("sample.first", "sample.last"))
    _write("new.yaml", TASK.replace("the-first", "new"))
    _write("py.yaml", _python_task("py", "lib/s.py"))
    _write("lib/s.py", SNIPPET)
    Path("tasks/lib").write_text("a file where a folder would have to be")
    Path("tasks/first.yaml").chmod(0o640)
    before = _files()
    status, out, err = lmeval("add", "-f", "new/first.yaml", "new/new.yaml", "new/py.yaml")
    assert (2, "") == (status, out)
    assert "tasks/lib/s.py: cannot be written: " in err
    assert err.endswith("; nothing was added\n")
    assert before == _files()
    assert 0o640 == Path("tasks/first.yaml").stat().st_mode & 0o777


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
