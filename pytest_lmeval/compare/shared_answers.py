"""Answers that two runs have in common, as one cache served them: they say nothing about chance."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_lmeval.types import ExampleResult


def shared_answers(old: Iterable[ExampleResult], new: Iterable[ExampleResult]) -> int:
    """Return how many examples have the same answers in both runs, and have them out of a cache in one of them."""
    before = {(result.task, result.id): result for result in old}
    both = ((before[result.task, result.id], result) for result in new if (result.task, result.id) in before)
    return sum(bool(one.cached or other.cached) and one.outputs == other.outputs for one, other in both)


def shared_with_baseline(old: Iterable[ExampleResult], new: Iterable[ExampleResult]) -> list[str]:
    """Return the warning that a run has answers of its baseline; nothing where it has none."""
    results = list(new)
    shared = shared_answers(old, results) if any(result.cached for result in results) else 0
    if not shared:
        return []
    return [
        f"{shared} of {len(results)} examples have the same answers as in the baseline, out of the cache: they say "
        "nothing about chance"
    ]
