"""Classes over a dataset: what is asked, how it is scored, and what makes them bad task files."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.sandbox import open_sandbox
from pytest_lmeval.task import Tools, render
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Message, Score

from .conftest import ROWS, TaskFolder, changed_quiz


def _asked(task: Any, place: int = 0) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in task.examples[place].messages]


def _scored(task: Any, text: str, place: int = 0) -> Score:
    score: Score = task.score(task.examples[place], [Completion(text)], Tools())
    return score


# What is asked


def test_a_class_becomes_a_task_with_an_example_per_item(folder: TaskFolder) -> None:
    task = folder.quiz()

    assert ["quiz", "completion_accuracy", 6] == [task.name, task.metric, len(task.examples)]
    first = task.examples[0]
    assert ["ex-0", ("answer 0",), "Q: question 0", 3] == [first.id, first.targets, first.prompt, first.line]


EVERYTHING = """
def _get_system_prompt_text(self, item): return "Be brief."
def _get_initial_prompt_text(self, item): return "Some questions."
def _get_fewshot_target_text(self, item): return f"It is {item['a']}."
def _get_cue_text(self, item): return "It is"
"""


def test_the_messages_are_system_then_worked_examples_then_the_question_then_the_cue(folder: TaskFolder) -> None:
    folder.data("shots/test.jsonl", ROWS[:1])
    folder.data("shots/train.jsonl", ROWS[1:2])
    task = folder.quiz({'"quiz.jsonl"': '"shots"'}, EVERYTHING, num_fewshot=1)

    assert [
        ("system", "Be brief."),
        ("user", "Some questions.\n\nQ: question 1"),
        ("assistant", "It is answer 1."),
        ("user", "Q: question 0"),
        ("assistant", "It is"),
    ] == _asked(task)
    assert "Q: question 0It is" == task.examples[0].prompt
    task = folder.quiz(added='def _get_initial_prompt_text(self, item): return "Now:"')
    assert [("user", "Now:\n\nQ: question 0")] == _asked(task)


def test_a_model_without_roles_reads_the_contents_directly_one_behind_the_other(folder: TaskFolder) -> None:
    folder.data("shots/test.jsonl", ROWS[:1])
    folder.data("shots/train.jsonl", ROWS[1:2])
    task = folder.quiz({'"quiz.jsonl"': '"shots"'}, EVERYTHING, num_fewshot=1)
    example = task.examples[0]
    text = "Be brief.\n\nSome questions.\n\nQ: question 1It is answer 1.\n\nQ: question 0It is"

    assert text == task.requests(example, render(example))[0].text
    assert text == task.requests(example, list(example.messages))[0].text


def test_the_request_has_the_conversation_the_stop_sequences_and_the_length(folder: TaskFolder) -> None:
    task = folder.quiz(
        added="""
        def __init__(self, num_fewshot=0):
            super().__init__(num_fewshot)
            self.stop_sequences = ["\\n", "Q:"]
            self.max_tokens = 12
        """
    )
    example = task.examples[1]

    messages = (Message("user", "Q: question 1"),)
    expected = Generate(messages, "quiz", "ex-1", stop=("\n", "Q:"), max_tokens=12)
    assert (expected,) == task.requests(example, example.messages)


def test_an_item_may_bring_its_own_id(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [{"id": 7, "q": "a", "a": "b"}, {"id": "x y", "q": "a", "a": "b"}])

    assert ["7", "x y"] == [example.id for example in folder.quiz().examples]


# Few-shots


def test_few_shots_are_those_of_the_documented_generator(folder: TaskFolder) -> None:
    folder.data("shots/test.jsonl", ROWS[:3])
    folder.data("shots/train.jsonl", ROWS[3:])
    task = folder.quiz({'"quiz.jsonl"': '"shots"'}, num_fewshot=2)

    expected = [row["q"] for row in random.Random(1234 + 1).sample(ROWS[3:], 2)]
    assert [f"Q: {text}" for text in expected] == [text for role, text in _asked(task, 1)[:-1] if role == "user"]


OWN_SAMPLING = """
def _sample_fewshot_examples(self, item):
    return self.rnd.sample(self.dataset[self.FEWSHOT_SPLIT], self.num_fewshot)
"""


OWN_LOADING = "def _load_hf_dataset(self, **options):\n    return super()._load_hf_dataset(**options)"


@pytest.mark.parametrize("added", ["", OWN_SAMPLING, OWN_LOADING], ids=["default", "own sampling", "own loading"])
def test_an_item_is_never_its_own_worked_example(folder: TaskFolder, added: str) -> None:
    task = folder.quiz(added=added, num_fewshot=5)

    for place in range(6):
        *shots, question = [text for role, text in _asked(task, place) if role == "user"]
        assert f"Q: question {place}" == question
        assert sorted(f"Q: question {other}" for other in range(6) if other != place) == sorted(shots)


def test_the_run_decides_the_number_of_few_shots_unless_the_class_fixes_it(folder: TaskFolder) -> None:
    own = "def __init__(self, num_fewshot=2):\n    super().__init__(num_fewshot)"

    assert [5, 1, 3] == [len(_asked(folder.quiz(added=own, num_fewshot=number))) for number in (None, 0, 1)]
    fixed = own.replace("(num_fewshot)", "(num_fewshot=1)")
    assert 3 == len(_asked(folder.quiz(added=fixed, num_fewshot=4)))


def test_a_class_that_refuses_the_number_of_few_shots_says_how_the_run_does_without_it(folder: TaskFolder) -> None:
    own = "def __init__(self, num_fewshot=0):\n    assert num_fewshot == 0, 'zero shots only'\n    super().__init__()"

    fault = folder.quiz_fault(added=own, num_fewshot=2)
    assert re.search(r"zero shots only.*; it was given --lm-num-fewshot=2: .* --lm-allow-bad-tasks", fault)


def test_filtering_by_subject_changes_no_prompt(folder: TaskFolder) -> None:
    rows = [{**row, "subject": "odd" if number % 2 else "even"} for number, row in enumerate(ROWS)]
    folder.data("quiz.jsonl", rows)
    whole, odd = folder.quiz(num_fewshot=2), folder.quiz(num_fewshot=2, subjects=("odd",))

    assert ["ex-1", "ex-3", "ex-5"] == [example.id for example in odd.examples]
    assert [_asked(whole, 1), _asked(whole, 3)] == [_asked(odd, 0), _asked(odd, 1)]


# Subjects


SUBJECTS = {"METRICS =": 'SUBJECTS = ["north", "south"]\n    METRICS ='}


def test_items_of_other_subjects_are_left_out(folder: TaskFolder) -> None:
    subjects = ["north", "east", "south"]
    folder.data("quiz.jsonl", [{**ROWS[0], "subject": subject} for subject in subjects])

    assert [("ex-0", "north"), ("ex-2", "south")] == [
        (example.id, example.category) for example in folder.quiz(SUBJECTS).examples
    ]


def test_items_without_a_subject_are_all_kept(folder: TaskFolder) -> None:
    assert [""] * 6 == [example.category for example in folder.quiz(SUBJECTS).examples]


def test_a_folder_may_have_a_folder_for_each_subject(folder: TaskFolder) -> None:
    folder.data("places/north/test.jsonl", ROWS[:2])
    folder.data("places/south/test.jsonl", ROWS[2:3])
    task = folder.quiz({**SUBJECTS, '"quiz.jsonl"': '"places"'})

    assert ["north", "north", "south"] == [example.category for example in task.examples]


def test_a_subject_that_has_no_folder_beside_the_others_is_named(folder: TaskFolder) -> None:
    folder.data("places/north/test.jsonl", ROWS[:2])

    assert "bad_value Quiz.SUBJECTS: places has no folder for 'south'; it has north" in folder.quiz_fault(
        {**SUBJECTS, '"quiz.jsonl"': '"places"'}
    )


PLACES = {**SUBJECTS, '"quiz.jsonl"': '"places"'}


def _write_places(folder: TaskFolder, *subjects: str) -> None:
    for subject in subjects:
        rows = [{"q": f"{subject} {number}", "a": "yes"} for number in range(5)]
        folder.data(f"places/{subject}/test.jsonl", rows[:2])
        folder.data(f"places/{subject}/train.jsonl", rows[2:])


def test_few_shots_are_drawn_within_the_subject_by_its_own_place(folder: TaskFolder) -> None:
    _write_places(folder, "north", "south")
    task = folder.quiz(PLACES, num_fewshot=2)

    for subject, first in (("north", 0), ("south", 2)):
        drawn = random.Random(1234 + 1).sample([f"Q: {subject} {number}" for number in (2, 3, 4)], 2)
        assert [*drawn, f"Q: {subject} 1"] == [text for role, text in _asked(task, first + 1) if role == "user"]


def test_the_subjects_of_a_class_change_no_prompt_of_another(folder: TaskFolder) -> None:
    _write_places(folder, "north", "south", "west")
    both = folder.quiz(PLACES, num_fewshot=2)
    fewer = folder.quiz({**PLACES, '["north", "south"]': '["west", "south"]'}, num_fewshot=2)

    assert ["north-0", "north-1", "south-0", "south-1"] == [example.id for example in both.examples]
    assert [_asked(both, 2), _asked(both, 3)] == [_asked(fewer, 2), _asked(fewer, 3)]
    assert ["south-0", "south-1"] == [example.id for example in fewer.examples][2:]


def test_few_shots_of_a_file_are_of_the_subject_of_the_item_or_of_none(folder: TaskFolder) -> None:
    named = [{"q": f"{subject} {number}", "a": "yes", "subject": subject} for number in range(3) for subject in PARTS]
    folder.data("quiz.jsonl", [*named, {"q": "anywhere", "a": "yes"}])
    task = folder.quiz(SUBJECTS, num_fewshot=3)

    for place, subject in ((0, "north"), (3, "south")):
        *shots, question = [text for role, text in _asked(task, place) if role == "user"]
        others = {f"Q: {subject} {number}" for number in range(3)} | {"Q: anywhere"}
        assert others - {question} == set(shots)


PARTS = ("north", "east", "south")
TELLS_SUBJECT = """
def _get_cue_text(self, item): return str(item.get("subject"))
def _get_fewshot_target_text(self, item): return str(item.get("subject"))
"""


@pytest.mark.parametrize(
    ("subjects", "own", "told", "category"),
    [
        ('["north"]', {}, "north", "north"),
        ("[NO_SUBJECT]", {}, "no_subject", ""),
        ("[NO_SUBJECT]", {"subject": "east"}, "no_subject", ""),
        ("[]", {"subject": "east"}, "east", "east"),
        ("[]", {}, "None", ""),
    ],
)
def test_an_item_and_its_worked_examples_know_their_subject(
    folder: TaskFolder, subjects: str, own: dict[str, str], told: str, category: str
) -> None:
    folder.data("quiz.jsonl", [{**row, **own} for row in ROWS[:2]])
    task = folder.quiz({"METRICS =": f"SUBJECTS = {subjects}\n    METRICS ="}, TELLS_SUBJECT, num_fewshot=1)

    assert [told, told] == [text for role, text in _asked(task) if role == "assistant"]
    assert [category] * 2 == [example.category for example in task.examples]


def test_a_task_without_the_wanted_subject_has_no_place_in_the_run(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [{**ROWS[0], "subject": "north"}, {**ROWS[1], "subject": "south"}])
    loaded = folder.load(changed_quiz({}), subjects=("west",))

    assert [(), ()] == [tuple(loaded.tasks), tuple(loaded.errors)]


# Scoring


def test_the_first_metric_decides_and_the_others_are_told(folder: TaskFolder) -> None:
    task = folder.quiz({"[AccuracyCompletion]": "[Rouge1, 'exact_match', half]"} | _half())

    score = _scored(task, "answer 1")
    assert [0.5, {"exact_match": 0.0, "half": 0.5}] == [score.value, dict(score.metrics)]
    assert ["rouge_1", 0.5] == [task.metric_name(task.examples[0]), task.threshold(task.examples[0])]


def _half() -> dict[str, str]:
    return {"\nclass Quiz": "\ndef half(prediction, targets, extras):\n    return 0.5\n\nclass Quiz"}


def test_a_metric_may_be_a_class_with_a_threshold_of_its_own(folder: TaskFolder) -> None:
    source = """
class Lenient:
    NAME = "lenient"
    THRESHOLD = 0.25
    def __call__(self, prediction, targets, extras):
        return Score(0.3, {"seen": prediction})

class Quiz"""
    changes = {"\nclass Quiz": source, "[AccuracyCompletion]": "[Lenient]"}
    task, own = folder.quiz(changes), folder.quiz({**changes, "METRICS =": "THRESHOLD = 0.75\n    METRICS ="})

    assert 0.75 == own.threshold(own.examples[0])
    score = _scored(task, " text ")
    assert ["lenient", 0.25, 0.3] == [task.metric, task.threshold(task.examples[0]), score.value]
    assert {"seen": " text "} == score.details


def test_whatever_the_score_of_a_metric_says_is_kept(folder: TaskFolder) -> None:
    said = 'Score(0.3, {"seen": 1}, metrics={"part": 0.5}, usage={"cost": 0.1}, excluded="no need")'
    source = f"\ndef lenient(prediction, targets, extras):\n    return {said}\n\nclass Quiz"
    score = _scored(folder.quiz({"\nclass Quiz": source, "[AccuracyCompletion]": "[lenient, AccuracyCompletion]"}), "x")

    assert [0.3, {"seen": 1}, "no need", {"cost": 0.1}] == [score.value, score.details, score.excluded, score.usage]
    assert {"part": 0.5, "completion_accuracy": 0.0} == score.metrics


def test_a_metric_of_a_class_that_says_nothing_of_an_item_is_left_out(folder: TaskFolder) -> None:
    task = folder.quiz({"[AccuracyCompletion]": "[JSONFormat]"})
    score = _scored(task, 'so: {"a": 1}')

    assert ["is_json", 1.0, {"only_json": 0.0}] == [task.metric, score.value, dict(score.metrics)]


def test_the_prediction_is_what_the_class_makes_of_the_completion(folder: TaskFolder) -> None:
    added = """
    def post_process_generated_completion(self, completion_text, sample=None):
        return f"{sample.id} {sample.index} {sample.ground_truth} {completion_text}"
    """
    score = _scored(folder.quiz(added=added), "so", place=2)

    assert "ex-2 2 answer 2 so" == score.prediction


def test_by_default_the_completion_is_compared_as_it_was_written(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [{"q": "Which colour?", "a": " blue"}])
    task = folder.quiz()

    assert [1.0, 0.0, 0.0] == [_scored(task, text).value for text in (" blue", "blue", " blue\n")]
    assert [" blue\n", "none"] == [_scored(task, " blue\n").prediction, task.examples[0].post_process]


def test_a_completion_ends_before_the_first_stop_sequence_whatever_the_adapter_does(folder: TaskFolder) -> None:
    task = folder.quiz(added="stop_sequences = ['Q:', '\\n']")

    assert "answer 0" == _scored(task, "answer 0\nQ: another").prediction


def test_several_ground_truths_are_all_right(folder: TaskFolder) -> None:
    task = folder.quiz({'return item["a"]': 'return [item["a"], "either"]'})

    assert [1.0, 1.0] == [_scored(task, text).value for text in ("either", "answer 0")]


def test_the_context_reaches_a_metric_that_runs_code(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [{"q": "Write add.", "a": "-", "tests": ["add(1, 2) == 3"]}])
    added = """
    def _get_context(self, item):
        return Context(test_cases=item["tests"], entry_point="add")
    """
    context = "\nclass Context(BaseMetricContext):\n    test_cases: list\n    entry_point: str\n\nclass Quiz"
    task = folder.quiz({"\nclass Quiz": context, "[AccuracyCompletion]": "[CodeExecutionPassAtOne]"}, added)

    with open_sandbox("process") as sandbox:
        programs = ("def add(a, b): return a + b", "def add(a, b): return 0")
        scores = [task.score(task.examples[0], [Completion(program)], Tools(sandbox)).value for program in programs]
    assert [1.0, 0.0] == scores
    assert {"test_cases": ["add(1, 2) == 3"], "entry_point": "add"} == task.scoring(task.examples[0])["context"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return text[9]", r"raised IndexError: .*task_it\.py:1\d in post_process"),
        ("return 4", "returned 4; expected text"),
    ],
)
def test_code_of_the_author_that_cannot_score_is_named(folder: TaskFolder, body: str, message: str) -> None:
    task = folder.quiz(added=f"def post_process_generated_completion(self, text, sample=None):\n    {body}")

    with pytest.raises(ScoringError, match=rf"Quiz\.post_process_generated_completion {message}"):
        _scored(task, "short")


# By log-probabilities


CHOICE = {"METRICS =": "RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS\n    METRICS ="}
BOTH = {"[AccuracyCompletion]": "[AccuracyLoglikelihood, AccuracyNormLoglikelihood]"}


def _chosen(task: Any, totals: Sequence[float]) -> Score:
    score: Score = task.score(task.examples[0], [LogProb(total) for total in totals], Tools())
    return score


def test_the_most_probable_completion_is_the_prediction(folder: TaskFolder) -> None:
    options = 'def _get_possible_completions(self, item): return [item["a"], "no"]'
    task = folder.quiz({**CHOICE, **BOTH}, options)
    example = task.examples[0]

    talk = (Message("user", "Q: question 0"),)
    assert (
        LogLikelihood("Q: question 0", "answer 0", "quiz", "ex-0", talk),
        LogLikelihood("Q: question 0", "no", "quiz", "ex-0", talk),
    ) == task.requests(example, example.messages)
    score = _chosen(task, [-4.0, -2.0])
    assert [0.0, "no", {"accuracy_norm_loglikelihood": 1.0}] == [score.value, score.prediction, dict(score.metrics)]
    assert {"answer 0": -4.0, "no": -2.0} == score.details["logprobs"]


BITS = {**CHOICE, "[AccuracyCompletion]": "[BitsPerByteLoglikelihood]"}
RIGHT_ALONE = 'def _get_possible_completions(self, item): return [item["a"]]'


def test_a_single_completion_is_scored_by_the_probability_of_its_bytes(folder: TaskFolder) -> None:
    task = folder.quiz(BITS, RIGHT_ALONE)
    score = _chosen(task, [-4.0])

    assert ["byte_probability", 0.0] == [task.metric, task.threshold(task.examples[0])]
    assert 4.0 / (len("answer 0") * math.log(2)) == pytest.approx(-math.log2(score.value))
    assert [8, False, False] == [score.details["bytes"], "confidence" in score.details, "chosen" in score.details]


def test_bits_per_byte_stand_beside_the_accuracy(folder: TaskFolder) -> None:
    options = 'def _get_possible_completions(self, item): return ["no", item["a"]]'
    task = folder.quiz({**CHOICE, "[AccuracyCompletion]": "[AccuracyLoglikelihood, BitsPerByteLoglikelihood]"}, options)
    score = _chosen(task, [-2.0, -4.0])

    assert [0.0, pytest.approx(math.exp(-4.0 / 8))] == [score.value, score.metrics["byte_probability"]]


def test_an_impossible_completion_is_told_as_such(folder: TaskFolder) -> None:
    options = 'def _get_possible_completions(self, item): return [item["a"], "no"]'
    score = _chosen(folder.quiz({**CHOICE, **BOTH}, options), [-4.0, float("-inf")])

    assert [1.0, {"answer 0": -4.0, "no": None}] == [score.value, score.details["logprobs"]]


EUROS = """
def _get_possible_completions(self, item): return ["\\u20ac\\u20ac", "four"]
def _get_ground_truth(self, item): return "four"
"""


def test_a_log_probability_is_normalised_by_characters_as_in_eval_framework(folder: TaskFolder) -> None:
    # Per byte the two euro signs would win: -4 / 6 against -4 / 4.
    task = folder.quiz({**CHOICE, "[AccuracyCompletion]": "[AccuracyNormLoglikelihood]"}, EUROS)

    assert [1.0, "four"] == [(score := _chosen(task, [-4.0, -4.0])).value, score.prediction]
    assert 0.0 == _chosen(task, [-1.9, -4.0]).value
    plain = folder.quiz({**CHOICE, "[AccuracyCompletion]": "[AccuracyLoglikelihood]"}, EUROS)
    assert "characters" == task.scoring(task.examples[0])["normalised_by"]
    assert "normalised_by" not in plain.scoring(plain.examples[0])


# What identifies a task


def test_the_hash_covers_the_task_file_and_its_data(folder: TaskFolder) -> None:
    first = folder.quiz()
    again = folder.quiz()
    folder.data("quiz.jsonl", ROWS[:3])
    less = folder.quiz()
    other = folder.quiz({"Q:": "Question:"})

    assert first.sha256 == again.sha256
    assert 3 == len({first.sha256, less.sha256, other.sha256})
    assert first.dataset["sha256"] != less.dataset["sha256"]
    assert less.dataset == other.dataset
    assert "quiz.jsonl" == first.dataset["path"]


def test_a_comment_leaves_what_decides_the_score_alone(folder: TaskFolder) -> None:
    first = folder.quiz()
    commented = folder.quiz({"NAME =": "# the name\n\n    NAME ="})
    changed = folder.quiz({'return item["a"]': 'return item["a"].strip()'})
    hashes = [task.scoring(task.examples[0])["code"] for task in (first, commented, changed)]

    assert hashes[0] == hashes[1]
    assert hashes[0] != hashes[2]


def test_only_as_many_examples_are_made_as_the_run_can_use(folder: TaskFolder) -> None:
    added = """
    made = []
    def _get_cue_text(self, item):
        self.made.append(item["q"])
        return ""
    """
    task = folder.quiz(added=added)
    assert 6 == len(task.task.made)

    assert 2 == len(folder.quiz(added=added, limit=2).task.made)


# Bad task files


CHANGED: list[tuple[dict[str, str], str]] = [
    ({"METRICS = [AccuracyCompletion]": ""}, "missing_required Quiz.METRICS: required: NAME, DATASET_PATH, METRICS"),
    (
        {"[AccuracyCompletion]": "[BitsPerByteLoglikelihood]"},
        "bad_value Quiz.METRICS: byte_probability needs RESPONSE_TYPE",
    ),
    ({'DATASET_PATH = "quiz.jsonl"': ""}, "missing_required Quiz.DATASET_PATH: required"),
    ({"_get_ground_truth": "_get_truth"}, "missing_required Quiz._get_ground_truth: completion tasks need"),
    (CHOICE, "missing_required Quiz._get_possible_completions: loglikelihoods tasks need"),
    ({"METRICS =": "RESPONSE_TYPE = 'talk'\n    METRICS ="}, "bad_value Quiz.RESPONSE_TYPE: expected one of"),
    ({'"quiz"': "7"}, "bad_type Quiz.NAME: expected a line of text, got 7"),
    ({'"quiz.jsonl"': '"nothing.jsonl"'}, "bad_value Quiz.DATASET_PATH: 'nothing.jsonl': no such file or folder"),
    ({'"quiz.jsonl"': '"quiz.txt"'}, "bad_value Quiz.DATASET_PATH: 'quiz.txt' is not one of"),
    ({"[AccuracyCompletion]": "[]"}, "bad_type Quiz.METRICS: expected a list of at least one metric, got []"),
    ({"[AccuracyCompletion]": "['exact_mach']"}, "bad_value Quiz.METRICS[0]: unknown metric 'exact_mach'; did you"),
    ({"[AccuracyCompletion]": "[Rouge1, 4]"}, "bad_type Quiz.METRICS[1]: expected a metric's name, a class"),
    ({"[AccuracyCompletion]": "[Rouge1, 'rouge_1']"}, "bad_value Quiz.METRICS: the metric 'rouge_1' is listed twice"),
    ({"METRICS =": "SUBJECTS = 'all'\n    METRICS ="}, "bad_type Quiz.SUBJECTS: expected a list, got 'all'"),
    ({"METRICS =": "THRESHOLD = 2\n    METRICS ="}, "bad_value Quiz.THRESHOLD: expected a number in [0, 1], got 2"),
    ({'return item["a"]': "return None"}, "bad_value Quiz._get_ground_truth: item 0, and 5 more like it: expected"),
    ({'return item["a"]': "return 4"}, "bad_type Quiz._get_ground_truth: item 0, and 5 more like it: expected text"),
    ({"item['q']": "item['question']"}, "python_error Quiz._get_instruction_text: item 0, and 5 more like it: KeyErr"),
    ({"return f\"Q: {item['q']}\"": "return 5"}, "bad_type Quiz._get_instruction_text: item 0, and 5 more"),
    (
        {"[AccuracyCompletion]": "[CodeExecutionPassAtOne]"},
        "bad_value Quiz.test_cases: item 0, and 5 more like it: expected source, or a list of test cases, got None",
    ),
]
ADDED: list[tuple[dict[str, str], str, str]] = [
    (
        {},
        "def _get_cue_text(self, item): return 5",
        "bad_type Quiz._get_cue_text: item 0, and 5 more like it: expected",
    ),
    ({}, "def __init__(self, size): pass", "python_error Quiz.__init__: TypeError: "),
    ({}, "def _get_context(self, item): return 5", "bad_type Quiz._get_context: item 0, and 5 more like it: expected"),
    (
        CHOICE,
        "def _get_possible_completions(self, item): return [item['a']]",
        "bad_value Quiz._get_possible_completions: item 0: expected two different texts or more",
    ),
    (
        CHOICE,
        "def _get_possible_completions(self, item): return ['x', 'y']",
        "bad_value Quiz._get_possible_completions: item 0: the ground truth 'answer 0' is not one of them",
    ),
]


@pytest.mark.parametrize(
    ("changed", "added", "message"), [*((changed, "", message) for changed, message in CHANGED), *ADDED]
)
def test_a_fault_names_class_and_field(folder: TaskFolder, changed: dict[str, str], added: str, message: str) -> None:
    folder.write("quiz.txt", "")
    errors = folder.load(changed_quiz(changed, added)).errors

    assert message in errors[0].at("task_it.py")
    assert errors[0].at("task_it.py").startswith("task_it.py:3: ")


def test_a_missing_key_is_told_with_those_that_are_there_and_the_line(folder: TaskFolder) -> None:
    fault = folder.quiz_fault({"item['q']": "item['question']"})

    assert re.search(r"KeyError: 'question' \(.*task_it\.py:11 in _get_instruction_text\); the item has q, a", fault)


def test_more_few_shots_than_there_are_is_refused(folder: TaskFolder) -> None:
    message = "bad_value Quiz.num_fewshot: item 0, and 5 more like it: 6 few-shots, but the split 'train' has 5"

    assert message in folder.quiz_fault(num_fewshot=6)


NO_SPLIT = {'FEWSHOT_SPLIT = "train"': ""}


def test_a_class_without_a_few_shot_split_has_none_unless_it_draws_itself(folder: TaskFolder) -> None:
    assert [("user", "Q: question 0")] == _asked(folder.quiz(NO_SPLIT, num_fewshot=2))
    own = "def _sample_fewshot_examples(self, item): return [{'q': 'shown', 'a': 'seen'}] * self.num_fewshot"
    assert ("user", "Q: shown") == _asked(folder.quiz(NO_SPLIT, own, num_fewshot=1))[0]

    wants = "def __init__(self, num_fewshot=2):\n    super().__init__(num_fewshot)"
    message = "missing_required Quiz.FEWSHOT_SPLIT: 2 few-shots asked for, but the class names no split"
    assert message in folder.quiz_fault(NO_SPLIT, wants)


def test_a_few_shot_split_that_is_not_there_is_refused_only_where_it_is_needed(folder: TaskFolder) -> None:
    folder.data("shots/test.jsonl", ROWS)
    changed = {'"quiz.jsonl"': '"shots"'}

    assert 6 == len(folder.quiz(changed).examples)
    message = "bad_value Quiz.FEWSHOT_SPLIT: shots has no split 'train'; it has test"
    assert message in folder.quiz_fault(changed, num_fewshot=1)


def test_a_declared_subject_without_an_item_is_refused(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [{**ROWS[0], "subject": "north"}])

    assert "bad_value Quiz.SUBJECTS: no item of the subject 'south'; the data has north" in folder.quiz_fault(SUBJECTS)


def test_the_good_items_of_a_bad_file_are_there_for_those_who_want_them(folder: TaskFolder) -> None:
    folder.data("quiz.jsonl", [*ROWS[:2], {"q": "?", "a": None}, ROWS[3]])
    loaded = folder.load(changed_quiz({}))

    assert [["ex-0", "ex-1", "ex-3"], 1] == [[each.id for each in loaded.tasks[0].examples], len(loaded.errors)]
