"""Build a run's task from one or several lists of conversations."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.checks import misspelt
from pytest_lmeval.formats.mixture import MixtureTask, Part, labels_of, mixture_task
from pytest_lmeval.formats.python.dialogue_task import EVAL_TYPES, DialogueMaker, DialogueTask
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.python.module import TaskModule
from pytest_lmeval.formats.task import Subjects, TaskSource
from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.tasks.conversations import Task, TaskSequence
from pytest_lmeval.tasks.faults import called

METHODS = ("eval_type", "num_examples", "get_example", "evaluate")


def lacking(kind: type[Task]) -> list[str]:
    """Return the required methods that a class does not define."""
    return [method for method in METHODS if getattr(kind, method) is getattr(Task, method)]


def trains_only(kind: type[Task]) -> bool:
    """Return True if a class has conversations for training only, without an evaluation."""
    return set(lacking(kind)) == {"eval_type", "evaluate"}


def build_dialogue_task(
    task: Task, name: str, module: TaskModule, line: int, source: TaskSource
) -> DialogueTask | MixtureTask:
    """Return a run's task; raise RecordRefused, which names the class and the field, for the first error."""
    if isinstance(task, TaskSequence):
        return _mixture(task, name, module, line, source)
    kind = type(task).__name__
    _check(task, kind)
    count = called(f"{kind}.num_examples", task.num_examples)
    if not is_whole(count) or count < 1:
        raise RecordRefused("bad_value", f"{kind}.num_examples", f"expected a whole number >= 1, got {count!r:.80}")
    indices = range(count)[task.start : task.stop : task.step]
    if not indices:
        detail = f"none of {count} examples is in {task.start}:{task.stop}:{task.step}"
        raise RecordRefused("bad_value", f"{kind}.start", detail)
    maker = DialogueMaker(task, line)
    examples = Examples(maker, indices, line)
    subjects = None
    if source.options.subjects:
        examples, subjects = _of_subjects(maker, examples, source.options.subjects, line)
    hashes = (_sha256(task, module), module.code, module.scoring_code)
    return DialogueTask(name, source.path, *hashes, task, examples, maker.held, subjects=subjects)


def _check(task: Task, kind: str) -> None:
    missing = lacking(type(task))
    if missing:
        hint = misspelt(missing[0], dir(type(task)), dir(Task))
        raise RecordRefused("missing_required", f"{kind}.{missing[0]}", f"required: {', '.join(METHODS)}{hint}")
    eval_type = called(f"{kind}.eval_type", lambda: task.eval_type)
    if eval_type not in EVAL_TYPES:
        detail = f"expected one of {', '.join(EVAL_TYPES)}, got {eval_type!r:.80}"
        raise RecordRefused("bad_value", f"{kind}.eval_type", detail)
    threshold: Any = task.threshold
    if not is_number(threshold) or not 0 <= threshold <= 1:
        raise RecordRefused("bad_value", f"{kind}.threshold", f"expected a number in [0, 1], got {threshold!r:.80}")


def _of_subjects(
    maker: DialogueMaker, examples: Examples, asked: tuple[str, ...], line: int
) -> tuple[Examples, Subjects]:
    kept = []
    names = set()
    for index in examples.indices:
        try:
            subject = maker(index).category
        except RecordRefused:
            subject = ""  # keep the example: the later check reports the error
        names.add(subject)
        if not subject or subject in asked:
            kept.append(index)
    return Examples(maker, kept, line), Subjects(frozenset(names - {""}), len(examples.indices))


def _mixture(task: TaskSequence, name: str, module: TaskModule, line: int, source: TaskSource) -> MixtureTask:
    if not task.tasks:
        raise RecordRefused("bad_value", f"{type(task).__name__}.tasks", "expected at least one task")
    labels = labels_of(each.name or type(each).__name__ for each in task.tasks)
    built = [
        build_dialogue_task(each, label, module, line, source) for label, each in zip(labels, task.tasks, strict=True)
    ]
    parts = [Part(part.name, part, part.examples.at) for part in built]
    left = [frozenset(part.examples.indices) for part in built]
    # Convert positions in a part's view to positions in its data, some of which --lm-subject may have removed.
    places = [(part, task.tasks[part].indices[view]) for part, view in (task.order[index] for index in task.indices)]
    order = [(part, place) for part, place in places if place in left[part]]
    mixed = mixture_task(name, source.path, _sha256(task, module), parts, order, line)
    named = [part.subjects.names for part in built if part.subjects is not None]
    return replace(mixed, subjects=Subjects(frozenset().union(*named), len(places))) if named else mixed


def _sha256(task: Task, module: TaskModule) -> str:
    digest = hashlib.sha256(module.sha256.encode())
    for part in task.tasks if isinstance(task, TaskSequence) else (task,):
        for value in vars(part).values():
            # Local rows have a hash of their files; rows of the datasets library have a fingerprint.
            known = getattr(value, "sha256", None) or getattr(value, "_fingerprint", None)
            if isinstance(known, str):
                digest.update(known.encode())
    return digest.hexdigest()
