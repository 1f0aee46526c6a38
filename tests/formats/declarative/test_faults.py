"""Everything that can be wrong with a task file says where, what, and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.declarative.making import EQUALS, ROWS, SOLVER, document, faults, read


def _task(scorers: str = "  - {type: string_equals, ground_truth: '{{ sample.a }}'}", more: str = "") -> str:
    return f"""key: small
display_name: Small
definition:
  dataset: {{path: rows.jsonl}}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
      - {{role: user, content: "{{{{ sample.q }}}}"}}
  scorers:
{scorers}
{more}"""


@pytest.mark.parametrize(
    ("scorer", "place", "fault"),
    [
        (
            "  - {type: string_equal, ground_truth: x}",
            (12, 6),
            "bad_value definition.scorers[0].type: unknown scorer type 'string_equal'; did you mean 'string_equals'?",
        ),
        (
            "  - type: string_equals\n    ground_thruth: x",
            (13, 5),
            "unknown_field definition.scorers[0].ground_thruth: unknown field 'ground_thruth'; "
            "did you mean 'ground_truth'?",
        ),
        (
            "  - type: string_equals",
            (12, 5),
            "missing_required definition.scorers[0].ground_truth: the field 'ground_truth' is required here",
        ),
        (
            "  - type: string_equals\n    ground_truth: 5",
            (13, 5),
            "bad_type definition.scorers[0].ground_truth: expected text, got a number 5; put it in quotes",
        ),
        (
            "  - type: string_equals\n    ground_truth: x\n    ignore_case: no",
            (14, 5),
            "bad_type definition.scorers[0].ignore_case: expected true or false; no is text in these files",
        ),
        (
            "  - type: f1\n    ground_truth: x\n    metrics:\n    - {type: meen, field: score}",
            (15, 8),
            "bad_value definition.scorers[0].metrics[0].type: 'meen' is not one of mean, min, max, std_dev, frequency, "
            "precision, recall, f1_score, binary_classification, binary-classification, multiclass_classification, "
            "multiclass-classification, weighted_average, python; did you mean 'mean'?",
        ),
        (
            "  - type: f1\n    ground_truth: x\n    metrics:\n    - {type: mean, field: scor}",
            (15, 20),
            "bad_value definition.scorers[0].metrics[0].field: the scorer yields no field 'scor'; did you mean "
            "'score'?",
        ),
        (
            "  - type: string_equals\n    ground_truth: '{{ smaple.a }}'",
            (13, 5),
            "bad_value definition.scorers[0].ground_truth: unknown variable 'smaple'; did you mean 'sample'?",
        ),
        (
            "  - type: string_equals\n    ground_truth: '{{ sample.aa }}'",
            (13, 5),
            "bad_value definition.scorers[0].ground_truth: the data set has no column 'aa'; did you mean 'a'?",
        ),
        (
            "  - type: string_equals\n    ground_truth: '{{ sample.a '",
            (13, 5),
            "bad_value definition.scorers[0].ground_truth: line 1 of the template: "
            "unexpected end of template, expected 'end of print statement'.",
        ),
        (
            "  - type: string_equals\n    ground_truth: '<< config.nope >>'",
            (13, 5),
            "bad_value definition.scorers[0].ground_truth: unknown parameter 'nope'; config_spec has none",
        ),
        (
            "  - {type: f1, ground_truth: x, post_process: lowr}",
            (12, 33),
            "bad_value definition.scorers[0].post_process: 'lowr' is not one of extract_answer, extract_code_block, "
            "extract_first_line, extract_letter, lower, none, strip_whitespace; did you mean 'lower'?",
        ),
        (
            "  - {type: python, compute_scores_snippet: 'def compute_score(sample): pass'}",
            (12, 20),
            "bad_value definition.scorers[0].compute_scores_snippet: small.yaml, snippet of line 12: no function "
            "compute_scores(...); it has compute_score; did you mean 'compute_score'?",
        ),
    ],
)
def test_a_fault_of_a_scorer_names_its_place_and_what_would_do(
    tmp_path: Path, scorer: str, place: tuple[int, int], fault: str
) -> None:
    (error,) = read(tmp_path, _task(scorer)).errors
    column, _, detail = error.detail.partition(": ")
    found = f"{error.rule} {error.field}: {detail}".partition(" (choices")[0]
    assert (place, fault) == ((error.line_number, int(column.removeprefix("column "))), found)


def _with(**changes: Any) -> dict[str, Any]:
    return document(**changes)


@pytest.mark.parametrize(
    ("task", "fault"),
    [
        (document(solver=None), "missing_required definition.solver: the field 'solver' is required; set eval"),
        (document([]), "bad_value definition.scorers: List should have at least 1 item"),
        (document([EQUALS, EQUALS]), "bad_value definition.scorers[1].key: duplicate scorer 'string_equals'; give"),
        (document(dataset={}), "missing_required definition.dataset: expected key or path"),
        (
            document(dataset={"path": "rows.txt"}),
            "bad_value definition.dataset.path: rows.txt: expected a file that en",
        ),
        (document(dataset={"path": "none.csv"}), "bad_value definition.dataset.path: none.csv: cannot be read: No su"),
        (document(dataset={"path": "/etc/x.csv"}), "bad_value definition.dataset.path: /etc/x.csv: outside of the"),
        (
            document(dataset={"key": "rows"}),
            "bad_value definition.dataset.key: no data set has the key 'rows'; there i",
        ),
        (
            document(dataset={"path": "rows.jsonl", "id_column": "idd"}),
            "bad_value definition.dataset.path: rows.jsonl: no column 'idd'; it has q, a, n, human",
        ),
        (document(solver={**SOLVER, "type": "chain_solver"}), "bad_value definition.solver.type: 'chain_solver'"),
        (
            document(solver={**SOLVER, "input_builder": {"type": "chat", "input_messages": []}}),
            "bad_value definition.solver.input_builder.type: 'chat' is not one of chat_completion, generic",
        ),
        (document(root={"display_name": 3}), "bad_type display_name: expected text, got a number 3; put it in quotes"),
        (document(root={"key": "a b"}), "bad_value key: String should match pattern"),
        (document(root={"tags": "x"}), "bad_type tags: expected a list, got a string 'x'"),
        (
            document([{**EQUALS, "prediction": "x"}], root={"evaluated_entity_type": "dataset"}),
            "bad_value definition.solver: a task that evaluates a data set",
        ),
        (
            document(root={"evaluated_entity_type": "dataset"}, solver=None),
            "missing_required definition.scorers[0].prediction: there is no model's answer here; set prediction: '{{",
        ),
        (
            document([{"type": "labeler_via_model", "user_prompt": "x"}]),
            "missing_required definition.scorers[0].labels: the field 'labels' is required",
        ),
        (
            document([{"type": "model_as_a_judge_scorer", "score_min": 2}]),
            "bad_value definition.scorers[0].score_max: expected more than score_min, 2",
        ),
        (
            document([{"type": "model_as_a_judge_classifier", "correct_labels": ["a"], "incorrect_labels": ["a"]}]),
            "bad_value definition.scorers[0].incorrect_labels: the label 'a' is listed twice",
        ),
        (
            document([{"type": "string_equals_mcqa", "ground_truth_choice_field": "letter"}]),
            "bad_value definition.scorers[0].ground_truth_choice_field: the data set has no column 'letter'",
        ),
        (
            document([{"type": "string_equals_mcqa"}]),
            "missing_required definition.scorers[0].ground_truth: expected ground_truth or ground_truth_choice_field",
        ),
        (
            document([{**EQUALS, "metrics": [{"type": "precision", "num_true_positives_field": "answer_gt"}]}]),
            "missing_required definition.scorers[0].metrics[0].num_true_positives_field: expected num_true_positives_f",
        ),
        (
            document([{**EQUALS, "score_field": "prediction_is_corect"}]),
            "bad_value definition.scorers[0].score_field: the scorer yields no field 'prediction_is_corect'; did you m",
        ),
        (
            document([{"type": "python", "compute_scores_snippet": "def compute_scores(a, b, c, d): pass"}]),
            "bad_value definition.scorers[0].compute_scores_snippet: small.yaml, snippet of line 23: compute_scores ta",
        ),
        (
            document([{"type": "python", "compute_scores_snippet": "def compute_scores("}]),
            "bad_value definition.scorers[0].compute_scores_snippet: small.yaml, snippet of line 23:1: not Python",
        ),
    ],
)
def test_a_fault_of_a_part_names_its_field(tmp_path: Path, task: dict[str, Any], fault: str) -> None:
    found = faults(tmp_path, task)
    assert 1 == len(found), found
    assert found[0].startswith(fault), found


@pytest.mark.parametrize(
    ("filter", "fault"),
    [
        ({"op": "equals", "expression": "{{ scores.string_equal.x }}", "value": 1}, "no scorer 'string_equal' before"),
        ({"op": "equals", "expression": "{{ scores.string_equals.x }}", "value": 1}, "has no field 'x'; there is pre"),
        ({"op": "equals", "expression": "{{ labels }}", "value": 1}, "unknown variable 'labels'; there is sample, sco"),
        ({"op": "equal", "expression": "x", "value": 1}, "'equal' is not one of equals, not_equals, in, contains"),
        ({"op": "equals", "expression": "x"}, "the field 'value' is required here"),
        ({"op": "and", "filters": []}, "should have at least 1 item"),
        ({"expression": "x", "value": 1}, "the field 'op' is required"),
    ],
)
def test_a_filter_that_cannot_be_decided_is_a_fault(tmp_path: Path, filter: dict[str, Any], fault: str) -> None:
    action = {"key": "x", "action": "exclude_from_metrics", "filter": filter}
    (found,) = faults(tmp_path, document(actions=[action]))
    assert "definition.actions[0].filter" in found
    assert fault in found


def test_all_faults_of_a_file_are_told_in_its_order(tmp_path: Path) -> None:
    text = _task(
        "  - {type: f1, ground_truth: '{{ sample.x }}'}\n  - {type: f1, ground_truth: x}", "tags: [1]\nkeey: 2"
    )
    found = read(tmp_path, text).errors
    assert ["unknown_field keey"] == [f"{error.rule} {error.field}" for error in found]
    found = read(tmp_path, text.replace("keey: 2", "").replace("[1]", "[a]")).errors
    assert [(12, "definition.scorers[0].ground_truth"), (13, "definition.scorers[1].key")] == [
        (error.line_number, error.field) for error in found
    ]


def test_bad_rows_are_told_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"q": "a"}\nnot json\n[1]\n{"q": NaN}\n')
    found = faults(tmp_path, document(dataset={"path": "bad.jsonl"}))
    assert ["bad.jsonl:2:", "bad.jsonl:3:", "bad.jsonl:4:"] == [fault.split()[2] for fault in found]


def test_two_rows_of_one_id_are_a_fault(tmp_path: Path) -> None:
    task = document(dataset={"path": "rows.jsonl", "id_column": "human"})
    assert [] == faults(tmp_path, task)
    loaded = read(tmp_path, task, [*ROWS, ROWS[0]])
    assert [("duplicate_task_id", "definition.dataset")] == [(error.rule, error.field) for error in loaded.errors]
    assert "rows.jsonl: two rows have the id 'good'" in loaded.errors[0].detail
    for id in (None, " ", True, 1.5):
        detail = read(tmp_path, task, [{**ROWS[0], "human": id}]).errors[0].detail
        assert f"rows.jsonl: the id {id!r} is blank, or neither text nor a whole number" in detail


@pytest.mark.parametrize(("seconds", "refused"), [(0.001, 0), (3600, 0), (0, 1), (3600.5, 1)])
def test_a_snippet_may_take_up_to_an_hour(tmp_path: Path, seconds: float, refused: int) -> None:
    source = "def postprocess(sample, solver_output): return solver_output"
    snippet = {"type": "python", "postprocess_snippet": source, "timeout_s": seconds}
    found = faults(tmp_path, document(solver={**SOLVER, "postprocessor": snippet}))
    assert refused == len([fault for fault in found if "postprocessor.timeout_s" in fault]) == len(found)


@pytest.mark.parametrize("size", [50, "<< config.size >>", None])
def test_what_exported_files_say_besides_is_read(tmp_path: Path, size: int | str | None) -> None:
    dataset = {"path": "rows.jsonl", "fast_subset_size": size}
    spec = {"config_spec": [{"type": "int", "key": "size", "default": 50}]}
    task = document(type="declarative_task", dataset=dataset, root=spec)
    assert [] == faults(tmp_path, task)
    assert [len(ROWS)] == [len(task.examples) for task in read(tmp_path, task).tasks]
    task["definition"]["type"] = "declarative"
    (fault,) = faults(tmp_path, task)
    assert "definition.type" in fault
    assert "'declarative_task'" in fault


def test_untrusted_folders_have_no_snippets(tmp_path: Path) -> None:
    snippet = {"type": "python", "compute_scores_snippet": "def compute_scores(sample): return {'a': 1}"}
    for task in (
        document([snippet]),
        # By another name it is still a snippet.
        document([{**EQUALS, "metrics": [{"type": "python", "compute_metrics_snippet": "def compute_metrics(s): 1"}]}]),
        document(
            solver={**SOLVER, "postprocessor": {"type": "python", "postprocess_snippet": "def postprocess(a, b): 1"}}
        ),
    ):
        (error,) = read(tmp_path, task, trusted=()).errors
        assert "Python snippets are not allowed in this folder (ini lm_trusted_paths)" in error.detail
