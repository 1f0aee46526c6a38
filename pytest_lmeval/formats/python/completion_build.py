"""Build a run's task from a class over a data set, and report the class's errors before any request."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from inspect import isfunction
from typing import Any

from pytest_lmeval.data import local
from pytest_lmeval.data.splits import Splits, digest_of
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.checks import misspelt
from pytest_lmeval.formats.python.completion_task import CompletionTask, ExampleMaker
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.python.items import Drawn, Items, declared_subjects, loaded_parts, subject_name
from pytest_lmeval.formats.python.measures import BYTE_PROBABILITY, Measure, resolve
from pytest_lmeval.formats.python.module import TaskModule
from pytest_lmeval.formats.python.samples import Samples, created, iterated, of_items, samples_of_run
from pytest_lmeval.formats.task import LoadOptions, Subjects, TaskSource
from pytest_lmeval.numbers import is_count, is_number
from pytest_lmeval.registry import Registry
from pytest_lmeval.tasks.base import NOT_CALLED, TASK_STYLER, BaseTask
from pytest_lmeval.tasks.faults import called
from pytest_lmeval.tasks.loading import revision_of
from pytest_lmeval.tasks.sample import ResponseType

_OURS = ("pytest_lmeval.tasks.", "pytest_lmeval.compat.")
_NOBODYS = (object, *BaseTask.__mro__[1:])
_KNOWN = frozenset(dir(BaseTask)) | BaseTask.__annotations__.keys()
_NEARLY = 0.85
_REQUIRED = ("NAME", "DATASET_PATH", "METRICS")
_METHODS = ("_get_instruction_text", "_get_ground_truth")


def draws_few_shots(kind: type[BaseTask[Any]]) -> bool:
    """Return True if a class names a split for few-shot examples, or draws few-shot examples itself."""
    return bool(kind.FEWSHOT_SPLIT) or _overrides(kind, "_sample_fewshot_examples")


def make_base_task(thing: type[BaseTask[Any]] | BaseTask[Any], options: LoadOptions) -> BaseTask[Any]:
    """Return ``thing``, or an instance of it if it is a class, with the run's number of few-shot examples."""
    kind = thing if isinstance(thing, type) else type(thing)
    # Other classes ignore the run's number of few-shot examples.
    asked = options.num_fewshot if draws_few_shots(kind) else None
    field = f"{kind.__name__}.__init__"
    if isinstance(thing, type) and asked is not None and "num_fewshot" in inspect.signature(kind).parameters:
        return _with_few_shots(kind, field, asked)
    task = called(field, thing) if isinstance(thing, type) else thing
    if asked is not None:
        task.num_fewshot = asked
    return task


def _with_few_shots(kind: type[BaseTask[Any]], field: str, asked: int) -> BaseTask[Any]:
    # The class may have a fixed number of few-shot examples, or refuse this number.
    try:
        return called(field, lambda: kind(num_fewshot=asked))
    except RecordRefused as refused:
        advice = "name other files, or skip the class with --lm-allow-bad-tasks"
        detail = f"{refused.detail}; it was given --lm-num-fewshot={asked}: {advice}"
        raise RecordRefused(refused.rule, refused.field, detail) from None


def build_completion_task(
    task: BaseTask[Any], module: TaskModule, line: int, source: TaskSource, registry: Registry
) -> CompletionTask:
    """Return a run's task; raise RecordRefused, which names the class and the field, for the first error."""
    task._folder = module.path.parent
    try:
        _check(task)
        measures = resolve(task.METRICS, registry)
        if isinstance(task.SUBJECTS, str) or not isinstance(task.SUBJECTS, Sequence):
            raise RecordRefused("bad_type", "SUBJECTS", f"expected a list, got {task.SUBJECTS!r:.80}")
        _check_measures(task, measures)
        samples, dataset = _iterated(task) if _overrides(type(task), "iterate_samples") else _made(task, measures)
        maker = ExampleMaker(task, samples, measures, line)
        indices, named = _selected(samples.subjects, declared_subjects(task.SUBJECTS), source.options.subjects)
    except RecordRefused as refused:
        owner = f"{type(task).__name__}."
        field = "DATASET_PATH" if refused.field == "dataset" else refused.field.removeprefix(owner)
        raise RecordRefused(refused.rule, f"{owner}{field}", refused.detail) from None
    sha256 = hashlib.sha256(f"{module.sha256}{dataset['sha256']}".encode()).hexdigest()
    examples = Examples(maker, indices, line)
    hashes = (sha256, module.code, module.scoring_code)
    return CompletionTask(
        task.NAME, source.path, *hashes, task, measures, examples, maker.held, dataset, subjects=named
    )


def _made(task: BaseTask[Any], measures: Sequence[Measure]) -> tuple[Samples, Mapping[str, str]]:
    parts = _open(task)
    items = Items(parts, task.SAMPLE_SPLIT, task.SUBJECTS)
    _check_few_shots(task, parts)
    task.dataset = Drawn(items, items[0])
    if not _overrides(type(task), "_create_samples"):
        return of_items(task, items), _facts(task, parts)
    return created(task, items, together=measures[0].compares), _facts(task, parts)


def _iterated(task: BaseTask[Any]) -> tuple[Samples, Mapping[str, str]]:
    task._samples = lambda: samples_of_run(task, Items(_open(task), task.SAMPLE_SPLIT, task.SUBJECTS))
    samples = iterated(task)
    asked = repr([samples.group(number) for number in range(len(samples.subjects))])
    return samples, {
        "path": str(getattr(task, "DATASET_PATH", "")),
        "sha256": hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def _check(task: BaseTask[Any]) -> None:
    _check_called(task)
    _check_names(type(task), task.RESPONSE_TYPE)
    for name in ("NAME", "SAMPLE_SPLIT", *(["DATASET_PATH"] if "DATASET_PATH" in _required(type(task)) else [])):
        value = getattr(task, name)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise RecordRefused("bad_type", name, f"expected a line of text, got {value!r:.80}")
    if task.RESPONSE_TYPE not in list(ResponseType):
        choices = ", ".join(f"ResponseType.{each.name}" for each in ResponseType)
        raise RecordRefused("bad_value", "RESPONSE_TYPE", f"expected one of {choices}, got {task.RESPONSE_TYPE!r:.80}")
    threshold: Any = task.THRESHOLD
    if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
        raise RecordRefused("bad_value", "THRESHOLD", f"expected a number in [0, 1], got {threshold!r:.80}")
    number = task.num_fewshot
    if not is_count(number):
        raise RecordRefused("bad_value", "num_fewshot", f"expected a whole number >= 0, got {number!r:.80}")


def _check_called(task: BaseTask[Any]) -> None:
    """Raise RecordRefused if the class overrides a member that no run calls."""
    named, held = _own_names(type(task)), vars(task)
    for name, instead in NOT_CALLED.items():
        if name in held or (name in named and name in task._NOT_CALLED):
            raise RecordRefused("bad_value", name, f"no run calls it, so it would have no effect: {instead}")


def _check_names(kind: type[BaseTask[Any]], response_type: ResponseType) -> None:
    required = _required(kind)
    for name in required:
        if not hasattr(kind, name):
            raise RecordRefused("missing_required", name, f"required: {', '.join(required)}{_misspelt(name, kind)}")
    for method in _needed(kind, response_type):
        if not _overrides(kind, method):
            detail = f"{response_type} tasks need this method{_misspelt(method, kind)}"
            raise RecordRefused("missing_required", method, detail)
    for name in sorted(_KNOWN - set(_own_names(kind))):
        # A misspelt name would have no effect and raise no error.
        if hint := _misspelt(name, kind, _NEARLY):
            raise RecordRefused("unknown_field", name, f"is not set{hint}")


def _required(kind: type) -> Sequence[str]:
    loads = _overrides(kind, "_load_dataset") or _overrides(kind, "iterate_samples")
    return [name for name in _REQUIRED if not (loads and name == "DATASET_PATH")]


def _needed(kind: type[BaseTask[Any]], response_type: ResponseType) -> Sequence[str]:
    """Return the methods that a class must define, which depend on the methods that it does define."""
    if any(_overrides(kind, whole) for whole in ("_create_samples", "iterate_samples")):
        return ()
    if hasattr(kind, TASK_STYLER):
        return ("_get_raw_question", "_get_choices", "_get_correct_index")
    asks = any(_overrides(kind, whole) for whole in ("_get_messages", "_get_instruction_messages"))
    chooses = response_type == ResponseType.LOGLIKELIHOODS
    return (*_METHODS[asks:], *(("_get_possible_completions",) if chooses else ()))


def _misspelt(name: str, kind: type, likeness: float = 0.6) -> str:
    # A name that methods of the class use is a helper, not a misspelling.
    functions = [value for base in _own_classes(kind) for value in vars(base).values() if isfunction(value)]
    used = {name for function in functions for name in function.__code__.co_names}
    return misspelt(name, [each for each in _own_names(kind) if each not in used], _KNOWN, likeness)


def _check_measures(task: BaseTask[Any], measures: Sequence[Measure]) -> None:
    chooses = task.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS
    probable = [each.name for each in measures if each.of_loglikelihoods or each.compares]
    if any(each.name == BYTE_PROBABILITY for each in measures):
        probable.insert(0, BYTE_PROBABILITY)
    if probable and not chooses:
        raise RecordRefused("bad_value", "METRICS", f"{probable[0]} needs RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS")
    judge = next((each.name for each in measures if each.judge is not None or each.of_answer), "")
    if judge and chooses:
        raise RecordRefused("bad_value", "METRICS", f"{judge} needs RESPONSE_TYPE = ResponseType.COMPLETION")
    name = next((each.name for each in measures if each.compares), "")
    if name and len(measures) > 1:
        raise RecordRefused("bad_value", "METRICS", f"{name} scores several samples together: list no other metric")
    if name and not _overrides(type(task), "_create_samples"):
        raise RecordRefused("missing_required", "_create_samples", f"{name} needs two samples of each item")


def _open(task: BaseTask[Any]) -> Mapping[str, Splits]:
    """Return the splits by subject; the only key is ``""`` if the data are not divided by subject."""
    if any(_overrides(type(task), name) for name in ("_load_dataset", "_load_hf_dataset", "_shuffle_splits")):
        return loaded_parts(task)
    subjects = [subject_name(each) for each in task.SUBJECTS]
    found = local.find(task.DATASET_PATH, task._folder)
    if found is None:
        from pytest_lmeval.data import hub

        return hub.open_splits(task.DATASET_PATH, subjects, revision_of(task, task.DATASET_PATH))
    return (local.read_subjects(found, subjects) if found.is_dir() else None) or {"": local.read(found)}


def _check_few_shots(task: BaseTask[Any], parts: Mapping[str, Splits]) -> None:
    if task.num_fewshot == 0:
        return
    if not task.FEWSHOT_SPLIT:
        if _overrides(type(task), "_sample_fewshot_examples"):
            return
        detail = f"{task.num_fewshot} few-shots asked for, but the class names no split to draw them from"
        raise RecordRefused("missing_required", "FEWSHOT_SPLIT", detail)
    try:
        _ = [splits[task.FEWSHOT_SPLIT] for splits in parts.values()]
    except RecordRefused as refused:
        raise RecordRefused(refused.rule, "FEWSHOT_SPLIT", refused.detail) from None


def _selected(found: Sequence[str], declared: Sequence[str], asked: Sequence[str]) -> tuple[list[int], Subjects | None]:
    there = sorted(set(found) - {""})
    missing = [subject for subject in declared if subject not in there]
    if there and missing:
        detail = f"no item of the subject {missing[0]!r}; the data has {', '.join(there)}"
        raise RecordRefused("bad_value", "SUBJECTS", detail)
    # An item without a subject belongs to all subjects.
    kept = {"", *declared} if declared else {"", *there}
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
    return {"path": str(getattr(task, "DATASET_PATH", "")), "sha256": sha256, **revision}


def _digest(parts: Mapping[str, Splits], split: str) -> str:
    digests = [splits[split].sha256 for splits in parts.values()]
    return digests[0] if len(digests) == 1 else digest_of(each.encode() for each in digests)


def _own_classes(kind: type) -> list[type]:
    """Return the user's classes in method resolution order, without classes of this package and ``object``."""
    return [base for base in kind.__mro__ if base not in _NOBODYS and not base.__module__.startswith(_OURS)]


def _own_names(kind: type) -> list[str]:
    """Return the names that the user's classes set."""
    return [name for base in _own_classes(kind) for name in vars(base)]


def _overrides(kind: type[BaseTask[Any]], name: str) -> bool:
    """Return True if one of the user's classes sets ``name``."""
    return any(name in vars(base) for base in _own_classes(kind))
