"""The samples that a task class makes from its items, by default one per item.

If a metric compares two samples of an item, each has its own conversation, and the right sample's text must be more
probable.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.data.splits import Row
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.python.examples import id_of
from pytest_lmeval.formats.python.items import Drawn, ItemIndex, Items
from pytest_lmeval.formatters import joined
from pytest_lmeval.task import Prompt
from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask
from pytest_lmeval.tasks.faults import called
from pytest_lmeval.tasks.sample import Sample
from pytest_lmeval.types import Example, Joined, LogLikelihood

SEED = 1234


@dataclass(frozen=True, slots=True)
class Samples:
    """A task's samples, and each example's subject ("" for none).

    ``group(number)`` returns the samples that make up one example; it raises RecordRefused if the class cannot make
    them.
    """

    subjects: Sequence[str]
    group: Callable[[int], tuple[Sample, ...]]


def of_items(task: BaseTask[Any], items: Items) -> Samples:
    """Return one sample of each item, made on demand."""

    def group(number: int) -> tuple[Sample, ...]:
        place = items[number]
        own_id = id_of(items.item(place).get("id"), place.index, place.own_splits)
        return tuple(replace(sample, id=own_id) for sample in samples_of(task, items, place, place.index))

    return Samples([place.subject for place in items], group)


def _decided(groups: Sequence[tuple[str, tuple[Sample, ...] | RecordRefused]]) -> Samples:
    """Return the samples of ``groups``, each a subject with its samples or with the error that prevents them."""

    def group(number: int) -> tuple[Sample, ...]:
        found = groups[number][1]
        if isinstance(found, RecordRefused):
            raise found
        return found

    return Samples([subject for subject, _ in groups], group)


def created(task: BaseTask[Any], items: Items, *, together: bool) -> Samples:
    """Return the samples of an overridden ``_create_samples``; if ``together``, an item's samples form one example."""
    counts: Counter[str] = Counter()
    groups: list[tuple[str, tuple[Sample, ...] | RecordRefused]] = []
    for place in items:
        first = counts[place.own_splits]
        try:
            samples = samples_of(task, items, place, first)
        except RecordRefused as refused:
            groups.append((place.subject, refused))
            continue
        counts[place.own_splits] += len(samples)
        if together:
            own_id = id_of(items.item(place).get("id"), place.index, place.own_splits)
            groups.append((place.subject, tuple(replace(sample, id=own_id) for sample in samples)))
            continue
        ids = _ids(items.item(place), place, range(first, first + len(samples)))
        groups += [(_subject(each), (replace(each, id=own_id),)) for own_id, each in zip(ids, samples, strict=True)]
    return _decided(groups)


def iterated(task: BaseTask[Any]) -> Samples:
    """Return the samples from an overridden ``iterate_samples``."""
    field = f"{type(task).__name__}.iterate_samples"
    task.rnd = random.Random(SEED)
    samples = called(field, lambda: _checked(field, list(task.iterate_samples())))
    return _decided([(_subject(each), (replace(each, id=_id(each, place)),)) for place, each in enumerate(samples)])


def samples_of_run(task: BaseTask[Any], items: Items) -> Iterator[Sample]:
    """Yield the samples of ``_create_samples``, subject by subject."""
    counts: Counter[str] = Counter()
    for place in items:
        samples = samples_of(task, items, place, counts[place.own_splits])
        counts[place.own_splits] += len(samples)
        yield from samples


def samples_of(task: BaseTask[Any], items: Items, place: ItemIndex, index: int) -> list[Sample]:
    """Return the samples that ``_create_samples`` makes from the item at ``place``, each with the item."""
    item = items.item(place)
    # A random generator for each item keeps prompts independent of the selection of items.
    task.rnd = random.Random(SEED + place.index)
    task.dataset = Drawn(items, place)
    subject = NO_SUBJECT if items.has_none else place.subject
    field = f"{type(task).__name__}._create_samples"
    made = _checked(field, called(field, task._create_samples, item, index, subject))
    return [replace(sample, index=place.index, item=item) for sample in made]


def _checked(field: str, given: Any) -> list[Sample]:
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, Sample) for each in given):
        raise RecordRefused("bad_type", field, f"expected a list of at least one Sample, got {given!r:.80}")
    if not all(isinstance(sample.subject, str) for sample in given):
        raise RecordRefused("bad_type", field, f"expected a subject that is text, got {given[0].subject!r:.80}")
    return list(given)


def _ids(item: Row, place: ItemIndex, numbers: Sequence[int]) -> list[str]:
    if item.get("id") is None or len(numbers) == 1:
        return [id_of(item.get("id"), number, place.own_splits) for number in numbers]
    return [f"{id_of(item['id'], 0)}-{number - numbers[0]}" for number in numbers]


def _id(sample: Sample, place: int) -> str:
    if isinstance(sample.id, int):
        return id_of(None, sample.id, _subject(sample))
    return id_of(sample.id or None, place)


def _subject(sample: Sample) -> str:
    return "" if sample.subject == NO_SUBJECT else sample.subject


def paired(field: str, group: Sequence[Sample]) -> Sample:
    """Return a sample whose completions are the texts of two samples; raise RecordRefused for any other group.

    The right sample has the ground truth ``"True"``, and the wrong sample has ``"False"``.
    """
    truths = sorted(str(sample.ground_truth) for sample in group)
    if truths != ["False", "True"] or not all(len(sample.possible_completions or ()) == 1 for sample in group):
        wanted = 'two samples with one completion each, ground truth "True" of one and "False" of the other'
        raise RecordRefused("bad_value", field, f"expected {wanted}, got ground truths {', '.join(truths)}")
    texts = [_text(sample) for sample in group]
    if len(set(texts)) < len(texts):
        raise RecordRefused("bad_value", field, f"both samples read {texts[0]!r:.80}")
    right = next(text for text, sample in zip(texts, group, strict=True) if sample.ground_truth == "True")
    return replace(group[0], ground_truth=right, possible_completions=texts, context=None)


def pair_requests(group: Sequence[Sample], prompt: Prompt, task: str, example: Example) -> tuple[LogLikelihood, ...]:
    """Return a request for each sample; raise ScoringError if ``lm_render`` wrote the prompt."""
    if isinstance(prompt, str) and prompt != joined(example.messages):
        raise ScoringError("lm_render writes one conversation; this example compares two: use the default for it")
    return tuple(
        LogLikelihood(*pair, task, example.id, () if isinstance(prompt, str) else Joined(sample.messages))
        for pair, sample in zip(pairs_of(group), group, strict=True)
    )


def pairs_of(group: Sequence[Sample]) -> list[tuple[str, str]]:
    """Return each sample's context and continuation."""
    return [(joined(sample.messages), str((sample.possible_completions or ("",))[0])) for sample in group]


def _text(sample: Sample) -> str:
    question = next(message.content for message in reversed(sample.messages) if message.role == "user")
    return f"{question}{(sample.possible_completions or ('',))[0]}"
