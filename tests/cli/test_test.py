"""``lmeval test``: a few examples stage by stage, and nothing stored."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Lmeval
from tests.cli.yaml_project import TASK


@pytest.fixture(autouse=True)
def _project(yaml_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(yaml_project), *sys.path])
    monkeypatch.delitem(sys.modules, "picker", raising=False)


def _stages(out: str) -> list[str]:
    lines = out.splitlines()
    return [after for line, after in pairwise(lines) if line.startswith("-----")]


def test_every_stage_of_an_example_is_shown(lmeval: Lmeval, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*.*"))
    status, out, _ = lmeval("test", "the-first", "-n", "1", "--lm-adapter=picker:Model")
    assert 0 == status, out
    assert ["Dataset row", "Solver input", "Solver output", "Scorer string_equals", "Score", "Metrics"] == _stages(out)
    assert out.startswith(
        "Checking configuration\nConfiguration is valid.\nTask first: 1 of 2 example(s), asking picker.v1"
    )
    for line in (
        "  options: '[a, b, c]'",
        "  sample_id: 0",
        "      content: Pick the first of [a, b, c].",
        "  - text: a",
        "  prediction_is_correct: true",
        "  answer_gt: a",
        "  string_equality_mean: 1.0",
    ):
        assert f"\n{line}\n" in out
    assert before == sorted(path for path in tmp_path.rglob("*.*") if "__pycache__" not in path.parts)


def test_values_of_a_config_are_used_and_missing_ones_named(lmeval: Lmeval, tmp_path: Path) -> None:
    status, out, _ = lmeval("test", "the-choice", "--lm-adapter=picker:Model")
    assert 1 == status
    assert "tasks/choice.yaml:3: missing_required config_spec: " in out
    assert "no value for which (first, last); give them with --lm-config FILE" in out
    assert out.endswith("Configuration: FAILED\n")
    (tmp_path / "config.yaml").write_text("- {name: a, which: last}\n- which: first\n")
    status, out, _ = lmeval("test", "the-choice", "--config", "config.yaml", "--lm-adapter=picker:Model")
    assert 0 == status
    assert ["Task choice@a", "Task choice@2"] == [
        line.partition(":")[0] for line in out.splitlines() if line.startswith("Task")
    ]
    assert out.count("prediction_is_correct: true") == 4


FAILING = {
    "scorer": """
  - type: python
    key: geo
    compute_scores_snippet: 'def compute_scores(sample, solver_output): return 1 / 0'
""",
    "action": """
  actions:
  - {key: drop, action: exclude_from_metrics, filter: {op: greater, expression: x, value: 1}}
""",
    "judge": """
  - {type: model_as_a_judge_classifier, correct_labels: [y], incorrect_labels: [n]}
""",
    "metric": """
    metrics:
    - type: python
      compute_metrics_snippet: 'def compute_metrics(scores): raise ValueError(3)'
""",
}


@pytest.mark.parametrize(
    ("part", "stage", "problem"),
    [
        ("scorer", "Scores", "scorer geo: compute_scores in first.yaml, snippet of line 16: ZeroDivisionError"),
        ("action", "Scores", "action drop: greater: x is text"),
        (
            "metric",
            "Metrics",
            "metric of scorer string_equals: compute_metrics in first.yaml, snippet of line 16: Value",
        ),
    ],
)
def test_the_stage_that_fails_is_named(lmeval: Lmeval, tmp_path: Path, part: str, stage: str, problem: str) -> None:
    (tmp_path / "tasks" / "first.yaml").write_text(TASK.rstrip("\n") + FAILING[part])
    status, out, _ = lmeval("test", "the-first", "-n", "1", "--lm-adapter=picker:Model")
    assert 1 == status, out
    assert f"{stage}: FAILED" in _stages(out)
    assert problem in " ".join(out.split())


def test_a_judge_that_is_missing_is_said_before_anything_is_asked(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "first.yaml").write_text(TASK.rstrip("\n") + FAILING["judge"])
    status, out, err = lmeval("test", "the-first", "-n", "1", "--lm-adapter=picker:Model")
    assert 2 == status, out
    assert "task 'first' asks a judge, and the run has no judge: name a model with --lm-judge SPEC" in err


def test_a_model_that_fails_and_a_row_that_does_not_fit_are_stages_of_the_solver(
    lmeval: Lmeval, tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text(
        "class Model:\n    def generate(self, prompts): raise ValueError('out of order')\n"
    )
    status, out, _ = lmeval("test", "the-first", "-n", "1", "--lm-adapter=bad:Model")
    assert (1, True) == (status, "Solver: FAILED" in _stages(out))
    assert "out of order" in out
    with (tmp_path / "data" / "options.jsonl").open("a") as file:
        file.write('{"first": "z"}\n')
    status, out, _ = lmeval("test", "the-first", "--lm-adapter=picker:Model")
    assert "solver: template 'Pick the first of {{ sample.options }}.': there is no 'options'" in out


def test_a_judge_is_asked_and_shown(lmeval: Lmeval, tmp_path: Path) -> None:
    judge = (
        "\n  - {type: model_as_a_judge_classifier, correct_labels: [good], incorrect_labels: [bad], user_prompt: Well}"
    )
    (tmp_path / "tasks" / "first.yaml").write_text(TASK.rstrip("\n") + judge + "\n")
    status, out, _ = lmeval("test", "the-first", "-n", "1", "--lm-adapter=picker:Model", "--lm-judge=picker:Model")
    assert 0 == status, out
    assert "    judge: picker.v1" in out
    assert "  label: good" in out


def test_other_tasks_can_be_tried_too(lmeval: Lmeval) -> None:
    status, out, _ = lmeval("test", "tasks/plain.jsonl", "--lm-adapter=picker:Model")
    assert (0, ["Dataset row", "Solver input", "Solver output", "Score", "Metrics"]) == (status, _stages(out))
    assert "  exact_match: 1.0" in out


def test_a_task_that_cannot_be_read_is_found_by_its_key(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "first.yaml").write_text(TASK + "  - {{ x }}\n")
    status, out, _ = lmeval("test", "the-first", "--lm-adapter=toy")
    assert 1 == status
    assert "tasks/first.yaml:14: bad_yaml _document: column 5: quote a template that starts a value" in out


def test_a_task_that_is_not_there_is_a_usage_error(lmeval: Lmeval) -> None:
    status, _, err = lmeval("test", "the-frist", "--lm-adapter=toy")
    assert 2 == status
    assert "unknown task 'the-frist'; did you mean 'the-first'?" in err
    assert 2 == lmeval("test", "the-first", "--lm-adapter=no-such")[0]
    assert "c.yaml: cannot be read" in lmeval("test", "the-choice", "--config=c.yaml", "--lm-adapter=toy")[2]


def test_a_task_that_two_files_have_is_refused_by_its_name(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "data/sums.jsonl").write_text('{"q": "1 + 1", "a": "2"}\n')
    for name in ("task_one.py", "task_two.py"):
        (tmp_path / "tasks" / name).write_text(
            "from pytest_lmeval.tasks import *\n"
            "class Sums(BaseTask):\n"
            "    NAME, DATASET_PATH, SUBJECTS = 'Sums', '../data/sums.jsonl', [NO_SUBJECT]\n"
            "    RESPONSE_TYPE, METRICS, SAMPLE_SPLIT = ResponseType.COMPLETION, [AccuracyCompletion], 'train'\n"
            "    def _get_instruction_text(self, item): return item['q']\n"
            "    def _get_ground_truth(self, item): return item['a']\n"
        )
    err = lmeval("test", "Sums", "--lm-adapter=toy")[2]
    assert "'Sums' is a task of tasks/task_one.py and tasks/task_two.py" in err
