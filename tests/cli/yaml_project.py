"""A project with two declarative tasks over one data set, and a model that answers them."""

from __future__ import annotations

import json
from pathlib import Path

TASK = """\
display_name: First
key: the-first
definition:
  dataset: {key: options}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
      - {role: user, content: "Pick the first of {{ sample.options }}."}
  scorers:
  - type: string_equals
    ground_truth: "{{ sample.first }}"
"""
CHOICE = """\
display_name: Choice
key: the-choice
config_spec:
- {type: categorical, key: which, allowed_values: [first, last]}
definition:
  dataset: {key: options}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
      - {role: user, content: "Pick the << config.which >> of {{ sample.options }}."}
  scorers:
  - type: string_equals
    ground_truth: "{{ sample.<< config.which >> }}"
"""
ROWS = [{"options": "[a, b, c]", "first": "a", "last": "c"}, {"options": "[x, y]", "first": "x", "last": "y"}]
MODEL = """
import re

class Model:
    name = "picker.v1"

    def generate(self, prompts):
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        options = re.search(r"\\[(.*)\\]", prompt)
        if options is None:
            return "good"
        options = options[1].split(", ")
        return options[0] if "first" in prompt else options[-1]
"""


def write_project(folder: Path) -> None:
    """Write the tasks, the data and the model."""
    (folder / "tasks").mkdir(exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "tasks" / "first.yaml").write_text(TASK)
    (folder / "tasks" / "choice.yaml").write_text(CHOICE)
    (folder / "tasks" / "options.yaml").write_text("key: options\ndisplay_name: O\nfile_path: ../data/options.jsonl\n")
    (folder / "data" / "options.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    plain = {"id": "p", "prompt": "Pick the first of [q, r].", "targets": ["q"], "metric": "exact_match"}
    (folder / "tasks" / "plain.jsonl").write_text(json.dumps(plain))
    (folder / "picker.py").write_text(MODEL)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings =\n    error\n    ignore:.*pytest_jsonreport.*\n")
