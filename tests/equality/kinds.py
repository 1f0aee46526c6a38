"""A small project for every kind of task: what it consists of, and how it is run, alone and with the others."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.pictures import png
from tests.sources import source

__all__ = ["KINDS", "SCENES", "Kind", "write_kind"]

# A run that is to be killed comes to the same part of every task before that.
CONFTEST = """
import os
from collections import Counter

def pytest_collection_modifyitems(items):
    of_functions = {item: item.nodeid.partition("[")[0] for item in items if "::test_" in item.nodeid}
    tasks = {item: item.nodeid.rpartition(".")[0] for item in items} | of_functions
    sizes, places = Counter(tasks.values()), Counter()

    def place(item):
        places[tasks[item]] += 1
        return places[tasks[item]] / sizes[tasks[item]]

    if os.path.exists("kill.txt"):
        items.sort(key=place)
"""
FUNCTIONS = """
from pytest_lmeval import eval_task

@eval_task("words", data="words.csv", score="right", threshold={"polite": 0.5}, min_score={"right": 0.2, "echo": 0.3})
async def test_words(row, lm):
    said = (await lm.ask("say: " + row["said"])).text
    lm.score("echo", said == row["said"], why="said " + said)
    lm.score("right", (await lm.ask("say: " + said)).text == row["target"])
    lm.score("polite", await lm.judge("Is it polite?", said) == "yes")
    lm.score("graded", (await lm.grade("Is a colour.", said, human_label=int(row["said"] == row["target"]))).score)

def worded(said):
    return "say: " + said

@eval_task("asserted", data="words.csv", threads=True)
def test_asserted(row, lm):
    assert lm.ask(lm.tool(worded, once=True)(row["said"])).text == row["target"]

def test_without_rows(lm):
    assert lm.ask("say: green").text == "green"
    user = lm.user("Somebody who says red", max_turns=2)
    for said in user:
        user.reply(lm.ask("say: " + said).text)
    lm.output(user.turns)
"""
CLIENTS = """
import http.client
import json

from pytest_lmeval import eval_task

def reply_of(lm, path, **body):
    host, _, base = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("POST", f"/{base}/{path}", json.dumps({"model": "asked", **body}))
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found

@eval_task("by_client", data="words.csv", threads=True)
def test_by_client(row, lm):
    said = reply_of(lm, "responses", input="say: " + row["said"])["output"][0]["content"][0]["text"]
    talk = [{"role": "user", "content": "say: " + said}]
    again = reply_of(lm, "chat/completions", messages=talk)["choices"][0]["message"]["content"]
    lm.score("right", again == row["target"])
"""
CLASS = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask

class Words(BaseTask[str]):
    NAME = "Words"
    DATASET_PATH = "words.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion, "f1"]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return item["target"]

class Others(Words):
    NAME = "Others"
"""
JUDGED = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask, LLMJudgeScore

class Fine(LLMJudgeScore):
    NAME = "fine"
    PROMPT = "Judge: {prediction}"
    LABELS = {"yes": 1.0, "no": 0.25}
    THRESHOLD = 1.0

class Judged(BaseTask[str]):
    NAME = "Judged"
    DATASET_PATH = "words.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [Fine, AccuracyCompletion]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return item["target"]
"""
CHOICES = """
from pytest_lmeval.tasks import AccuracyLoglikelihood, AccuracyNormLoglikelihood, BaseTask, ResponseType

class Choices(BaseTask[str]):
    NAME = "Choices"
    DATASET_PATH = "words.csv"
    SAMPLE_SPLIT = "test"
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS = [AccuracyLoglikelihood, AccuracyNormLoglikelihood]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return item["target"]

    def _get_possible_completions(self, item):
        return [item["target"], "grey"]
"""
LETTERS = """
from pytest_lmeval.tasks import Task

class Letters(Task):
    eval_type = "categorical"

    def num_examples(self):
        return 4

    def get_example(self, index):
        said = "ABCA"[index]
        question = {"role": "user", "content": f"Which? {index} say: {said}"}
        answer = {"role": "assistant", "content": "ABCB"[index]}
        return {"messages": [question, answer], "letters": ["A", "B", "C"]}

    def evaluate(self, conversation, response):
        return response == conversation["messages"][-1]["content"]
"""
DECLARATIVE = """
display_name: Colours
key: colours
config_spec:
- {type: categorical, key: field, allowed_values: [target, said]}
definition:
  dataset: {path: rows.csv}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "say: {{ sample.said }}"}]
  scorers:
  - key: right
    type: string_equals
    ground_truth: "{{ sample.<< config.field >> }}"
    metrics:
    - {type: mean, field: prediction_is_correct}
    - {type: multiclass_classification, field_gt: answer_gt, field_pred: answer_pred}
  - key: verdict
    type: model_as_a_judge_classifier
    correct_labels: ["yes"]
    incorrect_labels: ["no"]
    user_prompt: "Judge: {{ solver_output.output.choices[0].message.content }}"
"""
SHOWN = """
display_name: Shown
key: shown
definition:
  dataset: {path: shown.csv}
  solver:
    type: multi_turn_solver
    turns:
    - user: "Look."
    - user: ["say: {{ sample.said }}", {image: "{{ sample.picture }}"}]
  scorers:
  - type: exact_match
    ground_truth: "{{ sample.target }}"
"""
VARIANTS = """
prompt:
  plain: "say: {{ said }}"
  brief: "Be brief. say: {{ said }}"
data: variants.csv
target: "{{ target }}"
metric: exact_match
"""
PLAYED = """
display_name: Played
key: played
definition:
  dataset: {path: words.csv}
  solver:
    type: multi_turn_solver
    user: {persona: "Somebody who says say: {{ sample.said }}", max_turns: 3}
  scorers:
  - type: exact_match
    ground_truth: "{{ sample.target }}"
"""
ROWS = [("red", "red"), ("blue", "blue"), ("grey", "green"), ("pink", "pink"), ("black", "black"), ("white", "white")]
CSV = "".join(f"{said},{target}\n" for said, target in (("said", "target"), *ROWS))
CORE = {
    "icl_tasks": [
        {"label": "bees", "dataset_uri": "bees.jsonl", "num_fewshot": [1], "icl_task_type": "multiple_choice"},
        {"label": "legs", "dataset_uri": "legs.jsonl", "num_fewshot": [0], "icl_task_type": "language_modeling"},
    ]
}

HARNESS = {
    "from": "theirs",
    "tasks": [{"group": "both", "task": ["liked", "heard"], "aggregate_metric_list": [{"metric": "acc"}]}],
    "data": "theirs/data",
}
THEIRS = {
    "dataset_path": "made/words",
    "test_split": "test",
    "fewshot_split": "test",
    "num_fewshot": 2,
    "doc_to_text": "say: {{said}}\n",
    "doc_to_target": "{{target}}",
}
LIKED = {
    "output_type": "multiple_choice",
    "doc_to_choice": "{{[target, 'grey']}}",
    "doc_to_target": 0,
    "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
}
HEARD = {"output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}


@dataclass(frozen=True)
class Kind:
    """A kind of task: its files, the paths to run, the options it needs, and the words that a worse model gets wrong.

    ``changed`` are the files that are other ones in the run that is compared; ``pair_by`` says how it is.
    ``needs_pytest`` is True of what only pytest can run.
    """

    files: Mapping[str, str]
    paths: Sequence[str]
    wrong: str
    options: Sequence[str] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    judge: bool = False
    changed: Mapping[str, str] = field(default_factory=dict)
    pair_by: str = "content"
    needs_pytest: bool = False


def _lines(records: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _spec() -> str:
    fixed = {"category": "classification", "post_process": "strip_whitespace"}
    return _lines(
        [
            {
                "task_id": f"w{number}",
                "prompt": f"say: {said}",
                "targets": [target],
                "metric_name": "f1" if number % 2 else "exact_match",
                "metadata": {"must_pass": True} if number == 1 else {},
                **fixed,
            }
            for number, (said, target) in enumerate(ROWS)
        ]
    )


def _code() -> str:
    programs = ["a + b", "a * b", "a - b", "b + a", "a ** b", "(a, b)"]
    expected = [5, 6, 5, 5, 8, [2, 3]]
    return _lines(
        [
            {
                "id": f"f{number}",
                "prompt": f"say: f = lambda a, b: {program}",
                "targets": ["its value"],
                "metric": "code_exec",
                "extras": {"io_pairs": [[2, 3, wanted]]},
            }
            for number, (program, wanted) in enumerate(zip(programs, expected, strict=True))
        ]
    )


def _often() -> str:
    return _lines(
        [
            {"id": said, "prompt": f"say: {said}", "targets": [target], "metric": "exact_match"}
            | {"extras": {"repeats": 3, "passes": 2} if said != "grey" else {"repeats": 2}}
            for said, target in ROWS
        ]
    )


def _bees() -> str:
    words = [("honey", "wool"), ("silk", "honey"), ("wool", "glass"), ("grass", "honey")]
    return _lines([{"query": f"say: {yes}", "choices": [yes, no], "gold": 0} for yes, no in words])


def _held(*ids: str) -> str:
    quarantine = {"until": "2999-12-31", "reason": "flips by itself"}
    return _lines(
        [
            {"id": said, "prompt": f"say: {said}", "targets": [target], "metric": "exact_match"}
            | {"extras": {"quarantine": quarantine} if said in ids else {}}
            for said, target in ROWS
        ]
    )


_COMPACT = _lines(
    [
        {"id": said, "prompt": f"say: {said}", "targets": [target], "metric": "exact_match", "extras": {}}
        for said, target in ROWS
    ]
)
_WORD = {"name": "word", "parameters": {"type": "object", "properties": {"said": {"type": "string"}}}}


def _graded() -> str:
    return _lines(
        [
            {"id": said, "prompt": f"say: {said}", "metric": "rubric"}
            | {"extras": {"rubric": "Is a colour.", "human_label": number % 2}}
            for number, (said, _) in enumerate(ROWS)
        ]
    )


def _thoughts() -> str:
    said = [f"<think>{target} or not</think>{said}" for said, target in ROWS]
    return _lines(
        [
            {"id": target, "prompt": f"say: {each}", "targets": [target], "metric": "exact_match"}
            for each, (_, target) in zip(said, ROWS, strict=True)
        ]
    )


def _pictures(*, judged: bool = False) -> str:
    """Return records with a picture, in which the judge sees it, too, if it is ``judged``."""
    return _lines(
        [
            {"id": said, "prompt": [f"say: {said}", {"image": f"data:image/png;base64,{_png(number)}"}]}
            | ({"metric": "rubric", "extras": {"rubric": "Is a colour."}} if judged else {})
            | ({} if judged else {"targets": [target], "metric": "exact_match"})
            for number, (said, target) in enumerate(ROWS)
        ]
    )


def _shown() -> str:
    rows = [f'{said},{target},"data:image/png;base64,{_png(number)}"' for number, (said, target) in enumerate(ROWS)]
    return "\n".join(["said,target,picture", *rows, ""])


def _png(red: int) -> str:
    return b64encode(png(red)).decode()


def _defaults() -> str:
    rows = [{"id": said, "word": said, "targets": [target]} for said, target in ROWS]
    return _lines([{"defaults": {"prompt": "say: {{ word }}", "metric": "exact_match"}}, *rows])


def _checks() -> str:
    return _lines(
        [
            {
                "id": said,
                "prompt": f"say: {said}",
                "checks": [
                    {"metric": "exact_match", "targets": [target], "weight": 2},
                    {"metric": "regex", "targets": ["e"], "name": "has_e", "threshold": 0},
                    {"metric": "rubric", "name": "kind", "extras": {"rubric": "Is kind.", "human_label": 1}},
                ],
            }
            for said, target in ROWS
        ]
    )


def _turns() -> str:
    return _lines(
        [
            {
                "id": said,
                "turns": [
                    {"user": f"say: {said}", "targets": [target]},
                    {"user": f"say: {said} again"},
                    {"user": f"say: {target}", "targets": [target]},
                ][: 2 + number % 2],
            }
            for number, (said, target) in enumerate(ROWS)
        ]
    )


def _calls() -> str:
    return _lines(
        [
            {
                "id": said,
                "prompt": f"say: call {said}",
                "metric": "tool_calls",
                "extras": {"tools": [_WORD], "calls": [{"name": "word", "arguments": {"said": target}}]},
            }
            for said, target in ROWS
        ]
    )


_SETTINGS: Mapping[str, str] = {"field": "target"}
KINDS: Mapping[str, Kind] = {
    "functions": Kind(
        {"tests/test_words.py": FUNCTIONS, "tests/test_clients.py": CLIENTS, "tests/words.csv": CSV},
        ["tests"],
        "blue",
        ["--lm-judge=model:Judge", "--lm-concurrency=2"],
        needs_pytest=True,
    ),
    "spec": Kind({"tasks/spec.jsonl": _spec()}, ["tasks/spec.jsonl"], "blue"),
    "prompts": Kind(
        {"tasks/words.jsonl": _spec()},
        ["tasks"],
        "blue",
        changed={"tasks/words.jsonl": _spec().replace("say: ", "Be brief. say: ")},
        pair_by="id",
    ),
    "quarantine": Kind(
        {"tasks/held.jsonl": _held("blue")},
        ["tasks/held.jsonl"],
        "blue\nwhite",
        # The first is in the baseline's list, the second is not: a change cannot excuse itself.
        changed={"tasks/held.jsonl": _held("white")},
    ),
    "code": Kind({"tasks/code.jsonl": _code()}, ["tasks/code.jsonl"], "f = lambda a, b: a + b"),
    "class": Kind({"tasks/task_words.py": CLASS, "tasks/words.csv": CSV}, ["tasks/task_words.py"], "blue"),
    "judged class": Kind(
        {"tasks/task_judged.py": JUDGED, "tasks/words.csv": CSV},
        ["tasks/task_judged.py"],
        "blue\npink",
        ["--lm-judge=model:Judge"],
        judge=True,
    ),
    "rubric": Kind(
        {"tasks/graded.jsonl": _graded()}, ["tasks/graded.jsonl"], "blue\npink", ["--lm-judge=model:Judge"], judge=True
    ),
    "repeats": Kind({"tasks/often.jsonl": _often()}, ["tasks/often.jsonl"], "blue"),
    "played": Kind(
        {"tasks/played.yaml": PLAYED, "tasks/words.csv": CSV},
        ["tasks/played.yaml"],
        "blue\npink",
        ["--lm-judge=model:Judge"],
        judge=True,
    ),
    "choices": Kind({"tasks/task_choices.py": CHOICES, "tasks/words.csv": CSV}, ["tasks/task_choices.py"], "blue"),
    "harness": Kind(
        {
            "tasks/harness.yaml": json.dumps({"harness": HARNESS}),
            "tasks/theirs/liked.yaml": json.dumps({**THEIRS, "task": "liked", **LIKED}),
            "tasks/theirs/heard.yaml": json.dumps({**THEIRS, "task": "heard", **HEARD}),
            "tasks/theirs/data/made__words/test.csv": CSV,
        },
        ["tasks/harness.yaml"],
        "blue",
    ),
    "letters": Kind({"tasks/task_letters.py": LETTERS}, ["tasks/task_letters.py"], "C"),
    "declarative": Kind(
        {"tasks/colours@1.yaml": DECLARATIVE, "tasks/rows.csv": CSV, "values.yaml": "field: target\n"},
        ["tasks/colours@1.yaml"],
        "blue",
        ["--lm-judge=model:Judge", "--lm-config=values.yaml"],
        _SETTINGS,
        judge=True,
    ),
    "pictures": Kind(
        {
            "tasks/pictures.jsonl": _pictures(),
            "tasks/seen.jsonl": _pictures(judged=True),
            "tasks/shown.yaml": SHOWN,
            "tasks/shown.csv": _shown(),
            # The golden records go by the source of the model without this line.
            "model.py": source("every_kind/model.py") + "\n\nModel.media = Judge.media = frozenset({'image'})\n",
        },
        ["tasks/pictures.jsonl", "tasks/seen.jsonl", "tasks/shown.yaml"],
        "blue\npink",
        ["--lm-judge=model:Judge"],
        judge=True,
    ),
    "defaults": Kind({"tasks/defaults.jsonl": _defaults()}, ["tasks/defaults.jsonl"], "blue"),
    "checks": Kind(
        {"tasks/checks.jsonl": _checks()}, ["tasks/checks.jsonl"], "blue", ["--lm-judge=model:Judge"], judge=True
    ),
    "data file": Kind({"tasks/variants.yaml": VARIANTS, "tasks/variants.csv": CSV}, ["tasks/variants.yaml"], "blue"),
    "core": Kind(
        {
            "tasks/core.yaml": json.dumps(CORE),
            "tasks/eval_meta_data.csv": "Eval Task,Random baseline\nbees,50\nlegs,0\n",
            "tasks/eval_data/bees.jsonl": _bees(),
            "tasks/eval_data/legs.jsonl": _lines(
                [{"context": f"say: {number}", "continuation": number} for number in ("eight", "four", "two")]
            ),
        },
        ["tasks/core.yaml"],
        "honey",
    ),
    "thoughts": Kind({"tasks/thoughts.jsonl": _thoughts()}, ["tasks/thoughts.jsonl"], "<think>blue or not</think>blue"),
    "turns": Kind({"tasks/turns.jsonl": _turns()}, ["tasks/turns.jsonl"], "blue"),
    "tool_calls": Kind({"tasks/calls.jsonl": _calls()}, ["tasks/calls.jsonl"], "call blue"),
    "mixture": Kind(
        {
            "tasks/words.jsonl": _COMPACT,
            "tasks/task_letters.py": LETTERS,
            "tasks/mix.yaml": json.dumps({"mixture": ["words.jsonl", "task_letters.py"]}),
        },
        ["tasks/mix.yaml"],
        "blue\nC",
    ),
}


def _together(kinds: Sequence[Kind]) -> Kind:
    """Return one project of several kinds, each with tasks of its own names."""
    files = {name: content for kind in kinds for name, content in kind.files.items()}
    assert all(kind.files.items() <= files.items() for kind in kinds)
    return Kind(
        files,
        [path for kind in kinds for path in kind.paths],
        "\n".join(kind.wrong for kind in kinds),
        list(dict.fromkeys(option for kind in kinds for option in kind.options)),
        {name: value for kind in kinds for name, value in kind.config.items()},
        any(kind.judge for kind in kinds),
        {name: content for kind in kinds for name, content in kind.changed.items()},
    )


# A run by itself is for what only pytest runs, for what is paired otherwise, and for a model that takes pictures.
_APART = ("functions", "prompts", "pictures")
SCENES: Mapping[str, Kind] = {
    **{name: KINDS[name] for name in _APART},
    "together": _together([kind for name, kind in KINDS.items() if name not in _APART]),
}


def write_kind(kind: Kind, folder: Path) -> None:
    """Write the project."""
    common = {"model.py": source("every_kind/model.py"), "conftest.py": CONFTEST, "pytest.ini": "[pytest]\n"}
    for name, content in {**common, **kind.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
