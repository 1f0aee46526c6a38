"""Records with several checks in place of a metric: what is refused, and what an answer is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks, run_leaderboard
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.files import load_file
from pytest_lmeval.formats.lint import lint
from pytest_lmeval.loading import default_registry, validate_task
from pytest_lmeval.types import Completion, ExampleResult, Generate, ToolCall
from tests.conftest import Project
from tests.schemas import validator
from tests.tables import each_row

Record = dict[str, Any]
REGISTRY = default_registry(entry_points=False)
YES: Record = {"metric": "contains_any", "targets": ["yes"]}
WORDS: Record = {"metric": "f1", "targets": ["yes of course"], "name": "words", "weight": 3}
CODE: Record = {"metric": "code_exec", "targets": ["3"], "extras": {"io_pairs": [[1, 2, 3]]}}
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
CALL: Record = {"metric": "tool_calls", "extras": {"calls": [{"name": "look", "arguments": {"q": "tea"}}]}}


def _record(*checks: object, **changes: Any) -> Record:
    return {"id": "a", "prompt": "Is it?", "checks": list(checks), **changes}


def _yes(changes: Record) -> Record:
    return _record(YES | changes)


class Answering:
    """Answers every request in the same way."""

    name = "stub.v1"

    def __init__(self, answer: Completion) -> None:
        self.answer = answer

    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        return [self.answer for _ in requests]


def _scored(folder: Path, record: Record, answer: str | Completion) -> ExampleResult:
    (folder / "t.jsonl").write_text(json.dumps(record))
    said = Completion(answer) if isinstance(answer, str) else answer
    board = run_leaderboard(load_tasks(folder / "t.jsonl"), Answering(said))
    return board.tasks[0].per_example[0]


@pytest.mark.parametrize(
    ("checks", "answer", "score", "status", "named"),
    [
        ([YES], "yes", 1.0, "passed", {"contains_any": 1.0}),
        ([YES, WORDS], "yes of course", 1.0, "passed", {"contains_any": 1.0, "words": 1.0}),
        ([YES, WORDS], "yes", (1 + 3 * 0.5) / 4, "passed", {"contains_any": 1.0, "words": 0.5}),
        ([YES, {**WORDS, "threshold": 0.6}], "yes", (1 + 3 * 0.5) / 4, "failed", {"contains_any": 1.0, "words": 0.5}),
        ([YES, WORDS], "of course", 0.6, "failed", {"contains_any": 0.0, "words": 0.8}),
        ([{**YES, "threshold": 0}, WORDS], "of course", 0.6, "passed", {"contains_any": 0.0, "words": 0.8}),
        ([YES, {**YES, "name": "no", "extras": {"not": True}}], "yes", 0.5, "failed", {"contains_any": 1.0, "no": 0.0}),
        ([{"metric": "exact_match", "targets": ["yes"]}], " YES ", 1.0, "passed", {"exact_match": 1.0}),
        ([{"metric": "number", "targets": ["4"]}, YES], "yes, 4", 1.0, "passed", {"number": 1.0, "contains_any": 1.0}),
    ],
)
def test_all_checks_have_to_pass_and_the_score_is_the_mean_by_weight(
    tmp_path: Path, checks: list[Record], answer: str, score: float, status: str, named: dict[str, float]
) -> None:
    result = _scored(tmp_path, _record(*checks), answer)
    assert pytest.approx(score) == result.score
    assert status == result.status
    assert {name: pytest.approx(value) for name, value in named.items()} == result.metrics
    assert [*named] == [each["name"] for each in result.details["checks"]]


def test_a_rule_of_the_record_goes_before_each_check_but_one_with_its_own(tmp_path: Path) -> None:
    own = {"metric": "completion_accuracy", "targets": ["B\nyes"], "extras": {"post_process": "none"}}
    letter = {"metric": "completion_accuracy", "targets": ["B"], "name": "letter"}
    result = _scored(tmp_path, _record(letter, own, extras={"post_process": "extract_letter"}), "B\nyes")
    assert ("passed", ("B",)) == (result.status, result.predictions)
    unread = _scored(tmp_path, _record(letter, own, extras={"post_process": "extract_letter"}), "1")
    assert (True, True) == (unread.unparsed, unread.details["checks"][0]["unparsed"])


def test_calls_and_text_are_checked_together(tmp_path: Path) -> None:
    record = _record(CALL, {"metric": "contains_any", "targets": ["see"]}, extras={"tools": [TOOL]})
    calls = (ToolCall("1", "look", '{"q": "tea"}'),)
    assert "passed" == _scored(tmp_path, record, Completion("I see.", tool_calls=calls)).status
    silent = _scored(tmp_path, record, Completion("", tool_calls=calls))
    assert ("failed", {"tool_calls": 1.0, "contains_any": 0.0}) == (silent.status, silent.metrics)
    other = _scored(tmp_path, record, Completion("I see.", tool_calls=(ToolCall("1", "look", "{}"),)))
    assert "difference" in other.details["checks"][0]["details"]


def test_a_program_is_run_beside_other_checks(project: Project) -> None:
    answer = "```python\nf = lambda a, b: a + b\n```"
    checks = [CODE, {"metric": "contains_any", "targets": ["lambda"]}, {**CODE, "name": "raw", "threshold": 0}]
    checks[2]["extras"] = {**CODE["extras"], "post_process": "none"}
    model = f"class Model:\n    name = 'm'\n    def generate(self, prompts): return [{answer!r}] * len(prompts)\n"
    project.write("coder.py", model)
    project.task("tasks/t.jsonl", _record(*checks))
    for processes in ("-n0", "-n2"):
        project.run("tasks", "--lm-adapter=coder:Model", processes).assert_outcomes(passed=1)
        (result,) = project.ledger().values()
        assert {"code_exec": 1.0, "contains_any": 1.0, "raw": 0.0} == result["metrics"]
    warned = project.lmeval("validate", "--lint", "tasks")
    assert 0 == warned.ret


def test_what_a_check_needs_and_is_not_installed_refuses_the_run(project: Project) -> None:
    project.write(
        "conftest.py",
        "def pytest_lmeval_register(registry):\n    from dataclasses import replace\n"
        "    registry.metrics['math_equal'] = replace(registry.metrics['math_equal'], package='no_such')\n",
    )
    project.task("tasks/t.jsonl", _record({"metric": "math_equal", "targets": ["1"]}))
    done = project.run("tasks")
    assert 4 == done.ret
    done.stderr.fnmatch_lines(["*the metric 'math_equal' needs no_such, which is not installed*"])


def test_thoughts_without_an_answer_pass_no_check_that_asks_for_an_absence(tmp_path: Path) -> None:
    absent = {"metric": "contains_any", "targets": ["sorry"], "extras": {"not": True}}
    result = _scored(tmp_path, _record(absent), Completion("", thoughts="What to say?"))
    assert ("failed", 0.0, True) == (result.status, result.score, result.unparsed)


def test_a_threshold_of_the_record_holds_for_the_mean_as_well(tmp_path: Path) -> None:
    record = _record(YES, WORDS, extras={"threshold": 0.9})
    assert ["failed", "passed"] == [_scored(tmp_path, record, answer).status for answer in ("yes", "yes of course")]


def test_repeats_pass_where_the_mean_of_each_check_does(project: Project) -> None:
    project.task("tasks/t.jsonl", _record(YES, {**WORDS, "threshold": 0.4}, prompt="say: yes"))
    project.run("tasks", "--lm-repeats=2").assert_outcomes(passed=1)
    (result,) = project.ledger().values()
    assert ({"contains_any": 1.0, "words": 0.5}, [2]) == (result["metrics"], [len(result["details"]["repeats"])])


REFUSED: list[tuple[Record, str]] = [
    (_record(), "bad_type checks: expected a non-empty array of objects, got an empty one"),
    (_record() | {"checks": YES}, "bad_type checks: expected a non-empty array of objects, got an object"),
    (_record("yes"), "bad_type checks[0]: expected an object with metric, got a string"),
    (_record(YES, metric="f1"), "unknown_field metric: a record with checks has no metric: write"),
    (_record(YES, targets=["x"]), "unknown_field targets: a record with checks has no targets: write"),
    (_record(YES, turns=[{"user": "?", "targets": ["x"]}]), "unknown_field prompt: a record with turns has no prompt"),
    ({"checks": [YES]}, "missing_required prompt: required: prompt, checks"),
    (_record(YES, YES), "bad_value checks[1].name: 'contains_any' is also the name of checks[0]"),
    (_yes({"name": ""}), "bad_type checks[0].name: expected a non-empty string"),
    (_yes({"name": "checks"}), "bad_value checks[0].name: 'checks' is the board's name for all"),
    (_record({"targets": ["x"]}), "missing_required checks[0].metric: a check needs a metric"),
    (_record({"metric": "contains_any"}), "missing_required checks[0].targets: the metric contains_any needs targets"),
    (
        _record({"type": "contains", "value": "x"}),
        "unknown_field checks[0].type: a check names its metric: write metric",
    ),
    (
        _record({**CODE, "extras": {"stdouts": ["3"]}}),
        "bad_type checks[0].extras.stdouts: expected true, or no such key; the",
    ),
    (_yes({"metric": "contains_al"}), "bad_value checks[0].metric: unknown metric 'contains_al'; did you mean"),
    (_yes({"metric": "turns"}), "bad_value checks[0].metric: turns is the metric of"),
    (_yes({"metric": "checks"}), "bad_value checks[0].metric: checks is the metric of"),
    (_yes({"metric": "code_exec"}), "bad_value checks[0].extras: expected exactly one of"),
    (_record({**CODE, "extras": {"io_pairs": []}}), "bad_value checks[0].extras.io_pairs: expected at least one"),
    (_record({**CODE, "extras": {"stdouts": True, "timeout_s": 99}}), "bad_value checks[0].extras.timeout_s: "),
    (_yes({"treshold": 1}), "unknown_field checks[0].treshold: unknown field 'treshold'; did you mean 'thresh"),
    (_yes({"threshold": 2}), "bad_value checks[0].threshold: expected a number in [0, 1], got 2"),
    (_yes({"threshold": True}), "bad_type checks[0].threshold: expected a number in [0, 1], got a boolean"),
    (_yes({"weight": 0}), "bad_value checks[0].weight: expected a number above 0, at most 1,000,000, got 0"),
    (_yes({"weight": -1}), "bad_value checks[0].weight: expected a number above 0, at most 1,000,000, got -1"),
    (_yes({"weight": 1e308}), "bad_value checks[0].weight: expected a number above 0, at most 1,000,000, got"),
    (_yes({"weight": "2"}), "bad_value checks[0].weight: expected a number above 0, at most 1,000,000, got '2'"),
    (_yes({"targets": "yes"}), "bad_type checks[0].targets: expected a non-empty array of strings"),
    (_yes({"targets": [""]}), "bad_value checks[0].targets: every text contains an empty target"),
    (_yes({"metric": "regex", "targets": ["("]}), "bad_value checks[0].targets: expected regular expressions"),
    (_record({**WORDS, "targets": [" "]}), "bad_value checks[0].targets: f1 gives every answer 0"),
    (_yes({"metric": "substring_contains", "targets": [" "]}), "bad_value checks[0].targets: every text"),
    (_yes({"extras": []}), "bad_type checks[0].extras: expected an object, got an array"),
    (_yes({"extras": {"threshold": 1}}), "unknown_field checks[0].extras.threshold: the threshold belongs"),
    (_yes({"extras": {"must_pass": True}}), "unknown_field checks[0].extras.must_pass: 'must_pass' belongs in"),
    (_yes({"extras": {"ignore_cas": True}}), "unknown_field checks[0].extras.ignore_cas: nothing reads"),
    (_yes({"extras": {"ignore_case": 1}}), "bad_type checks[0].extras.ignore_case: expected true or false"),
    (_yes({"extras": {"post_process": "x"}}), "bad_value checks[0].extras.post_process: 'x' is not one of"),
    (_record({**WORDS, "extras": {"not": True}}), "bad_value checks[0].extras.not: f1 is graded"),
    (_record(CALL), "missing_required extras.tools: checks[0] has the metric tool_calls, but no tools"),
    (_record({"metric": "tool_calls"}, extras={"tools": [TOOL]}), "missing_required checks[0].extras.calls: "),
    (_yes({"metric": "json_schema"}), "bad_value checks[0].extras.json_schema: "),
    (_record(YES, extras={"post_process": "x"}), "bad_value extras.post_process: 'x' is not one of"),
    (_record(YES, extras={"must_pas": True}), "unknown_field extras.must_pas: nothing reads the key 'must_pas'"),
    (
        {"prompt": "a", "targets": ["x"], "metric": "checks"},
        "bad_value metric: checks is the metric of a record that has",
    ),
]
# What takes a registry, another check, or a pattern to be compiled.
BEYOND = (
    *("name of checks", "unknown metric", "regular expr", "is not one of"),
    *("nothing reads", "f1 ", "every text", "no tools", "stdouts"),
)


@each_row(("record", "said"), REFUSED)
def test_a_bad_check_is_refused_with_its_place(record: Record, said: str) -> None:
    with pytest.raises(RecordRefused) as refused:
        validate_task(record)
    assert str(refused.value).startswith(said)


@each_row(("record", "said"), REFUSED)
def test_the_schema_refuses_what_a_schema_can(record: Record, said: str) -> None:
    of_extras = ("bad_type checks[0].extras.ignore_case", "bad_value checks[0].extras")
    is_beyond = said.startswith(of_extras) or any(part in said for part in BEYOND)
    assert is_beyond or not validator("compact-record").is_valid(record)


@each_row(
    "record",
    [
        _record(YES),
        _record(YES, WORDS, {**YES, "name": "again", "threshold": 0.5}),
        _record(CALL, extras={"tools": [TOOL], "tool_choice": "auto", "must_pass": True, "threshold": 0.5}),
    ],
)
def test_a_good_record_with_checks_is_taken(record: Record) -> None:
    assert "checks" == validate_task(record).metric
    assert validator("compact-record").is_valid(record)


def test_a_file_has_checks_in_each_record_or_in_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    plain = {"prompt": "Is it?", "targets": ["yes"], "metric": "f1"}
    path.write_text(f"{json.dumps(_record(YES))}\n{json.dumps(plain)}\n")
    (error,) = load_file(path, "t", REGISTRY).errors
    assert "'f1', but line 1 has 'checks'" in error.detail


def test_a_threshold_changes_no_pair_and_a_weight_does(tmp_path: Path) -> None:
    def hash_of(*checks: Record) -> str:
        return _scored(tmp_path, _record(*checks), "yes").hash

    assert hash_of(YES) == hash_of({**YES, "threshold": 0.5})
    assert hash_of(YES, WORDS) != hash_of(YES, {**WORDS, "weight": 2})


def test_lint_looks_at_what_a_repeated_prompt_would_pass(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = [_record(YES, WORDS, id=f"e{n}", prompt=f"{n}: answer yes") for n in range(8)]
    records.append(_record(YES, id="both", prompt="answer yes or no"))
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    warned = lint({path: load_file(path, "t", REGISTRY)}, REGISTRY)
    # The second check does not pass with what the first one is content with.
    assert [9] == [each.line_number for each in warned if each.rule == "answer_in_prompt"]


FILE = """\
prompt: "say: {{ said }}"
data: rows.csv
checks:
- {metric: contains_any, target: "{{ word }}", name: word}
- {metric: f1, targets: ["{{ said }}"], threshold: 0.9, weight: 2}
"""


def test_a_data_file_has_checks_with_templates(project: Project) -> None:
    project.write("tasks/q.yaml", FILE)
    project.write("tasks/rows.csv", "said,word\nred,red\nblue,green\n")
    done = project.run("tasks", "--lm-min-score=q.word=0.9")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        [
            "q: 2 scored 0.6667 (checks); word 0 is under its threshold 1",
            "*| name: word; passed: False; score: 0.0; threshold: 1.0; metric: contains_any; targets: green",
            "*| name: f1; passed: True; score: 1.0; threshold: 0.9; weight: 2; targets: blue",
            "*q.word * 0.5000 *",
            "gate examples: FLOOR",
            "*q.word: 0.5000 is below its floor 0.9",
        ]
    )
    row = project.board()["tasks"][0]
    assert ("checks", ["f1", "word"]) == (row["metric"], sorted(row["scores"]))
    # The check that did not pass is what was wanted.
    assert "| q: 2 | failed | say: blue | word: green | blue |" in (project.path / "reports/leaderboard.md").read_text()


@each_row(
    ("old", "new", "said"),
    [
        ("checks:", "metric: f1\nchecks:", "q.yaml:3: unknown_field metric: a data file with checks has no metric: wr"),
        (
            "target: ",
            "targets: [x], target: ",
            "q.yaml:4: bad_value checks[0].targets: both 'target' and 'targets' are set",
        ),
        ('"{{ word }}"', "word", "q.yaml:4: bad_value checks[0].target: 'word' is text, and the name of a column"),
        ("{{ word }}", "{{ wrd }}", "q.yaml:4: bad_value checks[0].target: there is no column 'wrd'; did you mean"),
        (
            "weight: 2",
            "weight: 0",
            "q.yaml:5: bad_value checks[1].weight: expected a number above 0, at most 1,000,000, got 0",
        ),
        ("metric: f1", "metric: f2", "q.yaml:5: bad_value checks[1].metric: unknown metric 'f2'"),
        ("name: word", "name: f1", "q.yaml:5: bad_value checks[1].name: 'f1' is also the name of checks[0]"),
    ],
)
def test_a_bad_check_of_a_data_file_is_one_error(old: str, new: str, said: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder, "q.yaml")
        Path(folder, "rows.csv").write_text("said,word\nred,red\nblue,green\n")
        path.write_text(FILE.replace(old, new, 1))
        (error,) = load_file(path, "q", REGISTRY, is_named=True).errors
    assert error.at("q.yaml").startswith(said)


def test_a_judge_grades_by_the_rubric_of_a_check_and_its_reason_is_where_a_reader_looks(project: Project) -> None:
    reply = json.dumps({"reason": "It is curt.", "score": 0})
    project.write("judge.py", f"class Judge:\n    name = 'j'\n    def generate(self, prompts): return [{reply!r}]\n")
    kind = {"metric": "rubric", "name": "kind", "extras": {"rubric": "Is kind.", "human_label": 0}}
    project.task("tasks/t.jsonl", _record(YES, kind, prompt="say: yes"))
    assert 4 == project.run("tasks").ret
    done = project.run("tasks", "--lm-judge=judge:Judge")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*| name: kind; passed: False; score: 0.0; threshold: 1.0; metric: rubric; reason: It is cu*"]
    )
    assert "kind 0.0: It is curt." in (project.path / "reports/leaderboard.md").read_text()
    (row,) = project.board()["tasks"]
    assert (0.0, 1.0) == (row["scores"]["kind"]["score"], row["metrics"]["kind.agreement"])
    (result,) = project.ledger().values()
    assert ["kind"] == [entry["scorer"] for entry in result["details"]["judge"]]


def test_a_check_that_gets_worse_is_compared_with_the_baseline(project: Project) -> None:
    records = [_record(YES, WORDS, id=f"e{n}", prompt=f"say: yes of course {n}") for n in range(12)]
    project.task("tasks/t.jsonl", *records)
    options = ("tasks", "--lm-gate=baseline", "--lm-baseline=b.json", "--lm-min-score=t.words=0.1")
    assert 0 == project.run(*options, "--lm-update-baseline", "--lm-report-dir=first").ret
    project.write(
        "wrong.py",
        "from model import Model as Good\nclass Model(Good):\n"
        "    def generate(self, prompts): return ['yes but hm'] * len(prompts)\n",
    )
    done = project.run(*options, "--lm-adapter=wrong:Model")
    assert 1 == done.ret
    done.stdout.fnmatch_lines(["*t.words: regression*"])
    compared = project.lmeval("diff", "first/ledger.jsonl", "reports/ledger.jsonl")
    compared.stdout.fnmatch_lines(["  targets:", "    words: yes of course"])
