"""Task files in Python through real runs: classes over a dataset, and lists of conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

# Answers by what the last question is about; as a model would, with words around the answer.
ORACLE = """
import json

ANSWERS = {
    "capital of Chad": "Answer: N'Djamena\\n",
    "capital of Peru": "Cuzco",
    "colour of the sky": "blue",
    "12 eggs": "Half of them, so the answer is 6",
    "def mean": "Sure.\\n```python\\ndef mean(numbers):\\n    return sum(numbers) / len(numbers)\\n```\\nDone.",
    "thirst": "It must be B.",
    "itching": "B",
    "absolute value": "```python\\ndef size(x):\\n    return x\\n```",
}

class Oracle:
    name = "oracle.v1"

    def generate(self, prompts):
        with open("prompts.txt", "a") as file:
            file.writelines(json.dumps(prompt) + "\\n" for prompt in prompts)
        return [next((said for cue, said in ANSWERS.items() if cue in prompt[-300:]), "?") for prompt in prompts]

class Full(Oracle):
    def generate_requests(self, requests):
        from pytest_lmeval import Completion
        with open("requests.txt", "a") as file:
            for request in requests:
                turns = [[turn.role, turn.content] for turn in request.prompt]
                file.write(json.dumps([turns, request.stop, request.max_tokens]) + "\\n")
        return [Completion(text) for text in self.generate([request.text for request in requests])]

class Probable(Oracle):
    def loglikelihood(self, requests):
        from pytest_lmeval import LogProb
        return [LogProb(-0.1 if request.continuation == "A" else -3.0) for request in requests]
"""
QUIZZES = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask, MathReasoningCompletion, ResponseType, Rouge1

class CapitalsQuiz(BaseTask[str]):
    NAME = "Capitals Quiz"
    DATASET_PATH = "capitals"
    SAMPLE_SPLIT = "test"
    FEWSHOT_SPLIT = "train"
    RESPONSE_TYPE = ResponseType.COMPLETION
    METRICS = [AccuracyCompletion]
    SUBJECTS = ["africa", "america"]

    def _get_instruction_text(self, item: dict[str, Any]) -> str:
        return f"Name the capital of {item['country']}.\\n"

    def _get_ground_truth(self, item: dict[str, Any]) -> str:
        return item["capital"]

    def _get_system_prompt_text(self, item: dict[str, Any]) -> str:
        return "You know your geography."

    def _get_cue_text(self, item: dict[str, Any]) -> str:
        return "Answer:"

    def _get_fewshot_target_text(self, item: dict[str, Any]) -> str:
        return f"Answer: {self._get_ground_truth(item)}"

    def _sample_fewshot_examples(self, item: dict[str, Any]) -> list[dict]:
        pool = [other for other in self.dataset[self.FEWSHOT_SPLIT] if other["letter"] != item["country"][0]]
        return self.rnd.sample(pool, min(self.num_fewshot, len(pool)))

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        return completion_text.strip().removeprefix("Answer:").strip()

class Questions(BaseTask[str]):
    NAME = "Questions"
    DATASET_PATH = "questions.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion, "exact_match"]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"Question: {item['question']}\\nAnswer:"

    def _get_ground_truth(self, item):
        return item["answer"]

class WordProblems(BaseTask[str]):
    NAME = "Word Problems"
    DATASET_PATH = "word_problems.jsonl"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion, Rouge1, MathReasoningCompletion]
    SUBJECTS = ["eggs", "flour"]

    def _get_instruction_text(self, item):
        return f"Problem: {item['problem']}\\nSolution:"

    def _get_ground_truth(self, item):
        return item["solution"]

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        import re
        found = re.search(r"answer is (\\d+)", completion_text)
        return found.group(1) if found else completion_text.strip()
"""
CODE = """
from pytest_lmeval.tasks import BaseMetricContext, BaseTask, CodeExecutionPassAtOne

class Cases(BaseMetricContext):
    test_cases: list
    entry_point: str

class Functions(BaseTask[str]):
    NAME = "Functions"
    DATASET_PATH = "functions"
    SAMPLE_SPLIT = "test"
    METRICS = [CodeExecutionPassAtOne]
    SUBJECTS = ["python"]

    def _get_instruction_text(self, item):
        return f"Finish this:\\n{item['prompt']}"

    def _get_ground_truth(self, item):
        return item["solution"]

    def _get_context(self, item) -> Cases:
        return Cases(test_cases=item["tests"], entry_point=item["name"])
"""
TALKS = """
import re
from pytest_lmeval.tasks import Task, execute_code, load_dataset, render_mc

class Diagnoses(Task):
    def __init__(self, split, **kwargs):
        super().__init__(**kwargs)
        assert split in ("train", "test")
        self.ds = load_dataset("clinic/diagnoses", split=split)
        self.letters = ("A", "B", "C")

    @property
    def eval_type(self):
        return "categorical"

    def num_examples(self):
        return len(self.ds)

    def get_example(self, index):
        row = self.ds[index]
        letters = self.letters[:len(row["options"])]
        return {
            "messages": [
                {"role": "user", "content": render_mc(f"{row['symptoms']}: what is it?", letters, row["options"])},
                {"role": "assistant", "content": letters[row["options"].index(row["diagnosis"])]},
            ],
            "letters": letters,
            "specialty": row.get("specialty", "general"),
        }

    def evaluate(self, conversation, assistant_response):
        assert assistant_response in conversation["letters"]
        return assistant_response == conversation["messages"][-1]["content"]

class Programs(Task):
    def __init__(self, split, **kwargs):
        super().__init__(**kwargs)
        self.ds = load_dataset("clinic/programs", split=split)

    @property
    def eval_type(self):
        return "generative"

    def num_examples(self):
        return len(self.ds)

    def get_example(self, index):
        row = self.ds[index]
        return {
            "messages": [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["solution"]},
            ],
            "tests": row["tests"],
        }

    def code_in(self, completion):
        return re.findall(r"```python\\n(.*?)\\n```", completion, re.DOTALL)[0]

    def evaluate(self, conversation, completion):
        return execute_code(self.code_in(completion) + "\\n\\n" + conversation["tests"], timeout=2.0).success

class PartlyRightPrograms(Programs):
    threshold = 0.5

    def evaluate(self, conversation, completion):
        tests = conversation["tests"].splitlines()
        code = self.code_in(completion)
        return sum(execute_code(f"{code}\\n\\n{test}", timeout=2.0).success for test in tests) / len(tests)
"""


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def everything(project: Project) -> Project:
    """Provide a project with task files of both kinds and their data beside them."""
    project.write("oracle.py", ORACLE)
    for name, source in (("quizzes", QUIZZES), ("code", CODE), ("talks", TALKS)):
        project.write(f"tasks/task_{name}.py", source)
    countries = [("Chad", "N'Djamena", "africa"), ("Peru", "Lima", "america")]
    rows = [{"country": country, "capital": capital, "subject": subject} for country, capital, subject in countries]
    project.write("tasks/capitals/test.jsonl", _lines(*rows))
    shots = [("Cuba", "Havana"), ("Mali", "Bamako"), ("Iran", "Tehran")]
    shown = [{"country": country, "capital": capital, "letter": country[0]} for country, capital in shots]
    project.write("tasks/capitals/train.jsonl", _lines(*shown))
    project.write("tasks/questions.csv", "question,answer\nWhat is the colour of the sky?,blue\n")
    project.write("tasks/word_problems.jsonl", _lines({"problem": "Of 12 eggs half break.", "solution": "6"}))
    function = {"prompt": "def mean(numbers):", "solution": "-", "tests": ["mean([1, 3]) == 2"], "name": "mean"}
    project.write("tasks/functions/test.jsonl", _lines(function))
    diagnoses: list[dict[str, Any]] = [
        {"symptoms": "thirst", "diagnosis": "diabetes", "options": ["gout", "diabetes"], "specialty": "endocrine"},
        {"symptoms": "itching", "diagnosis": "eczema", "options": ["eczema", "gout", "flu"]},
    ]
    project.write("tasks/clinic/diagnoses/test.jsonl", _lines(*diagnoses))
    program = {"prompt": "absolute value", "solution": "-", "tests": "assert size(2) == 2\nassert size(-2) == 2"}
    project.write("tasks/clinic/programs.jsonl", _lines(program))
    return project


SCORES = {
    "Capitals Quiz": 0.5,
    "Diagnoses": 0.5,
    "Functions": 1.0,
    "PartlyRightPrograms": 0.5,
    "Programs": 0.0,
    "Questions": 1.0,
    "Word Problems": 1.0,
}


def _asked(project: Project, file: str = "prompts.txt") -> list[Any]:
    return [json.loads(line) for line in (project.path / file).read_text().splitlines()]


def test_every_kind_of_task_runs_alike_in_one_process_and_in_two(everything: Project) -> None:
    arguments = ("tasks", "--lm-adapter=oracle:Oracle", "--lm-gate=tasks", "--lm-include-per-example")
    serial = everything.run_pytest(*arguments)
    board = everything.board()
    parallel = everything.run_pytest(*arguments, "-n2", "--lm-report-dir=two")

    serial.assert_outcomes(passed=6)
    assert [0, 0] == [serial.ret, parallel.ret]
    assert SCORES == {row["task"]: row["score"] for row in board["tasks"]}
    assert board["digest"] == everything.board("two")["digest"]
    rows = {row["task"]: row for row in board["tasks"]}
    assert {"africa": 1.0, "america": 0.0} == {
        name: s["score"] for name, s in rows["Capitals Quiz"]["subjects"].items()
    }
    assert {"endocrine", "general"} == set(rows["Diagnoses"]["subjects"])
    assert {"completion_accuracy": 1.0, "math_equal": 1.0, "rouge_1": 1.0} == rows["Word Problems"]["metrics"]
    assert [0.5, 1] == [rows["PartlyRightPrograms"]["threshold"], rows["PartlyRightPrograms"]["correct"]]
    assert "N'Djamena" == everything.examples()["Capitals Quiz:ex-0"]["prediction"]
    # A model without roles reads the cue on the line below the question.
    assert "You know your geography.\n\nName the capital of Chad.\nAnswer:" in _asked(everything)


def test_options_choose_few_shots_subjects_and_examples(everything: Project) -> None:
    options = ("--lm-num-fewshot=2", "--lm-subject=africa", "--lm-limit=1", "--lm-adapter=oracle:Full")
    result = everything.run_pytest("tasks/task_quizzes.py", "-k", "Capitals", *options)

    # Of the other tasks only the one whose items name no subject is left to deselect.
    result.assert_outcomes(passed=1, deselected=1)
    ((turns, stop, max_tokens),) = _asked(everything, "requests.txt")
    assert ["system", "user", "assistant", "user", "assistant", "user", "assistant"] == [role for role, _ in turns]
    assert ["Name the capital of Chad.\n", "Answer:"] == [content for _, content in turns[-2:]]
    # The class draws its own: none of the country's letter.
    assert {"Answer: Bamako", "Answer: Tehran"} == {turns[2][1], turns[4][1]}
    assert [[], None] == [stop, max_tokens]


def test_one_example_runs_by_its_node_id_and_its_file_once(everything: Project) -> None:
    everything.write("tasks/task_talks.py", TALKS + "\nwith open('imports.txt', 'a') as file: file.write('once ')\n")
    result = everything.run_pytest("tasks/task_talks.py::Diagnoses.ex-0", "--lm-adapter=oracle:Oracle")

    result.assert_outcomes(passed=1)
    assert "once " == (everything.path / "imports.txt").read_text()


def test_letters_are_chosen_by_probability_where_the_adapter_tells(everything: Project) -> None:
    arguments = ("tasks/task_talks.py", "-k", "Diagnoses", "--lm-gate=none", "--lm-include-per-example")
    result = everything.run_pytest(*arguments, "--lm-adapter=oracle:Probable")
    examples = everything.examples()

    assert ["A", "A"] == [examples[f"Diagnoses:ex-{number}"]["prediction"] for number in (0, 1)]
    assert [0.0, 1.0] == [examples[f"Diagnoses:ex-{number}"]["score"] for number in (0, 1)]
    assert {"A": -0.1, "B": -3.0} == examples["Diagnoses:ex-0"]["details"]["logprobs"]
    result.assert_outcomes(passed=1, deselected=2)
    assert not (everything.path / "prompts.txt").exists()


def test_bad_task_files_stop_the_run_before_the_model_is_asked(everything: Project) -> None:
    everything.write("tasks/task_broken.py", "import pytest_lmeval\nx = 1 / 0\n")
    everything.write("tasks/task_quizzes.py", QUIZZES.replace("item['country']", "item['land']"))
    everything.write("tasks/task_twice.py", CODE.replace("class Functions", "class Again"))
    result = everything.run_pytest("tasks", "--lm-adapter=oracle:Oracle")

    assert 2 == result.ret
    result.stdout.fnmatch_lines_random(
        [
            "tasks/task_broken.py:2: import_error _module: ZeroDivisionError: division by zero (tasks/*.py:2 *",
            "tasks/task_quizzes.py:4: python_error CapitalsQuiz._get_instruction_text: item 0, *: KeyError: 'land' *",
            "tasks/task_twice.py: the task name 'Functions' is taken by tasks/task_code.py*",
        ]
    )
    assert not (everything.path / "prompts.txt").exists()


def test_bad_items_can_be_left_out(everything: Project) -> None:
    everything.write("tasks/questions.csv", "question,answer,id\nWhat is the colour of the sky?,blue,a\nWhat?,x,a\n")
    result = everything.run_pytest(
        "tasks/task_quizzes.py", "--lm-adapter=oracle:Oracle", "--lm-allow-bad-tasks", "-kQuestions", "-Wignore"
    )

    result.assert_outcomes(passed=1, deselected=3)
    assert "duplicate_task_id id: item 1: 'a' is the id of item 0 already" in str(everything.board()["bad_records"])


def test_what_raises_while_it_scores_is_an_error_of_its_example_with_the_line(everything: Project) -> None:
    everything.write("tasks/task_talks.py", TALKS.replace("completion, re.DOTALL)[0]", "completion, re.DOTALL)[1]"))
    result = everything.run_pytest("tasks/task_talks.py", "--lm-adapter=oracle:Oracle", "--lm-gate=none")

    assert 3 == result.ret
    result.stdout.fnmatch_lines(
        ["Programs: ex-0 could not be scored (error): Programs.evaluate raised IndexError: *talks.py:5? in code_in)"]
    )
    assert [4, 2] == [everything.board()["counts"][kind] for kind in ("collected", "errors")]


def test_formatting_is_checked_recorded_and_checked_again(everything: Project) -> None:
    first = everything.run_pytest("--lm-check-formatting")
    update = everything.run_pytest("--lm-check-formatting=update", "-n2")
    same = everything.run_pytest("--lm-check-formatting")
    everything.write("tasks/task_code.py", CODE.replace("Finish this", "Complete this"))
    changed = everything.run_pytest("--lm-check-formatting=check", "tasks")

    first.assert_outcomes(failed=21)
    first.stdout.fnmatch_lines(["Functions: the first prompt in the format chatml is not recorded yet"])
    assert [0, 0] == [update.ret, same.ret]
    same.assert_outcomes(passed=21)
    changed.assert_outcomes(failed=3, passed=18)
    changed.stdout.fnmatch_lines(
        ["Functions: the first prompt in the format llama3 was *, is *", "    | *Complete this:", "*=update"]
    )
    recorded = json.loads((everything.path / "tasks" / "formatting.json").read_text())
    assert SCORES.keys() == recorded["prompts"].keys()
    assert not (everything.path / "reports").exists()


def test_a_python_file_of_somebody_else_stays_what_it_is(project: Project) -> None:
    project.write("tasks/task_queue.py", "def test_of_theirs():\n    pass\n")
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text() + "python_files = task_*.py\n")

    project.run_pytest().assert_outcomes(passed=1)
