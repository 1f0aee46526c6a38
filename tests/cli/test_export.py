"""``lmeval export``: one file that holds everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_lmeval.formats.yaml.document import Includer
from pytest_lmeval.formats.yaml.parse import parse_yaml
from tests.cli.conftest import Lmeval
from tests.cli.yaml_project import TASK

SNIPPETS = {
    "s.py": "def compute_scores(sample, solver_output):\n\n    return {'a': '# not a comment: {{ x }}'}\n",
    "odd.py": "  x = 1",
    "empty.py": "",
    "tail.py": "x = 1\n\n",
    "win.py": "x = 1\r\ny = 'ü'\r\n",
}
SCORERS = """\
  - type: python
    key: a
    compute_scores_snippet: !include s.py
  - compute_scores_snippet: !include 'odd.py'
    type: python
  - {type: python, key: c, compute_scores_snippet: !include tail.py}
  -   type: python
      compute_scores_snippet: !include "win.py"
"""


@pytest.fixture(autouse=True)
def _project(yaml_project: Path) -> None:
    for name, text in SNIPPETS.items():
        (yaml_project / "tasks" / name).write_bytes(text.encode())


def test_a_task_without_includes_is_its_file(lmeval: Lmeval) -> None:
    assert (0, TASK, "") == lmeval("export", "the-first")
    assert (0, "wrote out/x.yaml\n", "") == lmeval("export", "the-first", "-o", "out/x.yaml")
    assert TASK == Path("out/x.yaml").read_text()


def test_what_is_included_is_written_out(lmeval: Lmeval) -> None:
    path = Path("tasks/first.yaml")
    path.write_text(TASK + SCORERS + "tags: [a]  # !include nothing\n")
    status, out, _ = lmeval("export", "the-first")
    assert 0 == status
    assert parse_yaml(path.read_bytes(), Includer(path)) == parse_yaml(out.encode())
    assert "    compute_scores_snippet: |\n      def compute_scores(sample, solver_output):\n\n          return" in out
    assert "# !include nothing" in out


def test_long_runs_of_blanks_are_read_in_one_pass(lmeval: Lmeval) -> None:
    # Where each blank was tried as the end of the indentation, this took minutes.
    Path("tasks/first.yaml").write_text(f"{TASK}{' ' * 50_000}\n")
    status, out, _ = lmeval("export", "the-first")
    assert (0, True) == (status, out.startswith(TASK))


def test_another_kind_of_task_is_a_usage_error(lmeval: Lmeval) -> None:
    status, _, err = lmeval("export", "plain")
    assert (2, True) == (status, "tasks/plain.jsonl: not a declarative task" in err)
    assert "unknown task 'nope'" in lmeval("export", "nope")[2]


def test_a_file_that_is_not_this_task_s_is_replaced_only_by_force(lmeval: Lmeval) -> None:
    Path("x.yaml").write_text("a: 1\n")
    status, out, err = lmeval("export", "the-first", "-o", "x.yaml")
    assert (2, "") == (status, out)
    assert "x.yaml: another task's file has this name; choose another name, or replace the file with --force" in err
    assert "a: 1\n" == Path("x.yaml").read_text()
    assert (0, "wrote x.yaml\n") == lmeval("export", "the-first", "-o", "x.yaml", "--force")[:2]
    assert (0, "wrote x.yaml\n", "") == lmeval("export", "the-first", "-o", "x.yaml")


def test_a_file_that_pytest_would_execute_is_never_written(lmeval: Lmeval) -> None:
    status, _, err = lmeval("export", "the-first", "-o", "conftest.py", "--force")
    assert (2, True, False) == (
        status,
        "-o conftest.py: a task is a file that ends in .yaml" in err,
        Path("conftest.py").exists(),
    )
