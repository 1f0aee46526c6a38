"""Declarative tasks as pytest items: collected, asked, scored, left out and put together like every other task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

MODEL = """
import re

class Model:
    name = "picker.v1"

    def generate(self, prompts):
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        if "Your reply cannot be read" in prompt:
            return "english"
        if prompt.startswith("Which language"):
            return "non-english" if "oui" in prompt else "english" if "x" not in prompt else "I would say english."
        options = re.search(r"choices are \\[(.*)\\]", prompt)[1].split(", ")
        return options[-1] if "Choose the last" in prompt else options[0]
"""
# Where it says {blank} a line ends in one, as people's files do.
HEAD = """\
display_name: "Follows simple instructions"
key: "simple-instructions"
description: "Whether a model does as it is told."
"""
FIRST = (
    HEAD
    + """\
config_spec: []
tags: [quick]
definition:
  dataset:
    key: "options"
  solver:
    type: "single_turn_solver"
    input_builder:
      type: "chat_completion"
      input_messages:
        - role: "user"
          content: >
            Asked for the first of [A, B, C], say: A.
{blank}
            The choices are {{ sample.options }}.{blank}
            Choose the first one, and say nothing else.
  scorers:
    - type: "string_equals"
      ground_truth: "{{ sample.first }}"
"""
).replace("{blank}", " ")
CHOICE = (
    HEAD
    + """\
config_spec:
  - display_name: "Which option"
    key: "which"
    type: "categorical"
    description: >
      Which of the options is the
      right one.
    allowed_values: ["first", "last"]
definition:
  dataset:
    key: "options"
  solver:
    type: "single_turn_solver"
    input_builder:
      type: "chat_completion"
      input_messages:
        - role: "user"
          content: >
            The choices are {{ sample.options }}.{blank}
            Choose the << config.which >> one.
  scorers:
    - type: "string_equals"
      ground_truth: >
        {{ sample.first if "<< config.which >>" == "first" else sample.last }}
"""
).replace("{blank}", " ")
PYTHON = """\
    - type: python
      key: length
      purpose: qa
      compute_scores_snippet: !include length.py
      metrics:
      - {type: max, field: length}
      - type: python
        compute_metrics_snippet: |
          def compute_scores(scores):
              return {"total length": sum(each["length"] for each in scores)}
"""
LABELER = """\
    - type: labeler_via_model
      key: language
      purpose: qa
      labels: [english, non-english]
      human_label: "{{ sample.human }}"
      user_prompt: "Which language is {{ input_prompt }}?"
  actions:
  - key: foreign
    action: exclude_from_metrics
    filter: {op: equals, expression: "{{ scores.language.label }}", value: non-english}
"""
ROWS: list[dict[str, Any]] = [
    {"options": "[a, b, c]", "first": "a", "last": "c", "human": "english"},
    {"options": "[oui, non]", "first": "oui", "last": "non", "human": "non-english"},
    {"options": "[x, y]", "first": "y", "last": "y", "human": "non-english"},
]


@pytest.fixture
def tasks(project: Project) -> Project:
    """Provide a project whose data set lies among its tasks."""
    project.write("model.py", MODEL)
    project.write("tasks/options.yaml", "key: options\ndisplay_name: Options\nfile_path: rows.jsonl\n")
    project.write("tasks/rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    project.write(
        "tasks/length.py", "def compute_scores(sample, solver_output):\n    return {'length': len(sample.options)}\n"
    )
    return project


def test_a_task_is_items_a_row_and_its_own_metrics(tasks: Project) -> None:
    tasks.write("tasks/first.yaml", FIRST + PYTHON)
    result = tasks.run("tasks", "-k", "quick", "--lm-include-per-example", "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*tasks/first.yaml::0 PASSED*", "*tasks/first.yaml::2 FAILED*"])
    (row,) = tasks.board()["tasks"]
    assert ("first", "string_equals", 3, 2) == (row["task"], row["metric"], row["total"], row["correct"])
    expected = {"string_equality_mean": 2 / 3, "length_max": 10.0, "total length": 25.0}
    assert pytest.approx(expected) == {name: row["metrics"][name] for name in expected}
    wrong = tasks.examples()["first:2"]
    assert ("x", ["y"], 0.0) == (wrong["prediction"], wrong["targets"], wrong["score"])
    assert {"length": 6} == wrong["details"]["scorers"]["length"]
    assert wrong["prompt"].startswith("Asked for the first of [A, B, C], say: A.\nThe choices are [x, y].")


def test_a_task_runs_under_every_config(tasks: Project) -> None:
    tasks.write("tasks/choice.yaml", CHOICE)
    tasks.write("config.yaml", "- {name: first, which: first}\n- {name: last, which: last}\n")
    result = tasks.run("tasks", "--lm-config=config.yaml", "-n2")
    result.assert_outcomes(passed=5, failed=1)
    rows = {row["task"]: row for row in tasks.board()["tasks"]}
    assert {"choice@first": 2 / 3, "choice@last": 1.0} == {name: row["score"] for name, row in rows.items()}
    assert 1.0 == rows["choice@last"]["metrics"]["string_equality_mean"]


def test_judged_rows_are_left_out_counted_and_compared_with_people(tasks: Project) -> None:
    tasks.write("tasks/first.yaml", FIRST + LABELER)
    result = tasks.run("tasks/first.yaml", "--lm-judge=model:Model", "--lm-gate=none", "--lm-include-per-example")
    assert 0 == result.ret
    board = tasks.board()
    (row,) = board["tasks"]
    assert (1, 2, 0.5) == (row["excluded"], board["counts"]["scored"], row["score"])
    excluded = tasks.examples()["first:1"]
    assert ("excluded", "action foreign: excluded from metrics") == (excluded["status"], excluded["error"])
    assert {"label": "non-english", "human_label": "non-english"} == excluded["details"]["scorers"]["language"]
    note = row["notes"]["judges"]["language"]
    assert ("picker.v1", 3, 1, 0, 2 / 3) == tuple(
        note[key] for key in ("judge", "rows", "repaired", "unparsed", "agreement")
    )
