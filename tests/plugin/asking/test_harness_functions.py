"""Values that functions of harness tasks return under other names, or that are no numbers."""

from __future__ import annotations

import pytest

from tests.conftest import BOTH, Project
from tests.yaml_tasks import harness_yaml

KEYS = """
doc_to_text: "say: {{said}}"
doc_to_target: "{{right}}"
filter_list: [{name: first, filter: [{function: take_first}]}]
"""
ROWS = '{"said": "a", "right": "A"}\n{"said": "b", "right": "c"}\n{"said": "b", "right": "B"}\n'
LABELS = """
def normalized(references, predictions, **options):
    same = references[0].lower() == predictions[0].lower()
    return {"exact_match": float(same), "length": len(predictions[0])}
"""
RENAMED = "metric_list: [{metric: !function utils.normalized, aggregation: mean, higher_is_better: true}]\n"


def write_task(project: Project, keys: str, code: str, name: str = "t", more: str = "") -> None:
    project.write(f"given/{name}.yaml", harness_yaml(name, KEYS + keys))
    project.write("given/docs.jsonl", ROWS)
    project.write("given/utils.py", code)
    project.write(f"tasks/{name}.yaml", f"harness: {{from: ../given, tasks: [{name}]{more}}}\n")


def statuses_by_id(project: Project) -> list[str]:
    return [each["status"] for each in project.examples().values()]


@pytest.mark.parametrize("processes", BOTH)
def test_the_first_value_counts_if_a_metric_s_function_returns_other_names(project: Project, processes: str) -> None:
    write_task(project, RENAMED, LABELS)
    result = project.run(processes, "--lm-gate=examples", "--lm-include-per-example")

    assert 1 == result.ret
    assert ["passed", "failed", "passed"] == statuses_by_id(project)
    (row,) = project.board()["tasks"]
    assert (2 / 3, 2) == (row["score"], row["correct"])
    assert {"normalized,first": 2 / 3, "exact_match,first": 2 / 3, "length,first": 1.0} == row["metrics"]
    said = "no normalized,first: the function returned exact_match,first instead, which is the score"
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_returned_name_can_be_chosen_and_a_wrong_one_is_an_error(project: Project) -> None:
    write_task(project, RENAMED, LABELS, more=', metric: {t: "exact_match,first"}')
    assert 1 == project.run("--lm-include-per-example").ret
    assert ["passed", "failed", "passed"] == statuses_by_id(project)
    assert "exact_match,first" == project.board()["tasks"][0]["metric"]

    write_task(project, RENAMED, LABELS, more=", metric: {t: exact_mach}")
    assert 3 == project.run("--lm-include-per-example").ret
    (error, *_) = {each["error"] for each in project.examples().values()}
    assert "no metric 'exact_mach,first'; there are exact_match,first, length,first" == error

    write_task(project, RENAMED, LABELS, more=', metric: {t: "exact_match,fist"}')
    assert 2 == project.run().ret


def test_a_function_that_returns_other_names_for_several_targets_is_an_error(project: Project) -> None:
    write_task(project, "doc_to_target: '{{[right, said]}}'\n" + RENAMED, LABELS)
    assert 3 == project.run("--lm-include-per-example").ret
    (error,) = {each["error"] for each in project.examples().values()}
    assert error.startswith("normalized returned exact_match, length: for a document with several targets")


COUNTS = """
def counts(doc, results):
    return {"count": {"right": int(doc["right"].lower() == results[0]), "all": [1]}}

def share(items):
    return sum(each["right"] for each in items) / len(sum((each["all"] for each in items), []))

def many(items):
    return -3 * share(items)
"""
MEASURED = "process_results: !function utils.counts\nmetric_list: [{metric: count, aggregation: !function utils.FN}]\n"


@pytest.mark.parametrize("processes", BOTH)
def test_values_that_only_the_aggregation_can_use_are_measured(project: Project, processes: str) -> None:
    write_task(project, MEASURED.replace("FN", "share"), COUNTS)
    result = project.run(processes, "--lm-gate=tasks", "--lm-min-score=t=0.6", "--lm-include-per-example")

    assert 0 == result.ret
    assert ["measured"] * 3 == statuses_by_id(project)
    (row,) = project.board()["tasks"]
    assert (2 / 3, {"examples": 3, "score_metric": "count,first"}) == (row["score"], row["measured"])
    assert 1 == project.run("--lm-gate=tasks", "--lm-min-score=t=0.7").ret


def test_an_aggregate_outside_0_to_1_becomes_a_score_that_rises_with_it(project: Project) -> None:
    write_task(project, MEASURED.replace("FN", "many"), COUNTS)
    assert 0 == project.run("--lm-gate=tasks").ret
    (row,) = project.board()["tasks"]
    assert (-2.0, 0.5 - 2 / 6) == (row["metrics"]["count,first"], row["score"])


def test_a_document_whose_value_is_not_a_number_is_left_out_by_the_aggregation_that_skips_it(project: Project) -> None:
    code = "def seen(doc, results):\n    return {'hit': float('nan') if doc['said'] == 'a' else 1.0}\n"
    keys = "process_results: !function utils.seen\nmetric_list: [{metric: hit, aggregation: nanmean}]\n"
    write_task(project, keys, code)
    assert 0 == project.run("--lm-gate=tasks", "--lm-include-per-example").ret
    assert ["excluded", "passed", "passed"] == statuses_by_id(project)
    (row,) = project.board()["tasks"]
    assert (1.0, 1.0, 1) == (row["score"], row["metrics"]["hit,first"], row["excluded"])

    write_task(project, keys.replace("nanmean", "mean"), code)
    assert 3 == project.run("--lm-gate=tasks").ret
