"""Mix tasks into one task; each example's original task scores it.

A YAML file lists the tasks::

    mixture: [arithmetic.jsonl, task_medical.py, task_medical.py]

or with options::

    mixture:
      tasks: [arithmetic.jsonl, {path: task_quiz.py, task: Geography Quiz}]
      order: sequence     # shuffled by default
      seed: 7             # of the shuffle, 42 by default
      name: curriculum    # the file's by default
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, UsageError, nearest
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.task import LoadedFile, Subjects, TaskSource
from pytest_lmeval.formats.yaml.document import line_of
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Prompt, Task
from pytest_lmeval.types import Example, ExampleResult, Metric, RecordError, Request

SEED = 42
_ORDERS = ("shuffled", "sequence")
_KEYS = ("tasks", "name", "order", "seed")
_LOADING: ContextVar[tuple[Path, ...]] = ContextVar("_LOADING", default=())


@dataclass(frozen=True, slots=True)
class Part:
    """A task in a mixture, the prefix of its example ids, and a function that returns its examples."""

    label: str
    task: Task
    at: Callable[[int], Example]


def _of_part(member: str) -> Callable[..., Any]:
    """Return a method that calls the method ``member`` of the example's task."""

    def method(self: MixtureTask, example: Example, *given: Any) -> Any:
        task, original = self._source(example)
        return getattr(task, member)(original, *given)

    return method


@dataclass(frozen=True, slots=True)
class MixtureTask(Task):
    """The examples of several tasks in one order.

    ``sources`` maps an example's id to its part number and the original example.
    """

    name: str
    path: Path
    sha256: str
    parts: Sequence[Part]
    examples: Examples
    sources: Mapping[str, tuple[int, Example]]
    subjects: Subjects | None = None

    @property
    def metric(self) -> str:
        """The metric of all parts, or ``mixed`` if they differ."""
        metrics = {part.task.metric for part in self.parts}
        return metrics.pop() if len(metrics) == 1 else "mixed"

    @property
    def needs(self) -> str:
        """The adapter method that a part needs, or ""; tasks need only one method so far."""
        return next((part.task.needs for part in self.parts if part.task.needs), "")

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The metrics of all parts."""
        return {name: metric for part in self.parts for name, metric in part.task.own_metrics.items()}

    @property
    def has_score(self) -> bool:
        """True if any part can have a score."""
        return any(part.task.has_score for part in self.parts)

    @property
    def numbered(self) -> bool:
        """True if any part uses row or line numbers as example ids."""
        return any(part.task.numbered for part in self.parts)

    @property
    def aggregates(self) -> bool:
        """True if any part aggregates its results."""
        return any(part.task.aggregates for part in self.parts)

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return the metrics and notes of the parts that aggregate; each name begins with the part's label and a dot.

        Drop the parts' scores, classes and confusion matrices, since they cannot be combined.
        """
        own: dict[int, list[ExampleResult]] = {}
        for result in results:
            number, original = self.sources[result.id]
            name = self.parts[number].task.name
            own.setdefault(number, []).append(replace(result, task=name, id=original.id))
        metrics: dict[str, Any] = {}
        notes: dict[str, dict[str, Any]] = {}
        for number, part in enumerate(self.parts):
            if not part.task.aggregates:
                continue
            found = part.task.aggregate(own.get(number, []))
            metrics |= {f"{part.label}.{name}": value for name, value in found.get("metrics", {}).items()}
            for name, note in found.get("notes", {}).items():
                entries = note.items() if isinstance(note, Mapping) else [("", note)]
                labelled = {f"{part.label}.{key}" if key else part.label: value for key, value in entries}
                notes.setdefault(name, {}).update(labelled)
        return {"metrics": metrics, "notes": notes}

    def prepared(self, adapter: Any) -> MixtureTask:
        """Return the mixture with each part prepared for ``adapter``."""
        parts = [replace(part, task=part.task.prepared(adapter)) for part in self.parts]
        same = all(new.task is old.task for new, old in zip(parts, self.parts, strict=True))
        return self if same else replace(self, parts=tuple(parts))

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the requests of the example's task, under the mixture's task name and example id."""
        task, original = self._source(example)
        asked = task.requests(original, prompt)
        return tuple(replace(request, task=self.name, id=example.id) for request in asked)

    score = _of_part("score")
    record = _of_part("record")
    conversation = _of_part("conversation")
    threshold = _of_part("threshold")
    metric_name = _of_part("metric_name")
    judges = _of_part("judges")
    further_metrics = _of_part("further_metrics")
    scoring = _of_part("scoring")
    unprompted = _of_part("unprompted")
    judge_requests = _of_part("judge_requests")

    def _source(self, example: Example) -> tuple[Task, Example]:
        part, original = self.sources[example.id]
        return self.parts[part].task, original


def mixture_task(
    name: str, path: Path, sha256: str, parts: Sequence[Part], order: Sequence[tuple[int, int]], line: int
) -> MixtureTask:
    """Return the mixture of ``parts``.

    For each example, ``order`` gives a part number and a position within that part.
    """
    sources: dict[str, tuple[int, Example]] = {}

    def make(index: int) -> Example:
        number, place = order[index]
        part = parts[number]
        original = part.at(place)
        own_id = f"{part.label}.{original.id}"
        sources[own_id] = (number, original)
        return replace(original, id=own_id, category=part.label, line=line, place=index)

    return MixtureTask(name, path, sha256, tuple(parts), Examples(make, range(len(order)), line), sources)


def load_mixture(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> LoadedFile:
    """Return the mixture that a YAML ``document`` with the key ``mixture`` describes, or the document's error.

    Paths are relative to the file's folder. If a task is listed twice, its examples occur twice.
    """
    try:
        with _loading(source.path):
            task, draws = _mixture(source, document, registry)
    except RecordRefused as refused:
        line = line_of(document, refused.field)
        return LoadedFile((), (RecordError(line, None, refused.rule, refused.field, refused.detail),))
    errors = task.examples.check(partial(source.options.used, task.name))
    subjects = {} if task.subjects is None else {task.name: task.subjects}
    return LoadedFile((task,) if task.examples else (), errors, subjects=subjects, draws_few_shots=draws)


def _mixture(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> tuple[MixtureTask, bool]:
    unknown = next((key for key in document if key != "mixture"), None)
    if unknown is not None:
        raise RecordRefused("unknown_field", str(unknown), "a mixture has no key beside 'mixture'")
    given = document["mixture"]
    settings: Any = {"tasks": given} if isinstance(given, list) else given
    _check(settings)
    loaded = [
        _tasks(f"mixture.tasks[{number}]", entry, source, registry) for number, entry in enumerate(settings["tasks"])
    ]
    tasks = [task for each in loaded for task in each.tasks]
    labels = labels_of(task.name for task in tasks)
    parts = [Part(label, task, task.examples.__getitem__) for label, task in zip(labels, tasks, strict=True)]
    order = [(number, place) for number, part in enumerate(parts) for place in range(len(part.task.examples))]
    if settings.get("order", _ORDERS[0]) == "shuffled":
        random.Random(settings.get("seed", SEED)).shuffle(order)
    digest = hashlib.sha256(source.data)
    for part in parts:
        digest.update(part.task.sha256.encode())
    task = mixture_task(settings.get("name", source.name), source.path, digest.hexdigest(), parts, order, 1)
    return replace(task, subjects=_subjects(loaded)), any(each.draws_few_shots for each in loaded)


def _subjects(loaded: Sequence[LoadedFile]) -> Subjects | None:
    known = [each for file in loaded for each in file.subjects.values()]
    others = [task for file in loaded for task in file.tasks if task.name not in file.subjects]
    if not known:
        return None
    names = frozenset[str]().union(*(each.names for each in known))
    return Subjects(names, sum(each.available for each in known) + sum(len(task.examples) for task in others))


def _check(settings: Any) -> None:
    if not isinstance(settings, dict):
        wanted = "a list of tasks, or an object with the key tasks"
        raise RecordRefused("bad_type", "mixture", f"expected {wanted}, got {checks.type_name(settings)}")
    checks.check_names(settings, _KEYS, "mixture.")
    if not isinstance(settings.get("tasks"), list) or not settings["tasks"]:
        raise RecordRefused("missing_required", "mixture.tasks", "expected a list of at least one task")
    checks.one_of(settings.get("order", _ORDERS[0]), "mixture.order", _ORDERS)
    checks.string(settings.get("name", "mixture"), "mixture.name")
    seed = settings.get("seed", SEED)
    if not is_whole(seed):
        raise RecordRefused("bad_type", "mixture.seed", f"expected a whole number, got {seed!r:.80}")


def _tasks(field: str, entry: Any, source: TaskSource, registry: Registry) -> LoadedFile:
    from pytest_lmeval.formats.files import load_file, task_name

    wanted = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(wanted, dict) or not isinstance(wanted.get("path"), str) or wanted.keys() - {"path", "task"}:
        raise RecordRefused("bad_value", field, f"expected a path, or path and task, got {entry!r:.80}")
    path = (source.path.parent / wanted["path"]).resolve()
    if not path.is_file() or path.suffix not in registry.formats:
        raise RecordRefused("bad_value", field, f"{wanted['path']!r} is not a task file beside this one")
    if path in _LOADING.get():
        raise RecordRefused("bad_value", field, f"{wanted['path']!r} contains this mixture")
    try:
        loaded = load_file(path, task_name(path, path.parent), registry, options=source.options, is_named=True)
    except UsageError as error:
        raise RecordRefused("bad_value", field, str(error)) from None
    if loaded.errors:
        raise RecordRefused("bad_value", field, "; ".join(error.at(path.name) for error in loaded.errors))
    chosen = [task for task in loaded.tasks if wanted.get("task") in (None, task.name)]
    # The run's subjects may exclude all examples of a task, so that only the task's subjects are known.
    subjects = {name: each for name, each in loaded.subjects.items() if wanted.get("task") in (None, name)}
    if not chosen and not subjects:
        names = [task.name for task in loaded.tasks]
        hint = nearest(str(wanted.get("task")), names)
        raise RecordRefused("bad_value", f"{field}.task", f"{path.name} has {', '.join(names) or 'no task'}{hint}")
    return replace(loaded, tasks=chosen, subjects=subjects)


def labels_of(names: Iterable[str]) -> list[str]:
    """Return a label for each part: the part's name, followed by a number if an earlier part has the same name."""
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return labels


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    token = _LOADING.set((*_LOADING.get(), path.resolve()))
    try:
        yield
    finally:
        _LOADING.reset(token)
