"""Task files in YAML over a file of rows, for tests that are about something else than their keys."""

from __future__ import annotations

from textwrap import indent

__all__ = ["JUDGED", "POLITE", "VERDICT", "harness_yaml", "single_turn"]

_TASK = """\
key: KEY
display_name: KEY
MOREdefinition:
  dataset: {path: rows.csv}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "MESSAGE"}]}
  scorers:
"""
VERDICT = """\
- key: verdict
  type: model_as_a_judge_classifier
  correct_labels: ["yes"]
  incorrect_labels: ["no"]
  user_prompt: "Judge: {{ solver_output.output.choices[0].message.content }}"
"""


def single_turn(key: str, scorers: str, message: str = "say: {{ sample.said }}", more: str = "") -> str:
    """Return the YAML of a task: ``scorers`` is its list of scorers, ``more`` further lines of the task."""
    head = _TASK.replace("KEY", key).replace("MORE", more).replace("MESSAGE", message)
    return head + indent(scorers, "  ")


def harness_yaml(name: str, keys: str) -> str:
    """Return the YAML of a task of lm-evaluation-harness over ``docs.jsonl``: ``keys`` are its further lines."""
    data = "dataset_path: json\ndataset_kwargs: {data_files: {test: docs.jsonl}}\ntest_split: test\n"
    return f"task: {name}\n{data}{keys}"


JUDGED = single_turn(
    "judged", '- {type: model_as_a_judge_classifier, correct_labels: ["yes"], incorrect_labels: ["no"]}\n'
)
POLITE = single_turn("polite", VERDICT)
