"""Mixtures: tasks of any format in one order, each example scored as its own task scores it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.mixture import load_mixture
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.loading import default_registry
from pytest_lmeval.run.library import run_task
from pytest_lmeval.task import Tools
from pytest_lmeval.types import Completion, LogLikelihood, LogProb
from tests.yaml_tasks import single_turn

LETTERS = """
from pytest_lmeval.tasks import Task

class Letters(Task):
    eval_type = "categorical"
    def num_examples(self): return 3
    def get_example(self, index):
        return {"messages": [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "A"}],
                "letters": ["A", "B"]}
    def evaluate(self, conversation, response): return response == "A"

class Others(Letters): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = [{"prompt": f"{n} + 0 =", "targets": [str(n)], "metric": "exact_match"} for n in range(4)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "task_letters.py").write_text(LETTERS)
    return tmp_path


def _load(folder: Path, mixture: Any, **document: Any) -> LoadedFile:
    source = TaskSource(folder / "mix.yaml", b"mixture", "mix")
    return load_mixture(source, {"mixture": mixture, **document}, default_registry(entry_points=False))


def _task(folder: Path, mixture: Any) -> Any:
    loaded = _load(folder, mixture)
    assert () == tuple(loaded.errors)
    (task,) = loaded.tasks
    return task


def _ids(task: Any) -> list[str]:
    return [example.id for example in task.examples]


IN_ORDER = (
    [f"sums.ex-{n}" for n in range(1, 5)] + [f"Letters.ex-{n}" for n in range(3)] + [f"Others.ex-{n}" for n in range(3)]
)


def test_a_sequence_has_the_examples_of_its_tasks_one_after_another(folder: Path) -> None:
    task = _task(folder, {"tasks": ["sums.jsonl", "task_letters.py"], "order": "sequence"})

    assert IN_ORDER == _ids(task)
    assert ["mix", "mixed"] == [task.name, task.metric]
    assert ["sums", "Letters"] == [task.examples[0].category, task.examples[4].category]


def test_the_shuffle_is_that_of_its_seed(folder: Path) -> None:
    expected = list(range(10))
    random.Random(42).shuffle(expected)

    mixed = _ids(_task(folder, ["sums.jsonl", "task_letters.py"]))
    assert [IN_ORDER[place] for place in expected] == mixed
    assert mixed != _ids(_task(folder, {"tasks": ["sums.jsonl", "task_letters.py"], "seed": 7}))


def test_a_task_listed_twice_has_its_examples_twice(folder: Path) -> None:
    task = _task(folder, {"tasks": ["sums.jsonl", "sums.jsonl"], "order": "sequence"})

    assert ["sums.ex-1", "sums-2.ex-1"] == _ids(task)[::4]
    assert 8 == len(set(_ids(task)))


def test_one_task_of_a_file_can_be_chosen(folder: Path) -> None:
    task = _task(folder, {"tasks": [{"path": "task_letters.py", "task": "Others"}], "name": "some"})

    assert ["some", "evaluate"] == [task.name, task.metric]
    assert {"Others.ex-0", "Others.ex-1", "Others.ex-2"} == set(_ids(task))


class Right:
    """Is right about sums and letters, and notes on whose behalf it is asked."""

    name = "right"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def generate_requests(self, requests: list[Any]) -> list[Completion]:
        self.asked += [(request.task, request.id) for request in requests]
        return [Completion(request.text.split(" ")[0]) for request in requests]

    def loglikelihood(self, requests: list[LogLikelihood]) -> list[LogProb]:
        self.asked += [(request.task, request.id) for request in requests]
        return [LogProb(-1.0 if request.continuation == "A" else -2.0) for request in requests]


def test_each_example_is_asked_and_scored_as_its_own_task_does(folder: Path) -> None:
    adapter = Right()
    task = _task(folder, ["sums.jsonl", "task_letters.py"]).prepared(adapter)
    row = run_task(task, adapter)

    assert [1.0, 10, 10] == [row.score, row.correct, row.total]
    assert {("mix", own_id) for own_id in IN_ORDER} == set(adapter.asked)
    assert {"Letters", "Others", "sums"} == set(row.subjects)
    assert {"exact_match": 1.0, "evaluate": 1.0, "subject_mean": 1.0} == dict(row.metrics)


def test_an_adapter_that_changes_nothing_leaves_the_mixture_as_it_is(folder: Path) -> None:
    task = _task(folder, ["sums.jsonl"])

    assert task.prepared(Right()) is task
    assert 1.0 == task.score(task.examples[0], [Completion(task.examples[0].targets[0])], Tools()).value
    assert 1.0 == run_task(task, Right()).threshold
    assert "exact_match_normalized" == task.metric_name(task.examples[0])
    assert {} == task.scoring(task.examples[0])


def test_the_hash_follows_the_tasks(folder: Path) -> None:
    before = _task(folder, ["sums.jsonl"]).sha256
    same = _task(folder, ["sums.jsonl"]).sha256
    (folder / "sums.jsonl").write_text((folder / "sums.jsonl").read_text().replace('"3"', '"4"'))

    assert before == same
    assert before != _task(folder, ["sums.jsonl"]).sha256


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        (5, "bad_type mixture: expected a list of tasks, or an object with the key tasks, got a number"),
        ([], "missing_required mixture.tasks: expected a list of at least one task"),
        ({"task": ["sums.jsonl"]}, "unknown_field mixture.task: unknown field 'task'; did you mean 'tasks'?"),
        ({"tasks": ["sums.jsonl"], "order": "suffled"}, "bad_value mixture.order: 'suffled' is not one of sequence"),
        ({"tasks": ["sums.jsonl"], "seed": "x"}, "bad_type mixture.seed: expected a whole number, got 'x'"),
        ({"tasks": ["sums.jsonl"], "name": ""}, "bad_type mixture.name: expected a non-empty string"),
        ([7], "bad_value mixture.tasks[0]: expected a path, or path and task, got 7"),
        (
            ["sums.jsonl", "nothing.jsonl"],
            "bad_value mixture.tasks[1]: 'nothing.jsonl' is not a task file beside this one",
        ),
        (
            [{"path": "task_letters.py", "task": "Leters"}],
            "task_letters.py has Letters, Others; did you mean 'Letters'?",
        ),
        (["bad.jsonl"], "bad_value mixture.tasks[0]: bad.jsonl:1: missing_required targets"),
    ],
)
def test_a_fault_names_its_field(folder: Path, mixture: Any, message: str) -> None:
    (folder / "bad.jsonl").write_text('{"prompt": "x", "metric": "f1"}\n')
    (error,) = _load(folder, mixture).errors

    assert message in error.at("mix.yaml")


def test_a_key_beside_the_mixture_is_refused(folder: Path) -> None:
    (error,) = _load(folder, ["sums.jsonl"], definition={}).errors

    assert "unknown_field definition: a mixture has no key beside 'mixture'" in error.at("mix.yaml")


def test_a_fault_has_the_line_of_a_document_that_knows_its_places(folder: Path) -> None:
    from pytest_lmeval.formats.yaml.document import Location, YamlDocument

    document = YamlDocument({"mixture": ["sums.jsonl", "no.jsonl"]}, {("mixture",): Location(3, 1)})
    source = TaskSource(folder / "mix.yaml", b"", "mix")
    (error,) = load_mixture(source, document, default_registry(entry_points=False)).errors

    assert 3 == error.line_number


def test_mixtures_in_each_other_are_refused(folder: Path) -> None:
    registry = default_registry(entry_points=False)
    documents = {"one.mix": ["two.mix"], "two.mix": ["one.mix"]}
    for name in documents:
        (folder / name).write_text("")
    registry.add_format(
        ".mix", lambda source, known: load_mixture(source, {"mixture": documents[source.path.name]}, known)
    )
    source = TaskSource(folder / "one.mix", b"", "one")
    (error,) = load_mixture(source, {"mixture": ["two.mix"]}, registry).errors

    assert "'one.mix' contains this mixture" in error.detail


PYTHON = (
    LETTERS
    + """
from pytest_lmeval.tasks import TaskMixture, TaskSequence
TASKS = [TaskMixture([Letters(), Letters(start=1), TaskSequence([Others(stop=1)])], step=2)]
"""
)


def test_a_mixture_in_python_is_one_task_too(folder: Path) -> None:
    from pytest_lmeval.loading import load_tasks

    (folder / "task_mixed.py").write_text(PYTHON)
    (task,) = load_tasks(folder / "task_mixed.py")
    everything = ["Letters.ex-0", "Letters.ex-1", "Letters.ex-2", "Letters-2.ex-1", "Letters-2.ex-2"]
    everything.append("TaskSequence.Others.ex-0")
    random.Random(42).shuffle(everything)

    assert everything[::2] == _ids(task)
    assert 1.0 == run_task(task.prepared(Right()), Right()).score


def test_a_mixture_in_python_keeps_the_wanted_subject_in_its_order(folder: Path) -> None:
    from pytest_lmeval.formats.files import load_file
    from pytest_lmeval.formats.task import LoadOptions

    by_index = LETTERS.replace('"letters":', '"topic": "odd" if index == 1 else "even", "letters":')
    tasks = "from pytest_lmeval.tasks import TaskMixture\nTASKS = [TaskMixture([Letters(), Others()])]"
    path = folder / "task_mixed.py"
    path.write_text(f"{by_index}\n{tasks}")
    registry = default_registry(entry_points=False)
    ids = [
        _ids(load_file(path, "mixed", registry, options=LoadOptions(subjects=subjects)).tasks[0])
        for subjects in ((), ("even",))
    ]

    assert [own_id for own_id in ids[0] if not own_id.endswith("1")] == ids[1]
    assert 4 == len(ids[1])


CHOICES = """
from pytest_lmeval.tasks import AccuracyLoglikelihood, BaseTask, ResponseType

class Choices(BaseTask):
    NAME, DATASET_PATH = "choices", "data"
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS = [AccuracyLoglikelihood]
    def _get_instruction_text(self, item): return item["question"]
    def _get_ground_truth(self, item): return item["right"]
    def _get_possible_completions(self, item): return ["a", "b"]
"""
WEIGHED = """\
- type: string_equals
  ground_truth: "{{ sample.truth }}"
  metrics:
  - {type: weighted_average, field: answer_gt, weights: {yes: 1}}
"""


def test_the_metrics_and_notes_of_parts_are_those_of_the_mixture(folder: Path) -> None:
    (folder / "rows.csv").write_text("truth\nyes\nno\n")
    (folder / "weighed.yaml").write_text(single_turn("weighed", WEIGHED, "say {{ sample.truth }}"))
    task = _task(folder, {"tasks": ["sums.jsonl", "weighed.yaml", "weighed.yaml"], "order": "sequence"})
    assert (True, True, "") == (task.aggregates, task.has_score, task.needs)

    class Model:
        name = "model.v1"

        def generate(self, prompts: list[Any]) -> list[str]:
            return ["yes"] * len(prompts)

    row = run_task(task, Model())
    names = [f"{label}.string_equals.answer_gt_weighted_average" for label in ("weighed", "weighed-2")]
    assert {"no": 1} == row.notes["without_weight"][names[0]]
    assert [1.0, 1.0] == [row.metrics[f"{label}.answer_gt_weighted_average"] for label in ("weighed", "weighed-2")]
    assert task.record(task.examples[-1])["truth"] == "no"


def test_a_mixture_needs_what_a_part_needs(folder: Path) -> None:
    (folder / "task_choices.py").write_text(CHOICES)
    (folder / "data.jsonl").write_text('{"question": "?", "right": "a"}\n')
    assert "loglikelihood" == _task(folder, ["sums.jsonl", "task_choices.py"]).needs
    assert "" == _task(folder, ["sums.jsonl"]).needs
