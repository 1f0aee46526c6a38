"""Tasks that only their aggregations score: no example passes by accident, and every report says so."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval import load_tasks, run_leaderboard
from tests.schemas import faults

if TYPE_CHECKING:
    from tests.conftest import Project

# Says the opposite of what is right, unless it is told what to say.
MODEL = """
class Model:
    name = "wrong.v1"

    def generate(self, prompts):
        with open("calls.txt", "a") as file:
            file.write("".join(f"{prompt}\\n" for prompt in prompts))
        return ["yes" if prompt.endswith("no") else "no" for prompt in prompts]
"""
SCORE_SAMPLE = """\
def compute_scores(sample, model_input, model_output):
    said = model_output['choices'][0]['message']['content']
    return {"gt": sample["truth"] == "yes", "pred": said == "yes"}
"""
TASK = """\
key: {key}
display_name: Yes or no
definition:
  dataset: {{path: rows.csv}}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
      - role: user
        content: "say: {{{{ sample.truth }}}}"
  scorers:
"""
BINARY = """\
  - key: "my_binary_classification_scorer"
    type: "python"
    compute_scores_snippet: !include score_sample.py  # Produces scores contain 'gt' and 'pred'.
    metrics:
    - type: "python"
      compute_metrics_snippet: !include compute_metrics.py
"""
CLASSIFIED = """\
  - type: python
    compute_scores_snippet: !include score_sample.py
    metrics:
    - {type: binary_classification, field_gt: gt, field_pred: pred, positive_answer: true, negative_answer: false}
"""
EQUALS = """\
  - type: string_equals
    ground_truth: "{{ sample.truth }}"
    threshold: 0
"""


@pytest.fixture
def tasks(project: Project) -> Project:
    """Provide a project with four rows, a model that is always wrong, and the snippets."""
    project.write("model.py", MODEL)
    project.write("tasks/rows.csv", "truth\nyes\nno\nyes\nno\n")
    project.copy("measured_tasks", "tasks/compute_metrics.py")
    project.write("tasks/score_sample.py", SCORE_SAMPLE)
    return project


def _write_task(project: Project, scorers: str, name: str = "binary") -> None:
    project.write(f"tasks/{name}.yaml", TASK.format(key=name) + scorers)


def _rows(project: Project) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for row in project.board()["tasks"]}


@pytest.mark.parametrize(("scorers", "processes"), [(BINARY, "-n2"), (CLASSIFIED, "-n0")])
def test_a_ground_truth_is_never_the_score(tasks: Project, scorers: str, processes: str) -> None:
    _write_task(tasks, scorers)
    _write_task(tasks, EQUALS, "equal")
    result = tasks.run("tasks", "--junitxml=junit.xml", processes, "--lm-include-per-example")
    assert 0 == result.ret
    board, rows = tasks.board(), _rows(tasks)
    row = rows["binary"]
    assert (None, None, None, 0, 4) == (row["score"], row["ci95"], row["threshold"], row["correct"], row["total"])
    assert {"examples": 4, "score_metric": None} == row["measured"]
    assert {"precision": 0.0, "recall": 0.0} == {name: row["metrics"][name] for name in ("precision", "recall")}
    # The other task alone makes the overall score.
    assert (True, 0.0, 8, 4) == (board["complete"], board["overall_score"], board["counts"]["scored"], 4)
    assert {"measured"} == {record["status"] for record in row["per_example"]}
    assert {None} == {record["score"] for record in row["per_example"]}
    told = "binary: 4 example(s) are measured by aggregations only: no threshold applies to them"
    for text in (
        result.stdout.str(),
        (tasks.path / "reports/leaderboard.md").read_text("utf-8"),
        (tasks.path / "reports/report.html").read_text("utf-8"),
        "\n".join(board["gate"]["warnings"]),
    ):
        assert told in text
    case = next(case for case in ET.parse(tasks.path / "junit.xml").iter("testcase") if "binary" in str(case.attrib))
    properties = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
    assert ("measured", "", "") == tuple(properties[name] for name in ("lm_status", "lm_score", "lm_threshold"))


def test_score_metric_names_the_score_of_the_task_which_floors_are_for(tasks: Project) -> None:
    _write_task(tasks, BINARY + "    score_metric: recall\n")
    result = tasks.run("tasks", "--lm-min-score=binary=0.1")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*binary: 0.0000 is below its floor 0.1", "*its score is the metric 'recall'*"])
    assert (0.0, 0.0) == (_rows(tasks)["binary"]["score"], tasks.board()["overall_score"])
    # The file of the run says the same, without the task.
    assert 0 == tasks.lmeval("report", "reports/ledger.jsonl", "-o", "again.html").ret
    assert '"score":0.0,"stderr":null' in (tasks.path / "again.html").read_text("utf-8").replace(": ", ":")


def test_a_score_metric_that_is_no_score_makes_the_run_incomplete(tasks: Project) -> None:
    _write_task(tasks, BINARY + "    score_metric: accuracy\n")
    result = tasks.run("tasks")
    assert (3, None) == (result.ret, tasks.board()["overall_score"])
    result.stdout.fnmatch_lines(
        ["*score_metric 'accuracy': the scorer 'my_binary_classification_scorer' has no such metric; there is prec*"]
    )


def test_a_floor_for_a_task_that_has_no_score_is_a_usage_error(tasks: Project) -> None:
    refused = "*task 'binary' has no score, so it cannot have a floor: no field is the score of its examples*"
    _write_task(tasks, BINARY)
    result = tasks.run("tasks", "--lm-min-score=binary=0.5")
    assert 4 == result.ret
    result.stdout.fnmatch_lines([refused])
    # A labeler is known to have none before any model is asked.
    labeler = (
        "  - {type: labeler_via_model, labels: [a], user_prompt: '?', metrics: [{type: frequency, field: label}]}\n"
    )
    _write_task(tasks, labeler)
    tasks.write("calls.txt", "")
    tasks.write("pytest.ini", "[pytest]\nlm_min_scores = binary=0.5\n")
    result = tasks.run("tasks", "--lm-judge=toy")
    assert (4, "") == (result.ret, (tasks.path / "calls.txt").read_text())
    result.stderr.fnmatch_lines([refused])


def test_rows_that_are_scored_in_different_ways_make_the_run_incomplete(tasks: Project) -> None:
    source = "def compute_scores(sample, solver_output): return {'n': 1 if sample.truth == 'yes' else 5}\n"
    tasks.write("tasks/score_sample.py", source)
    _write_task(
        tasks,
        BINARY.replace(
            'type: "python"\n      compute_metrics_snippet: !include compute_metrics.py', "{type: max, field: n}"
        ),
    )
    result = tasks.run("tasks")
    assert (3, None) == (result.ret, tasks.board()["overall_score"])
    result.stdout.fnmatch_lines(["*2 example(s) are measured and 2 have a score: *; set score_field*"])


def test_measured_examples_are_not_asked_again_by_a_resumed_run(tasks: Project) -> None:
    _write_task(tasks, BINARY)
    tasks.run("tasks", "-p", "no:randomly", "--lm-batch-size=1", "--lm-repeats=2")
    whole = tasks.board()
    lines = (tasks.path / "reports/ledger.jsonl").read_text().splitlines(keepends=True)
    (tasks.path / "reports/ledger.jsonl").write_text("".join(lines[:3]))
    tasks.write("calls.txt", "")
    result = tasks.run("tasks", "--lm-resume", "--lm-batch-size=1", "--lm-repeats=2")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["resumed: reused 2 answer(s) of the ledger"])
    assert (4, whole["digest"]) == (
        len((tasks.path / "calls.txt").read_text().split("\n")) - 1,
        tasks.board()["digest"],
    )
    assert whole["tasks"][0]["metrics"] == tasks.board()["tasks"][0]["metrics"]


@pytest.mark.again
def test_a_baseline_gate_says_that_nothing_measured_was_compared(tasks: Project) -> None:
    _write_task(tasks, BINARY)
    _write_task(tasks, EQUALS, "equal")
    baseline = "--lm-baseline=baseline.json"
    assert 0 == tasks.run("tasks", baseline, "--lm-update-baseline").ret
    result = tasks.run("tasks", baseline)
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["*binary: 4 example(s) are measured by aggregations only: *no baseline is compared*"])
    comparison = tasks.board()["gate"]["comparison"]
    assert (4, 4) == (comparison["paired"], comparison["expected"])
    (tasks.path / "tasks/equal.yaml").unlink()
    assert 0 == tasks.run("tasks", baseline, "--lm-update-baseline").ret
    # Of nothing but measured tasks a comparison finds nothing at all: that is no pass.
    result = tasks.run("tasks", baseline)
    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        ["*nothing could be compared: 4 examples are measured by aggregations only*set floors*"]
    )
    result.stdout.no_fnmatch_line("*to update it*")


@pytest.mark.again
def test_shards_of_a_task_whose_score_is_a_metric_have_it_when_merged_where_the_task_is_the_same(
    tasks: Project,
) -> None:
    _write_task(tasks, BINARY)
    for shard in ("1", "2"):
        assert 0 == tasks.run("tasks", f"--lm-shard={shard}/2", f"--lm-report-dir=s{shard}").ret
    merged = tasks.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "m")
    assert (0, 4, True) == (merged.ret, tasks.board("m")["counts"]["measured"], tasks.board("m")["complete"])
    merged.stdout.fnmatch_lines(["*binary: 4 example(s) are measured by aggregations only*"])
    floor = tasks.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "f", "--min-score=binary=0")
    assert 2 == floor.ret
    _write_task(tasks, BINARY + "    score_metric: recall\n")
    for shard in ("1", "2"):
        assert 0 == tasks.run("tasks", f"--lm-shard={shard}/2", f"--lm-report-dir=s{shard}").ret
    merged = tasks.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "m")
    (row,) = tasks.board("m")["tasks"]
    assert (0, row["metrics"]["recall"]) == (merged.ret, tasks.board("m")["overall_score"])
    _write_task(tasks, BINARY)
    merged = tasks.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "m")
    assert (3, None) == (merged.ret, tasks.board("m")["overall_score"])
    merged.stdout.fnmatch_lines(
        [
            "*binary: no score: its metric 'recall' was not computed*",
            "its own metrics were not computed: binary: tasks/binary.yaml: differs from the file that the shards ran*",
        ]
    )


def test_the_library_and_the_dry_run_measure_as_a_run_does(tasks: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_task(tasks, BINARY + "    score_metric: precision\n")
    monkeypatch.chdir(tasks.path)

    class Model:
        name = "right.v1"

        def generate(self, prompts: list[str]) -> list[str]:
            return [prompt.rpartition("say: ")[2] for prompt in prompts]

    (task,) = load_tasks(tasks.path / "tasks/binary.yaml")
    board = run_leaderboard([task], Model())
    assert (1.0, 1.0, True) == (board.overall_score, board.tasks[0].score, board.complete)
    shown = tasks.lmeval("test", "binary", "--lm-adapter=model:Model", "-n2")
    assert 0 == shown.ret
    shown.stdout.fnmatch_lines(["*status: measured", "*score: null", "Metrics", "*score: 0.0"])
    assert "threshold" not in shown.stdout.str()
    # The metric of the examples has no value, and is not shown without one.
    assert {"  score: null"} == {line for line in shown.stdout.lines if line.endswith("null")}


def test_a_filter_with_a_value_of_the_wrong_type_stops_the_run(tasks: Project) -> None:
    filter = "{op: in, expression: '{{ sample.truth }}', value: yes-and-no}"
    rule = f"  actions:\n  - {{key: rule, action: exclude_from_metrics, filter: {filter}}}\n"
    _write_task(tasks, EQUALS + rule)
    result = tasks.run("tasks")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(
        [
            "*tasks/binary.yaml:*: bad_type definition.actions[[]0].filter.value: *expected a list of at least one "
            "value, all texts, all numbers or all booleans, for 'in', got a string 'yes-and-no'"
        ]
    )


def test_the_board_says_how_many_rows_each_action_left_out(tasks: Project) -> None:
    filter = "{{op: in, expression: '{{{{ sample.truth }}}}', value: [{}]}}"
    rules = "".join(
        f"  - {{key: {key}, action: exclude_from_metrics, filter: {filter.format(value)}}}\n"
        for key, value in (("noes", "no"), ("maybes", "maybe"))
    )
    _write_task(tasks, f"{EQUALS}  actions:\n{rules}")
    result = tasks.run("tasks")
    assert {"noes": 2, "maybes": 0} == _rows(tasks)["binary"]["notes"]["actions"]
    result.stdout.fnmatch_lines(["binary: excluded by action noes: 2 row(s), maybes: 0 row(s)"])


def test_every_report_says_what_aggregations_left_out(tasks: Project) -> None:
    weighted = "{type: weighted_average, field: answer_gt, weights: {yes: 1}}"
    _write_task(tasks, f"{EQUALS}    metrics:\n    - {weighted}\n")
    result = tasks.run("tasks")
    assert {"no": 2} == next(iter(_rows(tasks)["binary"]["notes"]["without_weight"].values()))
    wanted = "binary: left out of string_equals.answer_gt_weighted_average, labels without a weight: no: 2 row(s)"
    assert wanted in result.stdout.str()
    assert wanted.replace("_", "\\_") in (tasks.path / "reports/leaderboard.md").read_text("utf-8")


def test_the_ledger_of_a_measured_run_fits_its_schema(tasks: Project) -> None:
    _write_task(tasks, BINARY)
    assert 0 == tasks.run("tasks", "--lm-include-per-example").ret
    ledger = [json.loads(line) for line in (tasks.path / "reports/ledger.jsonl").read_text().splitlines()]
    assert [] == faults("ledger", *ledger)
    assert [] == faults("leaderboard", tasks.board())
