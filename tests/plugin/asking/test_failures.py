"""What a failed example tells its reader: everything about the answer, nothing about this plugin's insides."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval import read_run
from pytest_lmeval.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

LONG = "first words " + "x" * 5000 + " last words. say: wrong"


def rerun_of(result: pytest.RunResult) -> list[str]:
    """Return the arguments of the first rerun command of a run."""
    line = next(line.strip() for line in result.outlines if line.strip().startswith("rerun: "))
    return shlex.split(line.removeprefix("rerun: "))


def test_a_failure_shows_the_whole_way_from_prompt_to_verdict(project: Project) -> None:
    record = project.spec("deep", "Maybe C, I think\n", target="B", category="mcq", post_process="extract_letter")
    project.task("tasks/quiz.jsonl", {**record, "prompt": "Which letter? say: Maybe C, I think"})
    result = project.run()
    result.stdout.fnmatch_lines(
        [
            "*deep scored 0, threshold 1 (exact_match)*",
            "*prompt: Which letter? say: Maybe C, I think",
            "*output: Maybe C, I think",
            "*prediction (extract_letter): C",
            "*targets: 'B'",
            "*rerun: pytest tasks/quiz.jsonl::deep --lm-adapter=model:Model*",
        ]
    )
    text = result.stdout.str()
    assert "Traceback" not in text
    assert "pytest_lmeval/" not in text
    assert ".py:" not in text


@pytest.mark.parametrize("style", ["--tb=long", "--tb=native", "--full-trace"])
def test_no_style_of_traceback_brings_one_back(project: Project, style: str) -> None:
    project.task("tasks/quiz.jsonl", project.record("a", "x", target="y"))
    result = project.run(style)
    result.assert_outcomes(failed=1)
    assert "Traceback" not in result.stdout.str()
    assert "plugin/asking/collector.py" not in result.stdout.str()


def test_of_a_long_prompt_the_end_is_shown(project: Project) -> None:
    project.task("tasks/t.jsonl", {**project.record("a", "wrong", target="right"), "prompt": LONG})
    text = project.run().stdout.str()
    assert "last words. say: wrong" in text
    assert "first words" not in text
    assert len(text) < 5000


def test_an_answer_without_anything_to_extract_is_said_to_be_unparsed(project: Project) -> None:
    project.task(
        "tasks/t.jsonl", project.spec("a", "no idea", target="B", category="mcq", post_process="extract_letter")
    )
    project.task("tasks/u.jsonl", project.record("a", "", target="B"))
    result = project.run()
    result.stdout.fnmatch_lines(["*unparsed*extract_letter*", "*output: (empty)*"])
    assert 1 == project.board()["counts"]["unparsed"]


def test_code_without_a_fence_is_code_and_prose_is_unparsed(project: Project) -> None:
    pairs = {"metric": "code_exec", "extras": {"io_pairs": [[2, 4]], "entry_point": "double"}, "targets": ["ok"]}
    answers = {
        "right": "def double(x): return 2 * x",
        "wrong": "def double(x): return x",
        "prose": "I would double it.",
    }
    project.task("tasks/t.jsonl", *({**project.record(name, text), **pairs} for name, text in answers.items()))
    result = project.run()
    result.stdout.fnmatch_lines(["*prose scored 0*", "*unparsed: extract_code_block found nothing*"])
    assert (3, 1) == tuple(project.board()["counts"][name] for name in ("scored", "unparsed"))


def test_the_rerun_command_runs_just_this_example_with_the_same_model(project: Project) -> None:
    odd = "it's [a] (b) $HOME"
    project.task("tasks/my quiz.jsonl", project.record("fine", "x"), project.record(odd, "x", target="y"))
    project.write("sized.py", "from model import Model\nclass Sized(Model):\n    def __init__(self, size): pass\n")
    first = project.run_pytest("--lm-adapter-arg=size=3", "--lm-adapter=sized:Sized")
    _command, *arguments = rerun_of(first)
    again = project.run_pytest(*arguments)
    again.assert_outcomes(failed=1)


@pytest.mark.parametrize("options", [["--lm-threshold", "t=0.5"], ["--lm-judge=model:Model"]])
def test_the_rerun_command_repeats_what_decides_the_prompt_and_the_score(project: Project, options: list[str]) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    assert "=".join(options) in rerun_of(project.run(*options))


def test_the_rerun_command_names_an_ini_file_as_pytest_takes_it(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    project.write("other.ini", "[pytest]\n")
    _command, *arguments = rerun_of(project.run("-c", "other.ini", "tasks"))
    assert "-cother.ini" in arguments
    project.run_pytest(*arguments).assert_outcomes(failed=1)


# Two tasks of one file, whose items are named after them; prompts with worked examples.
QUIZ = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask

class Quiz(BaseTask[str]):
    NAME = "Quiz"
    DATASET_PATH = "quiz"
    SAMPLE_SPLIT = "test"
    FEWSHOT_SPLIT = "train"
    METRICS = [AccuracyCompletion]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return item["target"]

class Other(Quiz):
    NAME = "Other"
"""
# Names that a shell would take apart.
EVALS = """
import pytest
from pytest_lmeval import eval_task

class TestEvals:
    @eval_task("evals", data=[{"id": "a b"}, {"id": "right"}])
    async def test_row(self, row, lm):
        assert row["id"] == "right"

@eval_task("words")
@pytest.mark.parametrize("word", ["it's", "$HOME [a] b::c"])
def test_word(word, lm):
    assert not word
"""


def commands_on(page: Path) -> set[str]:
    """Return the commands that a report shows for its failed examples."""
    text = page.read_text()
    blocks = dict(re.findall(r'<script type="application/json" id="([^"]*)">(.*?)</script>', text, re.DOTALL))
    overview = json.loads(blocks["report-data"])

    def command(task: str, item: str) -> str:
        target, options = overview["rerun"][task]
        return f"pytest {shlex.quote(target + item)} {options}"

    return {
        command(tally["task"], example.get("item", example["id"]))
        for number, tally in enumerate(overview["examples"])
        for example in json.loads(blocks[f"task-{number}"])["examples"]
        if example["status"] == "failed"
    }


@pytest.mark.parametrize(("folder", "processes"), [(".", "-n0"), ("tasks", "-n2")])
def test_terminal_and_report_give_the_same_command_and_it_runs_the_same_prompt(
    project: Project, monkeypatch: pytest.MonkeyPatch, folder: str, processes: str
) -> None:
    project.write("tasks/task_quiz.py", QUIZ)
    project.write("tasks/quiz/test.csv", "said,target\na,a\nb,c\n")
    project.write("tasks/quiz/train.csv", "said,target\nd,d\ne,e\nf,f\n")
    project.task("tasks/my t.jsonl", *[project.record(id, id, target="no") for id in ("a b", "a-b", "it's")])
    project.write("tasks/test_evals.py", EVALS)
    project.write("other.ini", "[pytest]\n")
    project.write("tasks/other.ini", "[pytest]\n")
    monkeypatch.chdir(project.path / folder)
    options = ["--lm-num-fewshot", "2", "--lm-judge=model:Model", "--lm-report-dir=my reports", "-c", "other.ini"]
    root = ["--rootdir", str(project.path), "-o", f"pythonpath={project.path}"]
    result = project.run(processes, *options, *root, str(project.path / "tasks"))
    assert 1 == result.ret
    said = [line.strip() for line in result.outlines]
    shown = {line.removeprefix("rerun: ") for line in said if line.startswith("rerun: ")}
    reports = project.path / folder / "my reports"
    assert 8 == len(shown)
    assert shown == commands_on(reports / "report.html")
    main(["report", str(reports / "ledger.jsonl"), "-o", str(project.path / "page.html")])
    assert shown == commands_on(project.path / "page.html")
    prompts = {(each.task, each.id): each.prompt for each in read_run(reports / "ledger.jsonl").results or ()}
    for pasted in [
        next(each for each in shown if part in each) for part in ("Other.ex-1", "a-b-2", "test_row[", "HOME")
    ]:
        program, *arguments = shlex.split(pasted)
        assert "pytest" == program
        project.run_pytest(*arguments).assert_outcomes(failed=1)
        (again,) = read_run(reports / "rerun/ledger.jsonl").results or ()
        assert prompts[again.task, again.id] == again.prompt


def test_options_of_other_tasks_do_not_stop_a_rerun_but_stop_a_run(project: Project) -> None:
    project.write("tasks/task_quiz.py", QUIZ)
    project.write("tasks/quiz/test.csv", "subject,said,target\ngeneral,a,a\n")
    project.write("tasks/quiz/train.csv", "subject,said,target\ngeneral,d,d\n")
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"), project.record("b", "x"))
    options = ["--lm-subject=general", "--lm-num-fewshot=1", "--lm-threshold=Quiz=0.5"]
    _command, *arguments = rerun_of(project.run(*options))
    assert options == [argument for argument in arguments if argument in options]
    project.run_pytest(*arguments).assert_outcomes(failed=1)
    assert 4 == project.run(*options, "tasks/t.jsonl").ret


def test_the_report_shows_the_command_of_the_run(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.write("keyed.py", "from model import Model\nclass Keyed(Model):\n    def __init__(self, api_key): pass\n")
    project.run_pytest("--lm-adapter=keyed:Keyed", "--lm-adapter-arg=api_key=hidden", "-k", "not b")
    text = (project.path / "reports/report.html").read_text()
    (command,) = re.findall(r'"command":"(.*?)"', text)
    pytest_, place, *rest = shlex.split(json.loads(f'"{command}"'))
    assert ("pytest", "--basetemp") == (pytest_, place.partition("=")[0])
    assert ["--lm-adapter=keyed:Keyed", "--lm-adapter-arg=api_key=***", "-k", "not b"] == rest[-4:]


def test_a_failure_of_an_adapter_tells_the_adapter_and_the_reason(project: Project) -> None:
    failing = "class Model:\n    name = 'flaky.v2'\n    def generate(self, prompts): raise OSError('no line')\n"
    project.write("model.py", failing)
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run()
    assert 3 == result.ret
    place = "(model.py:3 in generate)"
    result.stdout.fnmatch_lines(
        [f"*t: a could not be scored (error): adapter flaky.v2 raised OSError: no line {place}*"]
    )
    assert "Traceback" not in result.stdout.str()


def test_what_fails_around_an_example_is_the_reason_that_it_has_no_score(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    hook = "import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_call(): raise OSError('disk')\n"
    project.write("conftest.py", hook)
    project.run("--lm-include-per-example")
    (example,) = project.examples().values()
    assert ("error", "not scored: OSError: disk") == (example["status"], example["error"])


def test_the_short_summary_says_what_went_wrong(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    result = project.run("--tb=no", "-rf")
    result.stdout.fnmatch_lines(["FAILED tasks/t.jsonl::a - t: a scored 0*"])


def test_what_an_adapter_prints_is_captured_with_its_example(project: Project) -> None:
    printing = "class Model:\n    def generate(self, prompts): print('hello from the model'); return prompts\n"
    project.write("model.py", printing)
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    result = project.run()
    result.stdout.fnmatch_lines(["*Captured stdout call*", "hello from the model"])
