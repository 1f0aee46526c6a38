"""Warnings about skewed answers, answers in the prompt, and prompts in two tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_lmeval.formats.lint.warning import (
    RULES,
    LintWarning,
    has_labels,
    is_scored_by_text,
    score_of,
    shown,
    tokens,
    words,
)
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.task import Task
from pytest_lmeval.types import Example

_FEWEST = 8  # fewer examples say nothing about the distribution
_EXCESS = 0.1
_SIGMAS = 2.5


def skewed_answers(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for each category and metric of ``task`` in which one answer is right much too often.

    The limit is an even share plus 0.1 and 2.5 standard deviations, whichever is higher. The metric scores after the
    post-process rule. A task with one answer for all examples is always reported.
    """
    groups: dict[tuple[str, str], list[Example]] = {}
    for example in task.examples:
        if example.targets and is_scored_by_text(task, example, registry):
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
    category = f" of category {shown(first.category)}" if first.category else ""
    detail = (
        f"a model that always says {shown(answer)} would score {score:.2f} on the {len(examples)} examples"
        f"{category}, which have {len(counts)} answer(s); {RULES['skewed_answers']}"
    )
    yield LintWarning(task.path, first.line, "skewed_answers", detail)


def _is_skewed(share: float, answers: int, n: int) -> bool:
    if answers == 1:
        return share == 1.0
    even = 1 / answers
    return share >= even + max(_EXCESS, _SIGMAS * math.sqrt(even * (1 - even) / n))


_FEW_ANSWERS = 10
_FULL_STOP = " \t\r\n.!\"'"  # may follow an answer; "14 + 1 =" and "is it 1?" do not end in one
_TELLING = 3  # words: texts contain shorter answers by accident


class _Place(NamedTuple):
    task: Task
    line: int


def answers_given_away(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for every example whose answer is in its worked examples, or at the end of its prompt.

    Labels and options belong in prompts, so an example with labels gets a warning only if a worked example repeats its
    question. A prompt that would score as its own answer gets one, too.
    """
    answers = {words(target) for example in task.examples for target in example.targets}
    options = answers if len(answers) <= _FEW_ANSWERS else set()
    for example in task.examples:
        in_shots = _in_few_shots(example)
        if in_shots:
            yield _warning(task, example, "answer_in_few_shot", in_shots)
        if not has_labels(example) and is_scored_by_text(task, example, registry):
            in_prompt = _in_prompt(task, example, options, registry)
            if in_prompt:
                yield _warning(task, example, "answer_in_prompt", in_prompt)


def overlaps(tasks: Sequence[Task]) -> Iterator[LintWarning]:
    """Yield a warning for each pair of tasks if one repeats prompts of the other, as prompts or worked examples."""
    prompts: dict[tuple[str, ...], dict[str, _Place]] = {}
    for task in tasks:
        for example in task.examples:
            prompts.setdefault(_key(example.prompt), {}).setdefault(task.name, _Place(task, example.line))
    yield from _repeated(prompts.values())
    yield from _learnt(tasks, prompts)


def _in_few_shots(example: Example) -> str:
    targets = [words(target) for target in example.targets]
    for number, shot in enumerate(example.few_shot_examples, start=1):
        if _key(shot.prompt) == _key(example.prompt):
            return f"worked example {number} is the question itself"
        if has_labels(example):
            continue
        completion = words(shot.completion)
        if completion and completion in targets:
            return f"worked example {number} has the same answer, {shown(shot.completion)}"
        text = words(f"{shot.prompt} {shot.completion}")
        leaked = [target for target in targets if len(target) >= _TELLING and _is_in(target, text)]
        if leaked:
            return f"worked example {number} holds the answer {shown(' '.join(leaked[0]))}"
    return ""


def _in_prompt(task: Task, example: Example, options: Collection[tuple[str, ...]], registry: Registry) -> str:
    score = score_of(task, example, [example.prompt])
    own = task.threshold(example)
    if score > 0 and is_at_least(score, registry.metric(task.metric_name(example)).threshold if own is None else own):
        return f"a model that repeats the prompt would score {score:.2f}"
    ending = tokens(example.prompt.rstrip(_FULL_STOP))
    ends = [target for target in example.targets if (end := tokens(target)) and ending[-len(end) :] == end]
    # "say true or false" ends in an answer, but does not give it away.
    text = words(example.prompt)
    if not ends or sum(_is_in(option, text) for option in options if option) > 1:
        return ""
    return f"the prompt ends in the answer {shown(ends[0])}"


def _is_in(part: tuple[str, ...], text: tuple[str, ...]) -> bool:
    return f" {' '.join(part)} " in f" {' '.join(text)} "


def _repeated(places: Iterable[dict[str, _Place]]) -> Iterator[LintWarning]:
    pairs: dict[tuple[str, str], list[tuple[_Place, _Place]]] = {}
    for by_task in places:
        first, *others = by_task.values()
        for other in others:
            pairs.setdefault((first.task.name, other.task.name), []).append((first, other))
    for found in pairs.values():
        here, there = found[0]
        detail = f"{_count(found, 'prompt')} also in {there.task.path}, such as on its line {there.line}"
        yield LintWarning(here.task.path, here.line, "overlap", f"{detail}; {RULES['overlap']}")


def _learnt(tasks: Sequence[Task], prompts: dict[tuple[str, ...], dict[str, _Place]]) -> Iterator[LintWarning]:
    for task in tasks:
        shots: dict[tuple[str, ...], int] = {}
        for example in task.examples:
            for shot in example.few_shot_examples:
                shots.setdefault(_key(shot.prompt), example.line)
        found: dict[str, list[tuple[int, _Place]]] = {}
        for key, line in shots.items():
            for name, place in prompts.get(key, {}).items():
                if name != task.name:
                    found.setdefault(name, []).append((line, place))
        for places in found.values():
            line, place = places[0]
            what = f"{_count(places, 'worked example')} here, answer included, is asked in {place.task.path}"
            detail = f"{what}, such as on its line {place.line}; {RULES['overlap']}"
            yield LintWarning(task.path, line, "overlap", detail)


def _count(found: Sequence[object], noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"


def _key(prompt: str) -> tuple[str, ...]:
    return tokens(prompt) or (prompt,)


def _warning(task: Task, example: Example, rule: str, what: str) -> LintWarning:
    return LintWarning(task.path, example.line, rule, f"{what}; {RULES[rule]}")
