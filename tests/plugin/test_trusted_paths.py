"""Which folders' YAML tasks may bring Python of their own."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TASK = """
display_name: Length
key: length
description: Whether the answer is short.
config_spec: []
definition:
  dataset: {path: rows.csv}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "say: {{ sample.said }}"}]
  scorers:
    - key: short
      type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"short": True}
      metrics: [{type: mean, field: short}]
"""


@pytest.mark.parametrize(
    ("trusted", "code"), [("", 0), ("lm_trusted_paths = tasks\n", 0), ("lm_trusted_paths = own\n", 2)]
)
@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_snippets_run_in_trusted_folders_alone(project: Project, trusted: str, code: int, processes: str) -> None:
    project.write("pytest.ini", (project.path / "pytest.ini").read_text() + trusted)
    project.write("tasks/rows.csv", "said\nx\n")
    project.write("tasks/length.yaml", TASK)
    result = project.run(processes)
    assert code == result.ret, result.stdout.str()
    if code:
        result.stdout.fnmatch_lines(["*tasks/length.yaml:*not allowed in this folder (ini lm_trusted_paths)*"])
        assert [] == project.calls()
