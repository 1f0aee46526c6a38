"""Which folders' task files may run Python."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.yaml_tasks import single_turn

TRUSTED = [
    ("", 0, "-n0"),
    ("lm_trusted_paths = tasks\n", 0, "-n0"),
    ("lm_trusted_paths = own\n", 2, "-n0"),
    ("lm_trusted_paths = own\n", 2, "-n2"),
]
SCORER = """\
- key: short
  type: python
  compute_scores_snippet: |
    def compute_scores(sample, solver_output):
        return {"short": True}
  metrics: [{type: mean, field: short}]
"""


@pytest.mark.parametrize(("trusted", "code", "processes"), TRUSTED)
def test_snippets_run_in_trusted_folders_alone(project: Project, trusted: str, code: int, processes: str) -> None:
    project.write("pytest.ini", (project.path / "pytest.ini").read_text() + trusted)
    project.write("tasks/rows.csv", "said\nx\n")
    project.write("tasks/length.yaml", single_turn("length", SCORER))
    result = project.run(processes)
    assert code == result.ret, result.stdout.str()
    if code:
        result.stdout.fnmatch_lines(["*tasks/length.yaml:*not allowed in this folder (ini lm_trusted_paths)*"])
        assert [] == project.calls()


FILE = """
from pathlib import Path
from pytest_lmeval.tasks import Task
Path("was-run").touch()

class Talk(Task):
    eval_type = "generative"

    def num_examples(self):
        return 1

    def get_example(self, index):
        return {"messages": [{"role": "user", "content": "say: x"}, {"role": "assistant", "content": "x"}]}

    def evaluate(self, conversation, response):
        return response == "x"
"""


@pytest.mark.parametrize(("trusted", "code", "processes"), TRUSTED)
def test_task_files_in_python_run_in_trusted_folders_alone(
    project: Project, trusted: str, code: int, processes: str
) -> None:
    project.write("pytest.ini", (project.path / "pytest.ini").read_text() + trusted)
    project.write("tasks/task_talk.py", FILE)
    result = project.run(processes)
    assert code == result.ret, result.stdout.str()
    assert (code == 0) == (project.path / "was-run").exists()
    if code:
        result.stdout.fnmatch_lines(
            ["*tasks/task_talk.py:*not run: *lm_trusted_paths does not name its folder; read the file, then *"]
        )
        assert [] == project.calls()


@pytest.mark.parametrize(
    ("name", "text", "runs"),
    [
        ("pytest.ini", "[pytest]\nlm_trusted_paths = own\n", False),
        ("pytest.ini", "[pytest]\nlm_trusted_paths = own\n    tasks\n", True),
        ("pytest.ini", "[pytest]\n", True),
        ("pyproject.toml", '[tool.pytest]\nlm_trusted_paths = ["own"]\n', False),
        ("pyproject.toml", '[tool.pytest.ini_options]\nlm_trusted_paths = ["tasks"]\n', True),
    ],
)
def test_commands_run_python_in_trusted_folders_alone(project: Project, name: str, text: str, runs: bool) -> None:
    (project.path / "pytest.ini").unlink()
    project.write(name, text)
    project.write("tasks/task_talk.py", FILE)
    result = project.lmeval("validate", "tasks")
    assert runs == (project.path / "was-run").exists()
    assert (0 if runs else 1) == result.ret, result.stdout.str()


def test_a_command_refuses_what_is_no_list_of_folders(project: Project) -> None:
    (project.path / "pytest.ini").unlink()
    project.write("pyproject.toml", "[tool.pytest]\nlm_trusted_paths = 3\n")
    project.write("tasks/task_talk.py", FILE)
    result = project.lmeval("validate", "tasks")
    assert 2 == result.ret
    assert "lm_trusted_paths: expected folders, got 3" in result.stderr.str()
