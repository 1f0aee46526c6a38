"""What can be known to be wrong before a model is asked is a usage error, and nothing is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import needs
from tests.cli.yaml_project import write_project
from tests.conftest import Project
from tests.yaml_tasks import JUDGED

MODEL = """
import picker

class Model(picker.Model):
    def generate(self, prompts):
        with open("asked.txt", "a") as file:
            file.write("asked\\n" * len(prompts))
        return super().generate(prompts)
"""
MODEL_OPTION = "--lm-adapter=noting:Model"


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide declarative tasks, one of them with a parameter."""
    write_project(project.path)
    project.write("noting.py", MODEL)
    project.write("c.yaml", "which: last\n")
    monkeypatch.chdir(project.path)
    return project


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ("which: [", "c.yaml:2: column 1: expected*"),
        ("{which: last, language: en}", "--lm-config=c.yaml: no task has the parameter 'language'; they have which"),
    ],
)
def test_values_that_cannot_be_used(suite: Project, config: str, fault: str) -> None:
    suite.write("c.yaml", f"{config}\n")
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml")
    assert 4 == result.ret
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    result.stderr.fnmatch_lines([f"*ERROR: *{fault}"])
    assert not (suite.path / "asked.txt").exists()


def test_a_value_may_be_for_a_task_of_a_file_that_is_not_named(suite: Project) -> None:
    suite.write("c.yaml", "{which: last, language: en}\n")
    assert 0 == suite.run_pytest("tasks/choice.yaml", MODEL_OPTION, "--lm-config=c.yaml").ret
    assert 0 == suite.run_pytest("tasks/choice.yaml::0", MODEL_OPTION, "--lm-config=c.yaml").ret


@pytest.mark.parametrize("judge", ["opanai:gpt", "nobody", "no_such_module:Judge"])
def test_a_judge_that_there_is_not(suite: Project, judge: str) -> None:
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml", f"--lm-judge={judge}")
    assert 4 == result.ret
    assert not (suite.path / "asked.txt").exists()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_tasks_are_selected_by_their_key(suite: Project) -> None:
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml", "-k", "the-choice")
    result.assert_outcomes(passed=2, deselected=3)


def test_a_link_to_a_folder_that_it_is_in_multiplies_no_task(suite: Project) -> None:
    (suite.path / "tasks/again").symlink_to("..")
    (suite.path / "tasks/self").symlink_to(".")
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml")
    result.assert_outcomes(passed=5)
    assert 3 == len(suite.board()["tasks"])


def judged(project: Project, model_key: str = "") -> None:
    named = JUDGED.replace("type: model_as", f"model_key: '{model_key}', type: model_as") if model_key else JUDGED
    project.write("tasks/judged.yaml", named)
    project.write("tasks/rows.csv", "said\nred\nblue\n")


def sums(project: Project) -> None:
    project.write(
        "tasks/task_sums.py",
        "from pytest_lmeval.tasks import AccuracyCompletion, BaseTask, MathReasoningCompletion\n\n"
        "class Sums(BaseTask[str]):\n"
        "    NAME = 'Sums'\n    DATASET_PATH = 'sums.csv'\n"
        "    METRICS = [AccuracyCompletion, MathReasoningCompletion]\n"
        "    def _get_instruction_text(self, item): return f\"say: {item['said']}\"\n"
        "    def _get_ground_truth(self, item): return item['said']\n",
    )
    project.write("tasks/sums.csv", "said\n4\n")


LACKING: dict[str, tuple[Callable[[Project], None], list[str], str]] = {
    "a named judge": (
        lambda project: judged(project, "no_such_module:Judge"),
        [],
        "*adapter 'no_such_module:Judge': importing no_such_module failed*",
    ),
    "math_verify": (
        sums,
        [],
        "*tasks/task_sums.py: task 'Sums': the metric 'math_equal' needs math_verify, which is not installed: "
        "pip install 'pytest-lmeval[[]math[]]'",
    ),
    "prices": (
        Project.small_tasks,
        ["--lm-max-cost=5"],
        "*--lm-max-cost needs to know what requests cost, which adapter stub.v1 does not say: give it prices*",
    ),
    "no folder": (
        Project.small_tasks,
        ["--lm-report-dir=/proc/nowhere/reports"],
        "report dir /proc/nowhere/reports: ledger.jsonl cannot be written: No such file or directory; choose another *",
    ),
    "a folder in the way": (
        Project.small_tasks,
        ["--lm-report-dir=blocked"],
        "report dir *blocked: ledger.jsonl cannot be written: Is a directory*",
    ),
}


@pytest.mark.parametrize(
    ("write", "options", "fault", "workers"),
    [
        *[pytest.param(*case, [], id=lacking) for lacking, case in LACKING.items()],
        pytest.param(*LACKING["math_verify"], ["-n2"], id="math_verify, workers"),
    ],
)
def test_what_a_run_lacks(
    project: Project, write: Callable[[Project], None], options: list[str], fault: str, workers: list[str]
) -> None:
    write(project)
    project.write("conftest.py", "import sys\nsys.modules['math_verify'] = None\n")
    (project.path / "blocked/ledger.jsonl/in").mkdir(parents=True)

    result = project.run(*options, *workers)
    assert 4 == result.ret, result.stdout.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    result.stderr.fnmatch_lines([f"ERROR: {fault}"])
    assert [] == project.calls()


def test_a_judge_that_a_conftest_brings_is_one(project: Project) -> None:
    judged(project)
    project.write(
        "conftest.py",
        "import pytest\n\n"
        "class Judge:\n    name = 'judge'\n    def generate(self, prompts): return ['yes'] * len(prompts)\n\n"
        "@pytest.fixture(scope='session')\ndef lm_judge(): return Judge()\n",
    )
    assert 0 == project.run().ret


def test_a_package_that_no_selected_example_needs_may_be_missing(project: Project) -> None:
    needs.installed("jsonschema")
    record = project.record("a", "{}", metric="json_schema", json_schema={"type": "object"})
    project.task("tasks/schemas.jsonl", record)
    project.small_tasks()
    project.write("conftest.py", "import sys\nsys.modules['jsonschema'] = None\n")
    assert 0 == project.run("-k", "words").ret
