"""What a failed example tells its reader: everything about the answer, nothing about this plugin's insides."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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


@pytest.mark.parametrize("style", ["--tb=long", "--tb=short", "--tb=native", "--tb=line", "--full-trace"])
def test_no_style_of_traceback_brings_one_back(project: Project, style: str) -> None:
    project.task("tasks/quiz.jsonl", project.record("a", "x", target="y"))
    result = project.run(style)
    result.assert_outcomes(failed=1)
    assert "Traceback" not in result.stdout.str()
    assert "plugin/collector.py" not in result.stdout.str()


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


def test_the_rerun_command_runs_just_this_example_with_the_same_model(project: Project) -> None:
    odd = "it's [a] (b) $HOME"
    project.task("tasks/my quiz.jsonl", project.record("fine", "x"), project.record(odd, "x", target="y"))
    project.write("sized.py", "from model import Model\nclass Sized(Model):\n    def __init__(self, size): pass\n")
    first = project.run("--lm-adapter-arg=size=3", "--lm-adapter=sized:Sized")
    _command, *arguments = rerun_of(first)
    again = project.run_pytest(*arguments)
    again.assert_outcomes(failed=1)


@pytest.mark.parametrize("options", [["--lm-num-fewshot=0"], ["--lm-num-fewshot", "0"], ["--lm-judge=model:Model"]])
def test_the_rerun_command_repeats_what_decides_the_prompt_and_the_score(project: Project, options: list[str]) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    assert "=".join(options) in rerun_of(project.run(*options))


def test_the_rerun_command_names_an_ini_file_as_pytest_takes_it(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x", target="y"))
    project.write("other.ini", "[pytest]\n")
    _command, *arguments = rerun_of(project.run("-c", "other.ini", "tasks"))
    assert "-cother.ini" in arguments
    project.run_pytest(*arguments).assert_outcomes(failed=1)


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


def test_the_failure_text_is_the_same_from_a_worker(project: Project) -> None:
    project.small_tasks()
    wanted = ["*arith_2 scored 0, threshold 1*", "*output: 5*", "*rerun: pytest tasks/arithmetic.jsonl::arith_2*"]
    project.run("-n2").stdout.fnmatch_lines(wanted)
