"""The whole of what a task is: declared in one place, completed for tasks of others, and never probed for."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

import pytest_lmeval
import pytest_lmeval.formats.task as formats
from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.formats.core.task import CoreTask
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.files import complete_file
from pytest_lmeval.formats.jsonl import JsonlTask
from pytest_lmeval.formats.mixture import MixtureTask
from pytest_lmeval.formats.python.completion_task import CompletionTask
from pytest_lmeval.formats.python.dialogue_task import DialogueTask
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.task import OPTIONAL_MEMBERS, REQUIRED_MEMBERS, Task, complete
from pytest_lmeval.types import NO_POLICY, Example, ExamplePolicy, Generate, Score
from tests.tables import each_row

PACKAGE = Path(pytest_lmeval.__file__).parent
OURS = [CompletionTask, CoreTask, DeclarativeTask, DialogueTask, JsonlTask, MixtureTask]
EXAMPLE = Example("a", "say a", ("a",), "exact_match")


class Bare:
    """A task with the required members alone."""

    name = "bare"
    path = Path("bare.own")
    sha256 = "0" * 64
    metric = "exact_match"
    examples: tuple[Example, ...] = (EXAMPLE,)

    def requests(self, example: Example, prompt: Any) -> Sequence[Generate]:
        return (Generate(prompt, self.name, example.id),)

    def score(self, example: Example, responses: Sequence[Any], tools: Any) -> Score:
        return Score(float(responses[0].text in example.targets))

    def threshold(self, example: Example) -> float | None:
        return None

    def metric_name(self, example: Example) -> str:
        return "exact_match"

    def scoring(self, example: Example) -> dict[str, Any]:
        return {}


# The example


def test_the_policy_of_an_example_is_what_its_metadata_set_and_ignores_a_wrong_type() -> None:
    given = {"must_pass": True, "threshold": "high", "tags": ["quick", 1], "quarantine": "today", "cluster": 3}
    example = replace(EXAMPLE, metadata=given)
    assert ExamplePolicy(must_pass=True, tags=("quick",), cluster="3") == example.policy
    assert ExamplePolicy(repeats=3, passes=2) == replace(example, metadata={"repeats": 3, "passes": 2}).policy
    assert EXAMPLE.policy is NO_POLICY is replace(example, metadata={"author": "me"}).policy


# The declaration


def test_a_member_is_required_or_has_a_default() -> None:
    (task,) = [
        each for each in ast.parse((PACKAGE / "task.py").read_text()).body if getattr(each, "name", "") == "Task"
    ]
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for each in ast.walk(task):
        if isinstance(each, ast.FunctionDef):
            is_abstract = any(ast.unparse(mark) == "abstractmethod" for mark in each.decorator_list)
            found[is_abstract].add(each.name)
        # What a task may set on itself is a value with a default.
        elif isinstance(each, ast.AnnAssign) and each.value is not None:
            found[False].add(ast.unparse(each.target))
    assert found == {True: set(REQUIRED_MEMBERS), False: set(OPTIONAL_MEMBERS)}


def test_the_names_of_before_are_names_of_the_one_class() -> None:
    assert {Task} == {formats.Task, formats.TaskDefaults, formats.BareTask, pytest_lmeval.Task}


@each_row("kind", OURS)
def test_tasks_of_every_format_have_the_defaults_and_keep_their_slots(kind: type) -> None:
    assert issubclass(kind, Task)
    assert "__dict__" not in dir(kind)


@each_row("kind", OURS)
def test_no_field_of_a_task_takes_the_property_of_a_default_for_its_value(kind: Any) -> None:
    defaults = [each.default for each in fields(kind) if each.default is not MISSING]
    assert [] == [default for default in defaults if isinstance(default, property)]


# Tasks of others


def test_a_task_that_lacks_nothing_is_left_as_it_is() -> None:
    class Whole(Bare, Task):
        pass

    task = Whole()
    assert complete(task) is task
    assert [task] == list(complete_file(LoadedFile((task,))).tasks)


def test_a_task_gets_the_defaults_of_what_it_lacks() -> None:
    task = complete(Bare())
    assert task.asks_model
    simple = (task.needs, task.random_baseline, task.score_metric, task.has_score, task.aggregates)
    assert ("", None, "", True, False) == simple
    assert ({}, {}) == (task.dataset, task.config)
    assert task.prepared(object()) is task
    assert task.judge_requests(EXAMPLE, ()) is None
    assert {"prompt": "say a", "targets": ["a"], "metric": "exact_match"} == task.record(EXAMPLE)
    assert complete(task) is task


def test_a_task_keeps_what_it_has() -> None:
    class Some(Bare):
        random_baseline = 0.25
        aggregates = True

        def aggregate(self, results: Sequence[Any]) -> dict[str, Any]:
            return {"metrics": {"count": len(results)}}

    task = complete(Some())
    assert ("bare", 0.25, True) == (task.name, task.random_baseline, task.aggregates)
    assert {"metrics": {"count": 0}} == task.aggregate([])
    assert "" == task.needs
    assert "bare" == copy.copy(task).name


def test_what_a_task_becomes_for_an_adapter_is_completed_too() -> None:
    @dataclass(frozen=True)
    class Preparing(Bare):
        asked: str = ""

        def prepared(self, adapter: Any) -> Preparing:
            return self if adapter is None else Preparing(adapter)

    task = complete(Preparing())
    assert task.prepared(None) is task
    ready: Any = task.prepared("it")
    assert ("it", False) == (ready.asked, ready.aggregates)


def test_a_file_s_tasks_are_completed_and_the_rest_of_it_is_kept() -> None:
    loaded = complete_file(LoadedFile((Bare(),), no_task="x", draws_few_shots=True))  # type: ignore[arg-type]  # bare
    assert ("x", True, [None]) == (
        loaded.no_task,
        loaded.draws_few_shots,
        [task.random_baseline for task in loaded.tasks],
    )


@each_row("member", REQUIRED_MEMBERS)
def test_a_task_without_a_required_member_is_refused_by_its_name(member: str) -> None:
    members = {name: value for name, value in vars(Bare).items() if name in REQUIRED_MEMBERS and name != member}
    with pytest.raises(UsageError, match=rf"\(Lacking\) has no {member}; a task needs name, path, sha256,"):
        complete(type("Lacking", (), members)())


def test_a_task_that_aggregates_without_a_method_for_it_is_refused() -> None:
    class Aggregating(Bare):
        aggregates = True

    class Defaulted(Aggregating, Task):
        pass

    with pytest.raises(UsageError, match=r"^bare.own: the task 'bare' \(Aggregating\) has no aggregate;"):
        complete(Aggregating())
    with pytest.raises(ScoringError, match="has no method aggregate"):
        complete(Defaulted()).aggregate([])


# No probes


def _probes(source: str) -> Iterator[str]:
    """Yield every ``getattr`` and ``hasattr`` that asks a task, or anything, for a member of a task."""
    if "attr(" not in source:  # as most files; to parse them takes a second
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[asked, ast.Constant(str(name)), *_]):
                is_task = ast.unparse(asked).rpartition(".")[2] == "task"
                if name in OPTIONAL_MEMBERS or (is_task and name in REQUIRED_MEMBERS):
                    yield ast.unparse(node)


def test_a_probe_is_found_wherever_it_stands() -> None:
    source = "def f(unit, other):\n    if hasattr(unit.task, 'score'):\n        return getattr(other, 'needs', '')\n"
    assert ["hasattr(unit.task, 'score')", "getattr(other, 'needs', '')"] == list(_probes(source))
    assert [] == list(_probes("getattr(adapter, 'name', None); unit.task.score; getattr(task, 'OWN')"))


def test_nothing_behind_the_border_asks_whether_a_task_has_a_member() -> None:
    border = PACKAGE / "task.py"
    files = [path for path in PACKAGE.rglob("*.py") if path != border]
    found = [f"{path.name}: {probe}" for path in files for probe in _probes(path.read_text("utf-8"))]
    assert [] == found
