"""Answers that one word would get right far too often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_lmeval.formats.lint.warning import RULES, LintWarning, is_scored_by_text, score_of, shown
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task
from pytest_lmeval.types import Example

_FEWEST = 8  # among fewer examples any distribution is an accident
_EXCESS = 0.1
_SIGMAS = 2.5


def skewed_answers(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for each category and metric of ``task`` in which one answer is right much too often.

    Too often is a tenth, and two and a half standard deviations, above one part in as many as there are answers. The
    score is the metric's own, after the post-process rule. A task with one answer for all examples is always reported.
    """
    groups: dict[tuple[str, str], list[Example]] = {}
    for example in task.examples:
        if is_scored_by_text(task, example, registry):
            groups.setdefault((example.category, example.metric), []).append(example)
    for examples in groups.values():
        if len(examples) >= _FEWEST:
            yield from _of_group(task, examples)


def _of_group(task: Task, examples: Sequence[Example]) -> Iterator[LintWarning]:
    counts = Counter(target for example in examples for target in {each.strip() for each in example.targets})
    answer, count = max(counts.items(), key=lambda item: (item[1], item[0]))
    if not _is_skewed(count / len(examples), len(counts), len(examples)):
        return
    score = math.fsum(score_of(task, example, [answer]) for example in examples) / len(examples)
    if not _is_skewed(score, len(counts), len(examples)):
        return
    first = next(example for example in examples if answer in {each.strip() for each in example.targets})
    detail = (
        f"a model that always says {shown(answer)} would score {score:.2f} on the {len(examples)} examples"
        f"{_of_category(first)}, which have {len(counts)} answer(s); {RULES['skewed_answers']}"
    )
    yield LintWarning(task.path, first.line, "skewed_answers", detail)


def _is_skewed(share: float, answers: int, n: int) -> bool:
    if answers == 1:
        return share == 1.0
    even = 1 / answers
    return share >= even + max(_EXCESS, _SIGMAS * math.sqrt(even * (1 - even) / n))


def _of_category(example: Example) -> str:
    return f" of category {shown(example.category)}" if example.category else ""
