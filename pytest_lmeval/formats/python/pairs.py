"""Two samples of an item that are scored together: which of two conversations makes the same text more probable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formatters import joined
from pytest_lmeval.task import Prompt
from pytest_lmeval.tasks.sample import Sample
from pytest_lmeval.types import Example, Joined, LogLikelihood


def paired(field: str, group: Sequence[Sample]) -> Sample:
    """Return the two as one sample whose completions are both texts; raise RecordRefused for anything else.

    The right one has the ground truth ``"True"``, the other ``"False"``.
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
    """Return a request for each sample; raise ScoringError where a formatter of the project wrote the prompt."""
    if isinstance(prompt, str) and prompt != joined(example.messages):
        raise ScoringError("lm_render writes one conversation; this example compares two: use the default for it")
    return tuple(
        LogLikelihood(*pair, task, example.id, () if isinstance(prompt, str) else Joined(sample.messages))
        for pair, sample in zip(pairs_of(group), group, strict=True)
    )


def pairs_of(group: Sequence[Sample]) -> list[tuple[str, str]]:
    """Return context and continuation of each sample."""
    return [(joined(sample.messages), str((sample.possible_completions or ("",))[0])) for sample in group]


def _text(sample: Sample) -> str:
    question = next(message.content for message in reversed(sample.messages) if message.role == "user")
    return f"{question}{(sample.possible_completions or ('',))[0]}"
