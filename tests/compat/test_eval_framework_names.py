"""What task files of eval-framework import: the names, the styles, and the metrics that look at more than a text."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import run_task, tasks
from pytest_lmeval.adapters.toy import ToyAdapter
from pytest_lmeval.compat import eval_framework
from pytest_lmeval.compat.eval_framework import (
    BPBStyle,
    ClozeStyle,
    DistributionalCorrectnessScore,
    LanguageRawConsistencyChecker,
    MCCompletionStyle,
    MCStyle,
    TernaryScore,
    extract_answers,
    normalized_gold_from_solution,
    shuffle_correct_with_distractors,
)
from pytest_lmeval.compat.eval_framework.minerva import is_same_text
from pytest_lmeval.errors import UsageError
from pytest_lmeval.tasks import Language
from pytest_lmeval.tasks.judging import JudgedAnswer
from tests.conftest import Project
from tests.formats.python.conftest import TaskFolder, changed_quiz

CHOICES = ["x", "y", "z"]


@pytest.fixture
def folder(tmp_path: Any) -> TaskFolder:
    """Provide a folder with rows that have choices."""
    made = TaskFolder(tmp_path)
    made.data("quiz.jsonl", [{"q": "Which?", "a": "x"}])
    return made


def test_the_names_are_sorted_and_there() -> None:
    assert sorted(set(eval_framework.__all__)) == sorted(eval_framework.__all__)
    assert all(hasattr(eval_framework, name) for name in eval_framework.__all__)


@pytest.mark.parametrize(
    ("style", "question", "truth", "completions", "shown"),
    [
        (MCStyle(), "Question: q\nA. x\nB. y\nC. z\n", " B", [" A", " B", " C"], "Answer: B"),
        (
            MCStyle(space_prefixed_labels=True),
            "Question: q\n A. x\n B. y\n C. z\n",
            " B",
            [" A", " B", " C"],
            "Answer: B",
        ),
        (MCCompletionStyle(cue_text=""), "Question: q\nA. x\nB. y\nC. z\n", "y", None, " y"),
        (ClozeStyle(), "Question: q\n", " y", [" x", " y", " z"], "Answer: y"),
        (ClozeStyle("", "", trailing_newline=False, leading_space_continuations=False), "q", "y", CHOICES, "y"),
        (BPBStyle.for_language(Language.DEU), "Frage: q\n", " y", [" y"], "Antwort: y"),
    ],
)
def test_a_style_writes_the_texts(
    style: Any, question: str, truth: str, completions: list[str] | None, shown: str
) -> None:
    assert question == style.get_instruction_text("q", CHOICES)
    assert truth == style.get_ground_truth(CHOICES, 1)
    assert completions == style.get_possible_completions(CHOICES, 1)
    assert shown == style.get_fewshot_target_text(CHOICES, 1)


def test_the_style_of_one_text_needs_the_right_one() -> None:
    with pytest.raises(ValueError, match="correct_index"):
        BPBStyle().get_possible_completions(CHOICES)


def test_choices_are_shuffled_by_a_text_alone() -> None:
    shuffled, place = shuffle_correct_with_distractors("x", ["y", "z"], "seed")

    assert ("x", sorted(CHOICES)) == (shuffled[place], sorted(shuffled))
    assert (shuffled, place) == shuffle_correct_with_distractors("x", ["y", "z"], "seed")


IMPORTS = "from pytest_lmeval.compat.eval_framework import *\n"
STYLED = """
class Quiz(BaseTask[str]):
    NAME = "quiz"
    DATASET_PATH = "quiz.jsonl"
    TASK_STYLER = MCStyle()
    def _get_raw_question(self, item): return item["q"]
    def _get_choices(self, item): return ["x", "y"]
    def _get_correct_index(self, item): return 0
"""


def test_a_class_with_a_style_writes_where_its_data_are_alone(folder: TaskFolder) -> None:
    task = folder.task(IMPORTS + STYLED)

    assert "Question: Which?\nA. x\nB. y\nAnswer:" == task.examples[0].prompt
    assert ["accuracy_loglikelihood", "accuracy_norm_loglikelihood", "byte_probability"] == [
        measure.name for measure in task.measures
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MCStyle()", "object()", "bad_type TASK_STYLER: Quiz: expected MCStyle, ClozeStyle, BPBStyle or another"),
        ("_get_choices", "_choices_of", "missing_required Quiz._get_choices: loglikelihoods tasks need this method"),
    ],
)
def test_a_style_that_is_none_and_a_method_that_it_needs_are_refused(
    folder: TaskFolder, old: str, new: str, message: str
) -> None:
    assert message.partition(" ")[2] in folder.fault(IMPORTS + STYLED.replace(old, new))


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("TernaryScore", "ternary_score needs RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS"),
        ("PartialEvalAccuracy", "partial_eval_accuracy needs RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS"),
    ],
)
def test_a_metric_of_log_probabilities_needs_them(folder: TaskFolder, metrics: str, message: str) -> None:
    assert message in folder.fault(IMPORTS + changed_quiz({"[AccuracyCompletion]": f"[{metrics}]"}))


def test_a_metric_whose_package_is_missing_is_told_before_anything_is_asked(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = "[AccuracyCompletion, LanguageRawConsistencyChecker]"
    monkeypatch.setattr(LanguageRawConsistencyChecker, "PACKAGE", "no_such_package")
    task = folder.task(IMPORTS + changed_quiz({"[AccuracyCompletion]": metrics}))

    with pytest.raises(UsageError, match=r"'language_consistency_raw' needs no_such_package.*pip install 'lingua"):
        run_task(task, ToyAdapter())


def test_languages_are_compared_and_none_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[LanguageRawConsistencyChecker.__module__]
    monkeypatch.setattr(module, "_language_of", {"": "", "Hello": "en", "Hallo": "de"}.__getitem__)
    check = LanguageRawConsistencyChecker().of_answer

    def answer(raw: str, asked: str, **extras: str) -> JudgedAnswer:
        return JudgedAnswer("", "", (), extras, (eval_framework.Message("user", asked),), raw)

    assert [1.0, 0.0, None, 1.0] == [
        check(answer("Hello", "Hello")),
        check(answer("Hello", "Hallo")),
        check(answer("", "")),
        check(answer("Hello", "Hallo", language="de")),
    ]


def test_not_to_know_is_between_right_and_wrong() -> None:
    options = {" x": -1.0, " y": -2.0, "?": -0.1}
    surest = dict.fromkeys(options, -4.0)

    assert [0.5, 0.5] == [
        TernaryScore().of_loglikelihoods(options, [" x"]),
        TernaryScore().of_loglikelihoods({"?": -0.1}, [" x"]),
    ]
    assert [1.0, 0.0] == [TernaryScore().of_loglikelihoods(surest, [truth]) for truth in (" X", " z")]
    assert 0.5 < DistributionalCorrectnessScore().of_loglikelihoods({" x": -0.1, " y": -9.0, "?": -9.0}, [" x"]) <= 1


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Final Answer: The final answer is $x = 3$ dollars. I hope it is correct.", ["3"]),
        ("So \\boxed{\\frac12}", ["\\frac{1}{2}"]),
        ("Final Answer: The final answer is 4. I hope it is correct. \\boxed{5}", ["4", "5"]),
        ("first $1$, then $1,000$", ["1000"]),
        ("it is $5$, or so", ["5"]),
        ("it costs $5", ["itcosts5"]),
        ("\\boxed 7$ it is", ["7"]),
        ("\\fbox{8}", ["\\fbox{8}"]),
        ("\\boxed{9", ["\\boxed{9"]),
        ("12 feet", ["12"]),
    ],
)
def test_answers_are_found_as_minerva_does(text: str, answers: list[str]) -> None:
    assert answers == extract_answers(text)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("\\tfrac12", "\\frac{1}{2}", True),
        ("\\left( 3 \\right)", "(3)", True),
        ("45^\\circ", "45", True),
        (".5", "0.5", True),
        ("x = 3", "3", True),
        ("3", "4", False),
    ],
)
def test_spellings_of_one_answer_are_the_same_text(first: str, second: str, same: bool) -> None:
    assert same is is_same_text(first, second)


def test_a_solution_without_a_box_has_no_answer() -> None:
    assert (None, "2") == (normalized_gold_from_solution("It is 2."), normalized_gold_from_solution("\\boxed{2}"))
    assert ["x", "x"] == extract_answers("$x$ is $1$", use_cot=False)
    assert ["5", "5"] == extract_answers("it is $5$", use_cot=False)
    with pytest.raises(ValueError, match="expected 'minerva'"):
        extract_answers("", cot_style="other")


def test_the_names_of_task_files_are_there_too_and_mean_the_same() -> None:
    others = [name for name in tasks.__all__ if getattr(eval_framework, name, None) is not getattr(tasks, name)]
    assert ["BaseTask"] == others
    assert issubclass(eval_framework.BaseTask, tasks.BaseTask)
    assert [] == sorted({*tasks.__all__} - {*eval_framework.__all__})


def test_what_the_guide_imports_from_the_module_is_there() -> None:
    guide = (Path(__file__).parents[2] / "docs/python-tasks.md").read_text("utf-8")
    listed = guide.partition("It also has")[2].partition("\n- ")[0]
    names = re.findall(r"`(\w+)`", listed)
    assert [] == [name for name in names if not hasattr(eval_framework, name)]
    assert 10 < len(names)


# The names that the benchmark modules of eval-framework's main branch import from eval-framework (August 2026).
IMPORTED = """
AccuracyCompletion AccuracyCompletionOLMES AccuracyLoglikelihood AccuracyNormLoglikelihood
BIG_CODE_BENCH_PACKAGE_MAPPING BPBStyle BaseMetricContext BaseTask BitsPerByteLoglikelihood CallableSerializer
ClozeStyle CodeCompletionAssertion CodeExecutionPassAtOne CodeExecutionPassAtOneContext
CodeExecutionPassAtOneWithCodebench ConfidenceWeightedAccuracy DistributionalCorrectnessScore DropF1ExactMatch
DropMetricContext F1 F1SquadNormalized FROZEN_HF_REVISIONS_LOCKFILE HF_REVISIONS_LOCKFILE IFEvalMetric
IFEvalMetricContext Language LanguageRawConsistencyChecker MCStyle MathMinervaCompletion MathMinervaCompletionRelaxed
MathReasoningCompletion Message MultiPLECodeAssertion MultiPLEMetricContext NO_SUBJECT PartialEvalAccuracy RANDOM_SEED
ResponseType Role Sample SubjectType TernaryScore _parse_unittest_output answer_key_to_index extract_answers
get_n_letters normalized_gold_from_solution unittest_merge_snippets
"""


def test_the_names_that_its_newest_modules_import_are_there() -> None:
    assert [] == [name for name in IMPORTED.split() if not hasattr(eval_framework, name)]


PROGRAMS = """from pytest_lmeval.compat.eval_framework import *

class Context(BaseMetricContext):
    tail: str

class Printing(BaseTask[str]):
    NAME, DATASET_PATH, RESPONSE_TYPE = "printing", "rows.jsonl", ResponseType.COMPLETION
    METRICS = [CodeCompletionAssertion]
    def _get_instruction_text(self, item): return "say: " + item["program"]
    def _get_ground_truth(self, item): return "Success"
    def _get_context(self, item): return Context(tail="print(f(2) == 4)")
    def post_process_generated_completion(self, text, sample=None): return text + "\\n" + sample.context.tail

class Tested(BaseTask[str]):
    NAME, DATASET_PATH, RESPONSE_TYPE = "tested", "rows.jsonl", ResponseType.COMPLETION
    METRICS = [CodeExecutionPassAtOne]
    def _get_instruction_text(self, item): return "say: " + item["program"]
    def _get_ground_truth(self, item): return item["program"]
    def _get_context(self, item):
        return CodeExecutionPassAtOneContext(
            run_env="python", code_prompt="", test_code=item["tests"], package_downloads=BIG_CODE_BENCH_PACKAGE_MAPPING,
            snippet_merge_fn=CallableSerializer().encode(unittest_merge_snippets),
            output_parse_fn=CallableSerializer().encode(_parse_unittest_output),
        )
"""
TESTS = "import unittest\nclass Cases(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(2), 4)\n"


def test_programs_that_report_for_themselves_run_and_are_marked(project: Project) -> None:
    project.write("tasks/task_programs.py", PROGRAMS)
    rows = ({"program": program, "tests": TESTS} for program in ("f = lambda x: 2 * x", "f = abs", "def f("))
    project.write("tasks/rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.run()
    found = project.ledger()

    scores = {name: example["score"] for name, example in found.items()}
    for task in ("printing", "tested"):
        assert [1.0, 0.0, 0.0] == [scores[f"{task}:ex-{number}"] for number in range(3)]
    assert {True} == {example["details"].get("forgeable") for example in found.values()}
    assert "1 of 1 tests failed" in found["tested:ex-1"]["details"]["reason"]


INSTRUCTIONS = """from pytest_lmeval.compat.eval_framework import *

class Instructed(BaseTask[str]):
    NAME, DATASET_PATH, RESPONSE_TYPE = "instructed", "rows.jsonl", ResponseType.COMPLETION
    METRICS = [IFEvalMetric]
    def _get_instruction_text(self, item): return "say: yes"
    def _get_ground_truth(self, item): return None
    def _get_context(self, item):
        return IFEvalMetricContext(key=1, instruction_id_list=[], prompt="", additional_kwargs=[])
"""


def test_a_metric_that_cannot_run_here_says_what_it_needs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eval_framework.IFEvalMetric, "PACKAGE", "no_such_package")
    folder = TaskFolder(project.path / "tasks")
    folder.data("rows.jsonl", [{"q": "?"}])
    with pytest.raises(UsageError, match=r"'ifeval' needs no_such_package, .*pip install 'lm-eval\[ifeval\]'"):
        run_task(folder.task(INSTRUCTIONS), ToyAdapter())

    context = 'MultiPLEMetricContext(prompt="", tests="", language="rs")'
    other = INSTRUCTIONS.replace("[IFEvalMetric]", "[MultiPLECodeAssertion]")
    other = re.sub(r"IFEvalMetricContext\(.*\)", context, other)
    assert "a program in 'rs' needs a container of the package llm-sandbox" in folder.fault(other)


def test_no_ground_truth_is_refused_if_a_metric_needs_one(folder: TaskFolder) -> None:
    source = INSTRUCTIONS.replace("[IFEvalMetric]", "[IFEvalMetric, AccuracyCompletion]")
    folder.data("rows.jsonl", [{"q": "?"}])
    assert "expected text or a list of texts, got None" in folder.fault(source)


def test_the_revision_of_the_data_is_the_one_of_the_original() -> None:
    class Quiz(tasks.BaseTask[str]):
        DATASET_PATH, HF_REVISION = "owner/quiz", "abc"

    assert "abc" == Quiz().hf_revision


RUNS = """from pytest_lmeval.compat.eval_framework import BaseTask, CodeExecutionPassAtOne, ResponseType, Rouge1, Score

class Quiz(BaseTask[str]):
    NAME = "quiz"
    DATASET_PATH = "quiz.jsonl"
    RESPONSE_TYPE = ResponseType.COMPLETION
    METRICS = [Rouge1]
    def _get_instruction_text(self, item): return "say: yes"
    def _get_ground_truth(self, item): return "yes"
"""


def test_a_run_scores_a_class_that_imports_all_from_there(project: Project) -> None:
    project.write("tasks/task_quiz.py", RUNS)
    project.write("tasks/quiz.jsonl", '{"q": "Which?"}\n')
    assert 0 == project.run().ret
    assert 1.0 == project.board()["overall_score"]
