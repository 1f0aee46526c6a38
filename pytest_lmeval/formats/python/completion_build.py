"""From a class over a dataset to a task of a run: what it lacks is found here, before anything is asked."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.data import local
from pytest_lmeval.data.splits import Splits, digest_of
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.hints import misspelt
from pytest_lmeval.formats.python.completion_task import CompletionTask, ExampleMaker
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.python.faults import called
from pytest_lmeval.formats.python.items import Items, subject_name
from pytest_lmeval.formats.python.measures import BYTE_PROBABILITY, Measure, resolve
from pytest_lmeval.formats.python.module import TaskModule
from pytest_lmeval.formats.task import LoadOptions, Subjects, TaskSource
from pytest_lmeval.registry import Registry
from pytest_lmeval.tasks.base import BaseTask
from pytest_lmeval.tasks.sample import ResponseType

_KNOWN = frozenset(dir(BaseTask)) | BaseTask.__annotations__.keys()
_NEARLY = 0.85
_REQUIRED = ("NAME", "DATASET_PATH", "METRICS")
_METHODS = ("_get_instruction_text", "_get_ground_truth")


def draws_few_shots(kind: type[BaseTask[Any]]) -> bool:
    """Tell whether a class names a split to draw few-shots from, or draws them itself."""
    return bool(kind.FEWSHOT_SPLIT) or kind._sample_fewshot_examples is not BaseTask._sample_fewshot_examples


def make_base_task(thing: type[BaseTask[Any]] | BaseTask[Any], options: LoadOptions) -> BaseTask[Any]:
    """Return an instance of a task class, or the one given, with the number of few-shots that the run asks for."""
    kind = thing if isinstance(thing, type) else type(thing)
    # The others have no few-shots, however many the run asks for.
    asked = options.num_fewshot if draws_few_shots(kind) else None
    task = _made(thing, asked) if isinstance(thing, type) else thing
    if asked is not None:
        task.num_fewshot = asked
    return task


def _made(kind: type[BaseTask[Any]], asked: int | None) -> BaseTask[Any]:
    takes_number = asked is not None and "num_fewshot" in inspect.signature(kind).parameters
    return called(f"{kind.__name__}.__init__", lambda: kind(num_fewshot=asked or 0) if takes_number else kind())


def build_completion_task(
    task: BaseTask[Any], module: TaskModule, line: int, source: TaskSource, registry: Registry
) -> CompletionTask:
    """Return the task of a run; raise RecordRefused, with class and field, for the first thing that is not right."""
    try:
        _check(task)
        measures = resolve(task.METRICS, registry)
        _check_subjects(task.SUBJECTS)
        _check_measures(task, measures)
        parts = _open(task, module.path.parent)
        items = Items(parts, task.SAMPLE_SPLIT, task.SUBJECTS)
        _check_few_shots(task, parts)
        task.dataset = items.drawn(items[0])
        maker = ExampleMaker(task, items, measures, line)
        indices, named = _selected(items, source.options.subjects)
    except RecordRefused as refused:
        field = "DATASET_PATH" if refused.field == "dataset" else refused.field
        raise RecordRefused(refused.rule, f"{type(task).__name__}.{field}", refused.detail) from None
    dataset = _facts(task, parts)
    sha256 = hashlib.sha256(f"{module.sha256}{dataset['sha256']}".encode()).hexdigest()
    examples = Examples(maker, indices, line)
    hashes = (sha256, module.code, module.scoring_code)
    return CompletionTask(
        task.NAME, source.path, *hashes, task, measures, examples, maker.held, dataset, subjects=named
    )


def _check(task: BaseTask[Any]) -> None:
    _check_names(type(task), task.RESPONSE_TYPE)
    for name in ("NAME", "DATASET_PATH", "SAMPLE_SPLIT"):
        value = getattr(task, name)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise RecordRefused("bad_type", name, f"expected a line of text, got {value!r:.80}")
    if task.RESPONSE_TYPE not in list(ResponseType):
        choices = ", ".join(f"ResponseType.{each.name}" for each in ResponseType)
        raise RecordRefused("bad_value", "RESPONSE_TYPE", f"expected one of {choices}, got {task.RESPONSE_TYPE!r:.80}")
    _check_threshold(task.THRESHOLD)
    number = task.num_fewshot
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise RecordRefused("bad_value", "num_fewshot", f"expected a whole number >= 0, got {number!r:.80}")


def _check_names(kind: type, response_type: ResponseType) -> None:
    for name in _REQUIRED:
        if not hasattr(kind, name):
            raise RecordRefused("missing_required", name, f"required: {', '.join(_REQUIRED)}{_misspelt(name, kind)}")
    chooses = response_type == ResponseType.LOGLIKELIHOODS
    for method in (*_METHODS, *(("_get_possible_completions",) if chooses else ())):
        if getattr(kind, method) is getattr(BaseTask, method):
            detail = f"{response_type} tasks need this method{_misspelt(method, kind)}"
            raise RecordRefused("missing_required", method, detail)
    for name in sorted(_KNOWN - set(_own(kind))):
        # What such a line is to change would stay as it is, in silence.
        if hint := _misspelt(name, kind, _NEARLY):
            raise RecordRefused("unknown_field", name, f"is not set{hint}")


def _misspelt(name: str, kind: type, likeness: float = 0.6) -> str:
    return misspelt(name, _own(kind), _KNOWN, likeness)


def _own(kind: type) -> list[str]:
    return [name for base in kind.__mro__ if base is not BaseTask for name in vars(base)]


def _check_threshold(value: object) -> None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        return
    raise RecordRefused("bad_value", "THRESHOLD", f"expected a number in [0, 1], got {value!r:.80}")


def _check_measures(task: BaseTask[Any], measures: Sequence[Measure]) -> None:
    if task.RESPONSE_TYPE != ResponseType.LOGLIKELIHOODS and any(each.name == BYTE_PROBABILITY for each in measures):
        detail = f"{BYTE_PROBABILITY} needs RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS"
        raise RecordRefused("bad_value", "METRICS", detail)
    judge = next((each.name for each in measures if each.judge is not None), "")
    if judge and task.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS:
        raise RecordRefused("bad_value", "METRICS", f"{judge} needs RESPONSE_TYPE = ResponseType.COMPLETION")


def _check_subjects(given: object) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise RecordRefused("bad_type", "SUBJECTS", f"expected a list, got {given!r:.80}")


def _open(task: BaseTask[Any], folder: Path) -> Mapping[str, Splits]:
    """Return the splits of each subject where the data has splits for each, else those of ``""``."""
    subjects = [subject_name(each) for each in task.SUBJECTS]
    found = local.find(task.DATASET_PATH, folder)
    if found is None:
        from pytest_lmeval.data import hub

        return hub.open_splits(task.DATASET_PATH, subjects, task.HF_REVISION)
    return (local.read_subjects(found, subjects) if found.is_dir() else None) or {"": local.read(found)}


def _check_few_shots(task: BaseTask[Any], parts: Mapping[str, Splits]) -> None:
    if task.num_fewshot == 0:
        return
    if not task.FEWSHOT_SPLIT:
        if type(task)._sample_fewshot_examples is not BaseTask._sample_fewshot_examples:
            return
        detail = f"{task.num_fewshot} few-shots asked for, but the class names no split to draw them from"
        raise RecordRefused("missing_required", "FEWSHOT_SPLIT", detail)
    try:
        _ = [splits[task.FEWSHOT_SPLIT] for splits in parts.values()]
    except RecordRefused as refused:
        raise RecordRefused(refused.rule, "FEWSHOT_SPLIT", refused.detail) from None


def _selected(items: Items, asked: Sequence[str]) -> tuple[list[int], Subjects | None]:
    found = [place.subject for place in items]
    there = sorted(set(found) - {""})
    missing = [subject for subject in items.declared if subject not in there]
    if there and missing:
        detail = f"no item of the subject {missing[0]!r}; the data has {', '.join(there)}"
        raise RecordRefused("bad_value", "SUBJECTS", detail)
    # An item that does not say what it is about is about all of them.
    kept = {"", *items.declared} if items.declared else {"", *there}
    indices = [index for index, subject in enumerate(found) if subject in kept]
    if not asked or not there:
        return indices, None
    named = Subjects(frozenset(kept & set(there)), len(indices))
    return [index for index in indices if found[index] in asked], named


def _facts(task: BaseTask[Any], parts: Mapping[str, Splits]) -> Mapping[str, str]:
    sample = _digest(parts, task.SAMPLE_SPLIT)
    shots = _digest(parts, task.FEWSHOT_SPLIT) if all(task.FEWSHOT_SPLIT in splits for splits in parts.values()) else ""
    sha256 = hashlib.sha256(f"{sample}{shots}".encode()).hexdigest()
    revision = {"revision": task.HF_REVISION} if task.HF_REVISION else {}
    return {"path": task.DATASET_PATH, "sha256": sha256, **revision}


def _digest(parts: Mapping[str, Splits], split: str) -> str:
    digests = [splits[split].sha256 for splits in parts.values()]
    return digests[0] if len(digests) == 1 else digest_of(each.encode() for each in digests)
