"""A task that lacks something is refused alone, before anything is asked; the others run, and are kept."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pytest_lmeval import decide, load_tasks, run_leaderboard
from pytest_lmeval.adapters.resolve import resolve_adapter
from pytest_lmeval.loading import default_registry
from tests import needs
from tests.conftest import BOTH, Project
from tests.yaml_tasks import JUDGED, harness_yaml

HIDDEN = "import sys\nsys.modules.update(jsonschema=None, sacrebleu=None, lingua=None)\n"
NEEDS_JSONSCHEMA = (
    "the metric 'json_schema' needs jsonschema, which is not installed: pip install 'pytest-lmeval[json]'"
)
CLASS = """
from pytest_lmeval.tasks import BaseTask, JSONFormat

class Forms(BaseTask[str]):
    NAME = "forms"
    DATASET_PATH = "forms.jsonl"
    METRICS = [JSONFormat]
    def _get_instruction_text(self, item): return "say: {}"
    def _get_ground_truth(self, item): return "{}"
"""
WITH_SCHEMA = "    def _get_context(self, item): return {'json_schema': {'type': 'object'}}\n"
HARNESS = """
doc_to_text: "say: {{{{said}}}}"
doc_to_target: "{{{{said}}}}"
generation_kwargs: {options}
metric_list: [{{metric: {metric}}}]
"""


def harness(project: Project, name: str, options: str = "{}", metric: str = "exact_match") -> None:
    project.write(f"given/{name}.yaml", harness_yaml(name, HARNESS.format(options=options, metric=metric)))
    project.write("given/docs.jsonl", '{"said": "a"}\n{"said": "b"}\n')
    project.write(f"tasks/{name}.yaml", f"harness: {{from: ../given, tasks: [{name}]}}\n")


def forms(project: Project, code: str = CLASS + WITH_SCHEMA) -> None:
    project.write("tasks/task_forms.py", code)
    project.write("tasks/forms.jsonl", "{}\n{}\n{}\n")


def judged(project: Project) -> None:
    project.write("tasks/judged.yaml", JUDGED)
    project.write("tasks/rows.csv", "said\nred\nblue\n")


@pytest.mark.parametrize("processes", BOTH)
def test_a_task_whose_package_is_missing_is_refused_alone(project: Project, processes: str) -> None:
    project.write("conftest.py", HIDDEN)
    forms(project)
    project.small_tasks()
    result = project.run(processes, "--lm-gate=none", "--lm-include-per-example", "--junitxml=junit.xml")

    assert 3 == result.ret
    board, examples = project.board(), project.examples()
    reason = f"tasks/task_forms.py: task 'forms': {NEEDS_JSONSCHEMA}"
    assert reason == board["interruptions"][0] == board["gate"]["reasons"][0]
    assert {"arithmetic": 0, "forms": 3, "words": 0} == {row["task"]: row["errors"] for row in board["tasks"]}
    refused = [each for key, each in examples.items() if key.startswith("forms:")]
    assert [("error", reason, None)] * 3 == [(each["status"], each["error"], each["score"]) for each in refused]
    assert 5 == sum(map(len, project.calls()))
    # The items say the same.
    cases = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    failed = {
        case.get("name"): failure.get("message") for case in cases if (failure := case.find("failure")) is not None
    }
    assert {"ex-0", "ex-1", "ex-2"} == failed.keys()
    assert all(reason in str(message) for message in failed.values())
    # The terminal says it once.
    lines = result.stdout.str().splitlines()
    closing = next(number for number, line in enumerate(lines) if line.startswith("INCOMPLETE"))
    assert f"  {reason}" == lines[closing + 1]
    assert 1 == sum("needs jsonschema" in line for line in lines)
    result.stdout.fnmatch_lines(["*= 4 passed, *3 refused*"])


def test_github_is_told_once_of_a_refused_task(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("conftest.py", HIDDEN)
    forms(project)
    project.small_tasks()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    lines = project.run().stdout.str().splitlines()
    titles = [line.partition("title=")[2].partition("::")[0] for line in lines if line.startswith("::error")]
    assert ["arithmetic%3A arith_2 failed", "forms%3A ex-0 error"] == titles
    assert "<summary>Failed: 2</summary>" in (project.path / "summary.md").read_text()


def test_shards_of_a_run_say_the_same_and_none_is_refused_for_the_part_it_has(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    forms(project)
    project.task("tasks/t.jsonl", project.record("a", "a"))
    assert 3 == project.run().ret
    whole = project.board()
    for number in ("1", "2"):
        assert 3 == project.run(f"--lm-shard={number}/2", f"--lm-report-dir=s{number}").ret
    assert 3 == project.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "merged").ret
    merged = project.board("merged")
    assert (whole["digest"], whole["counts"]) == (merged["digest"], merged["counts"])
    assert all(whole["interruptions"][0] in each for each in merged["interruptions"])


def test_the_library_says_the_same(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    harness(project, "a", "{repetition_penalty: 1.2}")
    harness(project, "b")
    assert 3 == project.run().ret
    monkeypatch.chdir(project.path)
    monkeypatch.syspath_prepend(project.path)
    board = run_leaderboard(
        load_tasks(project.path / "tasks"), resolve_adapter("model:Model", default_registry(), {}, project.path)
    )
    asked = project.board()
    assert (asked["digest"], asked["interruptions"]) == (board.digest, [*board.facts.interruptions])
    assert 3 == decide(board).exit_code


def test_with_the_package_the_refused_task_alone_is_asked(project: Project) -> None:
    needs.installed("jsonschema")
    project.write("conftest.py", HIDDEN)
    forms(project)
    project.small_tasks()
    assert 3 == project.run("--lm-gate=none").ret
    (project.path / "calls.txt").unlink()
    project.write("conftest.py", "")
    assert 0 == project.run("--lm-gate=none", "--lm-resume").ret
    assert ["say: {}"] * 3 == [prompt for call in project.calls() for prompt in call]


def test_if_no_task_is_left_the_run_is_a_usage_error(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    forms(project)
    judged(project)
    result = project.run()

    assert 4 == result.ret
    said = result.stdout.str() + result.stderr.str()
    assert NEEDS_JSONSCHEMA in said
    assert "task 'judged' asks a judge, and the run has no judge: name a model with --lm-judge" in said
    assert [] == project.calls()
    assert not (project.path / "reports/leaderboard.json").exists()


def test_metrics_that_say_nothing_of_the_rows_need_no_package(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    forms(project, CLASS)
    assert 0 == project.run("--lm-include-per-example").ret
    (first, *_) = project.examples().values()
    assert {"only_json", "json_exact"} == first["metrics"].keys()


def test_a_metric_of_the_class_itself_is_known_by_its_package(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    own = (
        "class Odd:\n    NAME, PACKAGE, INSTALL = 'odd', 'lingua', 'odd'\n    def __call__(self, *given): return 1.0\n"
    )
    forms(project, f"{own}{CLASS.replace('[JSONFormat]', '[JSONFormat, Odd]')}")
    project.small_tasks()
    assert 3 == project.run("--lm-gate=none").ret
    wanted = (
        "tasks/task_forms.py: task 'forms': the metric 'odd' needs lingua, which is not installed: pip install 'odd'"
    )
    assert [wanted] == project.board()["interruptions"]


def test_an_option_that_the_adapter_does_not_take_refuses_its_task_alone(project: Project) -> None:
    harness(project, "a", "{repetition_penalty: 1.2}")
    harness(project, "b", "{num_return_sequences: 1, num_beams: 1, repetition_penalty: 1.0, early_stopping: false}")
    assert 3 == project.run("--lm-gate=none").ret
    board = project.board()
    assert {"a": (2, None), "b": (0, 1.0)} == {row["task"]: (row["errors"], row["score"]) for row in board["tasks"]}
    asked = "tasks/a.yaml: task 'a': the task sends repetition_penalty=1.2, which adapter stub.v1 does not support"
    (reason,) = board["interruptions"]
    assert reason.startswith(asked)


def test_a_library_for_all_documents_is_missed_by_its_task_alone(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    harness(project, "a", metric="bleu")
    harness(project, "b")
    assert 3 == project.run("--lm-gate=none").ret
    missing = "the metric 'bleu' needs sacrebleu, which is not installed: pip install 'sacrebleu'"
    assert [f"tasks/a.yaml: task 'a': {missing}"] == project.board()["interruptions"]


def test_a_model_that_a_conftest_brings_is_held_to_what_tasks_need(project: Project) -> None:
    project.write(
        "conftest.py",
        "import pytest, model\n\n@pytest.fixture(scope='session')\ndef lm_adapter(): return model.Model()\n",
    )
    harness(project, "a", "{repetition_penalty: 1.2}")
    project.small_tasks()
    assert 3 == project.run_pytest("tasks", "--lm-gate=none").ret
    board = project.board()
    assert {"a": 2, "arithmetic": 0, "words": 0} == {row["task"]: row["errors"] for row in board["tasks"]}
    assert 1 == len(board["interruptions"])


def test_of_several_models_each_asks_what_it_can(project: Project) -> None:
    harness(project, "a", "{repetition_penalty: 1.2}")
    project.edit("model.py", "class Model", "class Plain")
    project.write(
        "able.py", "import model\n\nclass Model(model.Plain):\n    request_options = ('repetition_penalty',)\n"
    )
    result = project.run_pytest("--lm-adapter=one=able:Model", "--lm-adapter=two=model:Plain", "--lm-gate=none")
    assert 3 == result.ret
    boards = {label: project.board(f"reports/{label}") for label in ("one", "two")}
    assert {"one": 2, "two": 0} == {label: board["counts"]["scored"] for label, board in boards.items()}


def test_the_command_test_names_what_is_missing_and_shows_the_others(project: Project) -> None:
    project.write("conftest.py", HIDDEN)
    project.write("both.yaml", "harness: {from: given, tasks: [a, b]}\n")
    harness(project, "a", "{repetition_penalty: 1.2}")
    harness(project, "b")
    result = project.lmeval("test", "both.yaml", "--lm-adapter=model:Model")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        ["REFUSED: both.yaml: task 'a': the task sends repetition_penalty=1.2*", "Task b: 2 of*"]
    )


def test_the_command_validate_says_which_packages_are_missing(project: Project) -> None:
    project.write("hidden.py", f"{HIDDEN}def pytest_lmeval_register(registry): pass\n")
    project.write("pyproject.toml", "[tool.lmeval]\nplugins = ['hidden']\n")
    forms(project)
    harness(project, "a", metric="bleu")
    result = project.lmeval("validate", "tasks")
    assert 0 == result.ret
    result.stdout.fnmatch_lines_random(
        [
            f"tasks/task_forms.py:1: warning: task 'forms': {NEEDS_JSONSCHEMA.replace('[', '[[]')}*",
            "tasks/a.yaml:1: warning: task 'a': the metric 'bleu' needs sacrebleu*",
        ]
    )
