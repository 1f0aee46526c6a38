"""Whatever an adapter or a metric does with its time, a run gets on: only the examples concerned have no score."""

from __future__ import annotations

import json

import pytest

from tests import needs
from tests.conftest import Project

LIMIT = "from pytest_lmeval.metrics.parts import worker\nworker.shared_worker()._cpu_limit_s = 0.5\n"


@pytest.fixture
def model(project: Project) -> Project:
    project.copy("time_limits", "model.py")
    return project


def test_a_batch_adapter_that_hangs_spoils_its_batch_alone_and_one_that_exits_its_request(model: Project) -> None:
    model.prompts("a", "b", "hangs in C", "c", "d", "e", "exits", "f", "raises strangely", "g", "h", "i")
    options = ["--lm-batch-size=2", "--lm-timeout=1", "--lm-include-per-example"]
    result = model.run_pytest("--lm-adapter=model:Batch", *options)
    assert 3 == result.ret
    spoilt = {"hangs in C": "timeout", "c": "timeout"}
    spoilt |= dict.fromkeys(["exits", "raises strangely"], "error")
    assert {**dict.fromkeys("abdefghi", "passed"), **spoilt} == model.statuses()
    (row,) = model.board()["tasks"]
    assert (2, 2, 8, 12) == (row["timeouts"], row["errors"], row["correct"], row["total"])
    assert 1.0 == row["score"]
    result.stdout.fnmatch_lines(
        ["*e2 could not be scored (timeout)*within 1 s for each of 2 request(s) (--lm-timeout)*"]
    )


def test_an_async_adapter_that_hangs_or_exits_spoils_its_request_alone(model: Project) -> None:
    fine = [f"w{number}" for number in range(20)]
    hanging = ["hangs", "hangs and ignores cancellation"]
    faulty = ["exits", "raises strangely", "cancels itself"]
    model.prompts(*fine[:5], *hanging, *fine[5:10], *faulty, *fine[10:], "hangs once")
    options = ["--lm-timeout=1", "--lm-retries=1", "--lm-concurrency=4", "--lm-include-per-example"]
    result = model.run_pytest("--lm-adapter=model:Async", *options)
    assert 3 == result.ret
    expected = dict.fromkeys([*fine, "hangs once"], "passed")
    expected |= {**dict.fromkeys(hanging, "timeout"), **dict.fromkeys(faulty, "error")}
    assert expected == model.statuses()
    counts = model.board()["counts"]
    assert (21, 2, 3) == (counts["scored"], counts["timeouts"], counts["errors"])
    result.stdout.fnmatch_lines(["*no response within 1 s (--lm-timeout) (2 attempts)*"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_an_adapter_that_blocks_its_event_loop_is_a_timeout(model: Project) -> None:
    fine = [f"w{number}" for number in range(20)]
    model.prompts(*fine[:10], "blocks the loop", *fine[10:])
    options = ["--lm-timeout=1", "--lm-concurrency=1", "--lm-include-per-example"]
    result = model.run_pytest("--lm-adapter=model:Async", *options)
    assert 3 == result.ret
    assert {**dict.fromkeys(fine, "passed"), "blocks the loop": "timeout"} == model.statuses()
    assert 1 == model.board()["counts"]["timeouts"]


def test_timeouts_count_as_errors_that_may_be_allowed(model: Project) -> None:
    model.prompts("a", "hangs in C", "b")
    options = ["--lm-batch-size=1", "--lm-timeout=1", "--lm-max-errors=1", "--lm-gate=none"]
    result = model.run_pytest("--lm-adapter=model:Batch", *options)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["not scored: t: *: *", "*2 passed, 1 unscored*"])
    board = model.board()
    assert (0, True) == (result.ret, board["complete"])
    assert (1.0, 1) == (board["overall_score"], board["counts"]["timeouts"])


YAML = """\
key: shape
display_name: Shape
definition:
  dataset:
    path: rows.csv
  solver:
    type: single_turn_solver
    input_builder: {type: generic, template: "{{ sample.prompt }}"}
  scorers:
    - type: json_schema
      json_schema: {pattern: "^(a+)+$"}
"""


def test_a_text_that_makes_a_pattern_slow_is_a_wrong_answer_and_the_run_complete(model: Project) -> None:
    needs.installed("jsonschema")
    slow, fine = f'"{"a" * 60}!"', '"aaa"'
    model.write("conftest.py", LIMIT)
    model.write("tasks/shape.yaml", YAML)
    model.write("tasks/rows.csv", "prompt\n" + "".join(said.replace('"', '"""') + "\n" for said in (slow, fine)))
    result = model.run_pytest("--lm-adapter=model:Batch", "--lm-include-per-example")
    assert 1 == result.ret
    examples = model.examples()
    assert ["failed", "passed"] == [record["status"] for record in examples.values()]
    assert [0.0, 1.0] == [record["score"] for record in examples.values()]
    told = "json_schema took more than 0.5 s of CPU time; patterns of the schema: '^(a+)+$'"
    assert [True, False] == [told in str(record.get("details", "")) for record in examples.values()]


FILTERS = "filter_list: [{name: x, filter: [{function: %s, regex_pattern: (a+)+$}, {function: take_first}]}]"
PATTERNS = {
    "found": FILTERS % "regex",
    "chosen": FILTERS % "multi_choice_regex",
    "ignored": "metric_list: [{metric: exact_match, regexes_to_ignore: [(a+)+$]}]",
    "replaced": """description: "{{ said | regex_replace('(a+)+$', '') }}" """,
}


def test_a_text_that_makes_a_pattern_of_a_task_slow_is_an_error_of_its_example_alone(project: Project) -> None:
    rows = [{"said": text, "choices": ["b", "c"]} for text in (f"{'a' * 40}!", "aaa")]
    for name, keys in PATTERNS.items():
        asked = "doc_to_text: 'say: {{said}}'\ndoc_to_target: said\n"
        project.write(f"{name}/t.yaml", f"task: {name}\ndataset_path: rows\ntest_split: test\n{asked}{keys}\n")
        harness = {"harness": {"from": f"../{name}", "data": "../data", "tasks": [name]}}
        project.write(f"tasks/{name}.yaml", json.dumps(harness))
    project.write("data/rows/test.jsonl", "\n".join(map(json.dumps, rows)))
    project.write("conftest.py", LIMIT)
    record = {"metric": "regex", "targets": ["(a+)+$"]}
    project.task(
        "tasks/r.jsonl", *({"id": str(n), "prompt": f"say: {row['said']}", **record} for n, row in enumerate(rows))
    )
    refused = project.run("tasks/replaced.yaml")
    assert 2 == refused.ret
    refused.stdout.fnmatch_lines(["*bad_value template: item 0: *: pattern took more than 0.5 s of CPU time*"])
    assert 3 == project.run("--ignore=tasks/replaced.yaml").ret
    scored = {name: (line["status"], line["error"]) for name, line in project.ledger().items()}
    expected = {"0": ("error", "pattern took more than 0.5 s of CPU time"), "1": ("passed", "")}
    assert {f"{task}:{id}": of for task in ("found", "chosen", "ignored", "r") for id, of in expected.items()} == scored


@pytest.mark.parametrize("option", ["--lm-timeout=0", "--lm-retries=-1", "--lm-concurrency=0"])
def test_a_limit_that_makes_no_sense_is_a_usage_error(model: Project, option: str) -> None:
    model.prompts("a")
    result = model.run_pytest("--lm-adapter=model:Batch", option)
    assert 4 == result.ret
    result.stderr.fnmatch_lines([f"*{option.partition('=')[0]}: expected a *number*"])
