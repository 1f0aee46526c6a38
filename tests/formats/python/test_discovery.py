"""Which names of a file are tasks, and how a file is run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pytest_lmeval.loading import load_tasks

from .conftest import HEAD, QUIZ, TaskFolder

TALK = '{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}'
BODY = f"""
    eval_type = "generative"
    def num_examples(self): return 1
    def get_example(self, index): return {TALK}
    def evaluate(self, conversation, response): return True
"""
ONE = f"class One(Task):{BODY}"
TRAINING = f"""
class Training(Task):
    def num_examples(self): return 2
    def get_example(self, index): return {TALK}
"""
WITH_SPLIT = f"class Split(Task):\n    def __init__(self, split, **view):\n        self.split = split{BODY}"


def _names(folder: TaskFolder, source: str) -> list[str]:
    loaded = folder.load(source)
    assert () == tuple(loaded.errors)
    return [task.name for task in loaded.tasks]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (ONE, ["One"]),
        (QUIZ + ONE, ["quiz", "One"]),
        (f"{ONE}\nclass Other(One):\n    name = 'another'", ["One", "another"]),
        (f"{ONE}\nmine = One()", ["One"]),
        (f"{ONE}\nmine = One()\nmine.name = 'mine'", ["mine"]),
        (f"{ONE}\nmine = also = One()", ["One"]),
        (f"{ONE}\n_hidden = One()", ["One"]),
        (f"class _Helper(Task):{BODY}\nclass Mine(_Helper): pass", ["Mine"]),
        (f"class Helper(Task):\n    eval_type = 'generative'\nclass Mine(Helper):{BODY}", ["Mine"]),
        (f"class Empty(Task): pass\n{ONE}", ["One"]),
        (
            f"import abc\nclass Shape(Task, abc.ABC):{BODY}    @abc.abstractmethod\n    def more(self): ...\n{ONE}",
            ["One"],
        ),
        (f"class Helper(BaseTask): pass\n{QUIZ}", ["quiz"]),
        (f"{ONE}\nclass Two(One): pass\nTASKS = [Two, One()]", ["Two", "One"]),
        (f"{ONE}\nmixed = TaskMixture([One(), One()])", ["One", "mixed"]),
        (f"{ONE}\nTASKS = [TaskSequence([One()])]", ["TaskSequence"]),
        (WITH_SPLIT, ["Split"]),
        (ONE + TRAINING, ["One"]),
        (f"{ONE}{TRAINING}\nto_train_on = TaskMixture([One(), Training()])\nmore = Training()", ["One"]),
        (f"{ONE}{TRAINING}\nnested = TaskSequence([TaskMixture([Training()]), One()])", ["One"]),
    ],
)
def test_the_tasks_of_a_file(folder: TaskFolder, source: str, names: list[str]) -> None:
    assert sorted(names) == sorted(_names(folder, source))


@pytest.mark.parametrize("thing", ["Training", "TaskMixture([One(), Training()])"])
def test_what_can_only_be_trained_on_is_refused_where_it_is_listed_as_a_task(folder: TaskFolder, thing: str) -> None:
    fault = folder.fault(f"{ONE}{TRAINING}\nTASKS = [{thing}]")

    assert "missing_required Training.eval_type: required: eval_type" in fault


def test_an_empty_list_says_that_a_file_only_helps_others(folder: TaskFolder) -> None:
    found = folder.load(f"{ONE}\nTASKS = []")
    assert ([], []) == ([*found.tasks], [*found.errors])


def test_a_class_that_needs_a_split_gets_the_test_split(folder: TaskFolder) -> None:
    assert "test" == folder.task(WITH_SPLIT).task.split
    assert "train" == folder.task(f"{WITH_SPLIT}\nTASKS = [Split('train')]").task.split


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{ONE}\nTASKS = 5", "task_it.py:8: bad_type TASKS: expected a list of tasks, got 5"),
        (f"{ONE}\nTASKS = [One, 5]", "task_it.py:8: bad_type TASKS[1]: expected a task class, or an instance of one"),
        (
            WITH_SPLIT.replace("split,", "size, split,"),
            "task_it.py:2: missing_required Split.__init__: needs size, split: make the task in the file, "
            "TASKS = [Split(size=..., split=...)]",
        ),
        (f"{ONE}\nTASKS = [TaskMixture([])]", "bad_value TaskMixture.tasks: expected at least one task"),
        (f"{ONE}\nTASKS = [One, One]", "bad_value One.name: One (line 2) is already called 'One'"),
        (
            QUIZ + QUIZ.replace("class Quiz", "class Again"),
            "task_it.py:16: bad_value Again.NAME: Quiz (line 3) is already called 'quiz'",
        ),
        ("x = undefined", "task_it.py:2: import_error _module: NameError: name 'undefined' is not defined ("),
        ("def f():\n    1 / 0\n\nf()", "task_it.py:3: import_error _module: ZeroDivisionError: division by zero ("),
        ("raise SystemExit(3)", "task_it.py:2: import_error _module: SystemExit: 3 ("),
        ("class (", "task_it.py:2: import_error _module: SyntaxError: invalid syntax ("),
        ("import no_such_module", "task_it.py:2: import_error _module: ModuleNotFoundError: No module named"),
    ],
)
def test_a_bad_file_says_where_and_what(folder: TaskFolder, source: str, message: str) -> None:
    assert message in folder.fault(source)


def test_one_bad_class_leaves_the_others_alone(folder: TaskFolder) -> None:
    loaded = folder.load(f"{ONE}\n{QUIZ.replace('quiz.jsonl', 'nothing.jsonl')}")

    assert [["One"], ["Quiz.DATASET_PATH"]] == [
        [task.name for task in loaded.tasks],
        [error.field for error in loaded.errors],
    ]


ONLY_HELPING = """
class CustomJSON(Task):
    def __init__(self, filepath, **view):
        super().__init__(**view)
    def num_examples(self): return 1
    def get_example(self, index): return {}
"""


@pytest.mark.parametrize("source", [ONLY_HELPING, TRAINING, "class Helper(BaseTask): pass", "def helper(): pass"])
def test_a_file_that_only_helps_is_left_alone_unless_it_is_named(folder: TaskFolder, source: str) -> None:
    left = folder.load(source)

    assert [(), ()] == [tuple(left.tasks), tuple(left.errors)]
    assert left.no_task.startswith("expected a BaseTask class with a NAME")
    assert "no task in the file: expected a BaseTask class" in folder.fault(source, is_named=True)


def test_an_imported_task_is_collected_where_it_is_made_alone(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    folder.write("task_one.py", HEAD + ONE)
    folder.write("task_two.py", HEAD + "from .task_one import One\nclass Two(One): pass\n")

    assert ["One", "Two"] == [task.name for task in load_tasks(tmp_path)]


def test_files_of_one_name_in_two_folders_have_neighbours_of_their_own(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    for place in ("north", "south"):
        folder.write(f"{place}/common.py", f"PLACE = {place!r}\n")
        folder.write(f"{place}/task_it.py", f"{HEAD}from .common import PLACE\n{ONE}\n    name = PLACE\n")

    assert ["north", "south"] == [task.name for task in load_tasks(tmp_path)]
    assert not any(str(tmp_path) in entry for entry in sys.path)


def test_an_edited_file_is_read_anew(folder: TaskFolder) -> None:
    assert ["One"] == _names(folder, ONE)
    assert ["Uno"] == _names(folder, ONE.replace("One", "Uno"))


def test_annotations_may_name_what_is_not_imported(folder: TaskFolder) -> None:
    assert ["quiz"] == _names(folder, QUIZ.replace("(self, item)", "(self, item: dict[str, Undefined]) -> Any"))


def test_dataclasses_and_pickle_find_the_module(folder: TaskFolder) -> None:
    source = "import dataclasses, pickle\n@dataclasses.dataclass\nclass Point:\n    x: int\n"
    assert ["One"] == _names(folder, f"{source}pickle.loads(pickle.dumps(Point(1)))\n{ONE}")


def test_no_compiled_file_is_left_beside_the_tasks(folder: TaskFolder) -> None:
    _names(folder, ONE)

    assert ["quiz.jsonl", "task_it.py"] == sorted(path.name for path in folder.path.iterdir())


def test_the_hash_covers_what_a_task_keeps_of_its_data(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    source = ONE.replace(
        "eval_type =", 'def __init__(self): self.ds = load_dataset("talks", split="test")\n    eval_type ='
    )
    hashes = []
    for text in ("a", "b", "b"):
        folder.data("talks.jsonl", [{"text": text}])
        hashes.append(folder.task(source).sha256)

    assert hashes[0] != hashes[1]
    assert hashes[1] == hashes[2]
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)
