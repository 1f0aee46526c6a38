"""Warnings about prompts of one task that differ in a few words only.

Prompts are compared by their runs of three words or symbols (shingles), without those that half of the prompts share,
such as an instruction. Pairs are found by their rarest shingles: two sets whose overlap is at least t share one of the
first ``|s| - ceil(t |s|) + 1`` in any common order (Bayardo, Ma and Srikant, "Scaling up all pairs similarity search",
2007).
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_lmeval.formats.lint.warning import RULES, LintWarning, shown, tokens
from pytest_lmeval.task import Task
from pytest_lmeval.types import Example

SIMILAR = 0.8
"""The least Jaccard similarity of the shingles of near duplicates."""

_WIDTH = 3
_SKETCH = 200  # the smallest hashes represent a longer prompt
_COMMON = 0.5
_FEW = 10  # smaller tasks have too few prompts to detect boilerplate
_POSTINGS = 50  # the most prompts that a shingle leads to


def near_duplicates(task: Task) -> Iterator[LintWarning]:
    """Yield a warning for every prompt that equals or resembles an earlier one, which it names."""
    sketches = _without_boilerplate([_sketch(example.prompt) for example in task.examples])
    frequency = Counter(shingle for sketch in sketches for shingle in sketch)
    index: dict[int, list[int]] = {}
    first_same: dict[tuple[str, ...], int] = {}
    for number, sketch in enumerate(sketches):
        example = task.examples[number]
        same = first_same.setdefault(tokens(example.prompt) or (example.prompt,), number)
        rarest = _rarest(sketch, frequency)
        if same != number:
            yield _warning(task, example, task.examples[same], 1.0)
            continue
        near, similarity = _nearest(sketch, sorted({each for key in rarest for each in index.get(key, ())}), sketches)
        for key in rarest:
            if len(index.setdefault(key, [])) < _POSTINGS:
                index[key].append(number)
        if similarity >= SIMILAR:
            yield _warning(task, example, task.examples[near], similarity)


def _sketch(prompt: str) -> frozenset[int]:
    words = tokens(prompt)
    runs = zip(*(words[start:] for start in range(_WIDTH)), strict=False)
    shingles = {zlib.crc32(" ".join(run).encode()) for run in runs}
    return frozenset(shingles if len(shingles) <= _SKETCH else sorted(shingles)[:_SKETCH])


def _without_boilerplate(sketches: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    if len(sketches) < _FEW:
        return list(sketches)
    frequency = Counter(shingle for sketch in sketches for shingle in sketch)
    common = {shingle for shingle, count in frequency.items() if count >= _COMMON * len(sketches)}
    return [sketch - common for sketch in sketches]


def _rarest(sketch: frozenset[int], frequency: Counter[int]) -> list[int]:
    length = len(sketch) - math.ceil(SIMILAR * len(sketch)) + 1 if sketch else 0
    return sorted(sketch, key=lambda shingle: (frequency[shingle], shingle))[:length]


def _nearest(sketch: frozenset[int], earlier: Sequence[int], sketches: Sequence[frozenset[int]]) -> tuple[int, float]:
    """Return the first of ``earlier`` that is similar enough and its similarity, or ``(-1, 0.0)``."""
    for number in earlier:
        shared = len(sketch & sketches[number])
        similarity = shared / (len(sketch) + len(sketches[number]) - shared)
        if similarity >= SIMILAR:
            return number, similarity
    return -1, 0.0


def _warning(task: Task, example: Example, earlier: Example, similarity: float) -> LintWarning:
    degree = "asks the same as" if similarity == 1.0 else f"shares {similarity:.0%} of its wording with"
    same_targets = set(example.targets) == set(earlier.targets)
    targets = "" if same_targets else ", with other targets: one of the two may be wrong"
    detail = f"{shown(example.prompt)} {degree} line {earlier.line}{targets}; {RULES['near_duplicate']}"
    return LintWarning(task.path, example.line, "near_duplicate", detail)
