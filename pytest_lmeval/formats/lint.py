"""Warn about valid parts of task files that look like mistakes; each warning has a location and a meaning.

Checks take about linear time: seconds for ten thousand records.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.formats.checks import OF_COMPACT, WORDS, misspelt_keys
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.leaderboard.passing import missed
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.task import Task, Tools
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion, Example

RULES: Mapping[str, str] = MappingProxyType(
    {
        "answer_in_few_shot": "a model that copies from the worked examples is right",
        "answer_in_prompt": "a model can be right without knowing the answer",
        "misspelt_key": "the key is kept, but nothing reads it",
        "near_duplicate": "they count as two observations, but say hardly more than one",
        "overlap": "a score on either task says less than it seems to",
        "skewed_answers": "compare scores with this score, not with chance",
    }
)
"""The meaning of each rule's warnings for someone who reads the board."""

# Many data sets have this key, which resembles a key of one metric; records of that metric refuse it.
_ORDINARY = ("level",)
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class LintWarning:
    """A likely mistake: its location, a description, and the rule that found it."""

    path: Path
    line_number: int
    rule: str
    detail: str

    def at(self) -> str:
        """Return the warning as one line, ``path:line: warning rule: finding; meaning``."""
        # Ids and prompts in the detail may have line breaks.
        return printable(f"{self.path}:{self.line_number}: warning {self.rule}: {self.detail}", keep="")


def lint(files: Mapping[Path, LoadedFile], registry: Registry) -> list[LintWarning]:
    """Return the warnings about the valid records of ``files``, by file and line."""
    tasks = [task for loaded in files.values() for task in loaded.tasks]
    found = [*_overlaps(tasks)]
    for task in tasks:
        found += [*near_duplicates(task), *_skewed_answers(task, registry), *_answers_given_away(task, registry)]
        found += _misspelt(task, known_keys(registry))
    order = {path: number for number, path in enumerate(files)}
    return sorted(found, key=lambda warning: (order.get(warning.path, 0), warning.line_number, warning.rule))


def known_keys(registry: Registry) -> frozenset[str]:
    """Return the keys that a format or a metric reads, and common words that are not mistakes."""
    return WORDS.union(_ORDINARY, OF_COMPACT, *(metric.extras for metric in registry.metrics.values()))


def _misspelt(task: Task, known: frozenset[str]) -> Iterator[LintWarning]:
    """Yield a warning for each key that resembles a known key."""
    for line, key, wanted, count in misspelt_keys(task.examples, lambda _: known):
        often = "" if count == 1 else f", in {count} records"
        detail = f"the key {key!r:.80}{often}: did you mean {wanted!r}? {RULES['misspelt_key']}"
        yield LintWarning(task.path, line, "misspelt_key", detail)


def _words(text: str) -> tuple[str, ...]:
    r"""Return the words of the lowercased text, which are the matches of ``\w+``."""
    return tuple(_WORD.findall(text.lower()))


def _tokens(text: str) -> tuple[str, ...]:
    """Return the words and symbols of the lowercased text, so that ``2 + 3`` and ``2 * 3`` differ."""
    return tuple(_TOKEN.findall(text.lower()))


def _shown(text: str) -> str:
    """Return ``text`` on one line, quoted and shortened."""
    short = " ".join(text.split())
    return repr(short if len(short) <= _SHOWN else f"{short[:_SHOWN]}...")


def _has_labels(example: Example) -> bool:
    """Return True if answers come from a small set, which prompts and worked examples usually list."""
    return example.category in {"mcq", "classification"} or example.metric == "multiple_choice"


def _is_scored_by_text(task: Task, example: Example, registry: Registry) -> bool:
    """Return True if the metric is registered and no metric runs a program, so that text alone can be scored."""
    names = (task.metric_name(example), *task.further_metrics(example))
    found = [registry.metrics.get(name) for name in names]
    return found[0] is not None and not any(metric is not None and metric.needs_sandbox for metric in found)


def _score_of(task: Task, example: Example, outputs: Sequence[str]) -> float:
    """Return the best score of ``outputs`` as answers to ``example``, or 0.0 if scoring fails.

    An output that misses a further score's threshold also counts as 0.0.
    """
    try:
        scores = [task.score(example, [Completion(output)], Tools()) for output in outputs]
        return max(0.0 if missed(each.metrics, each.thresholds) else float(each.value) for each in scores)
    except (LmevalError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return 0.0


_FEWEST = 8  # fewer examples do not show a distribution
_EXCESS = 0.1
_SIGMAS = 2.5


def _skewed_answers(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for each category and metric of ``task`` in which one answer is right suspiciously often.

    The limit is an even share plus 0.1 or 2.5 standard deviations, whichever is larger. A task with a single answer for
    all examples always gets a warning.
    """
    groups: dict[tuple[str, str], list[Example]] = {}
    for example in task.examples:
        if example.targets and _is_scored_by_text(task, example, registry):
            groups.setdefault((example.category, example.metric), []).append(example)
    for examples in groups.values():
        if len(examples) >= _FEWEST:
            yield from _of_group(task, examples)


def _of_group(task: Task, examples: Sequence[Example]) -> Iterator[LintWarning]:
    counts = Counter(target for example in examples for target in {each.strip() for each in example.targets})
    answer, count = max(counts.items(), key=lambda item: (item[1], item[0]))
    if not _is_skewed(count / len(examples), len(counts), len(examples)):
        return
    score = math.fsum(_score_of(task, example, [answer]) for example in examples) / len(examples)
    if not _is_skewed(score, len(counts), len(examples)):
        return
    first = next(example for example in examples if answer in {each.strip() for each in example.targets})
    category = f" of category {_shown(first.category)}" if first.category else ""
    detail = (
        f"a model that always says {_shown(answer)} would score {score:.2f} on the {len(examples)} examples"
        f"{category}, which have {len(counts)} answer(s); {RULES['skewed_answers']}"
    )
    yield LintWarning(task.path, first.line, "skewed_answers", detail)


def _is_skewed(share: float, answers: int, n: int) -> bool:
    if answers == 1:
        return share == 1.0
    even = 1 / answers
    return share >= even + max(_EXCESS, _SIGMAS * math.sqrt(even * (1 - even) / n))


_FEW_ANSWERS = 10
_FULL_STOP = " \t\r\n.!\"'"  # may follow an answer; "14 + 1 =" and "is it 1?" do not end in an answer
_TELLING = 3  # words: text contains shorter answers by chance


class _Place(NamedTuple):
    task: Task
    line: int


def _answers_given_away(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for every example whose answer is in its worked examples, or at the end of its prompt.

    Labels and options belong in prompts, so an example with labels gets a warning only if a worked example repeats its
    question. A prompt that would score as its own answer also gets a warning.
    """
    answers = {_words(target) for example in task.examples for target in example.targets}
    options = answers if len(answers) <= _FEW_ANSWERS else set()
    for example in task.examples:
        in_shots = _in_few_shots(example)
        if in_shots:
            yield _warning(task, example, "answer_in_few_shot", in_shots)
        if not _has_labels(example) and _is_scored_by_text(task, example, registry):
            in_prompt = _in_prompt(task, example, options, registry)
            if in_prompt:
                yield _warning(task, example, "answer_in_prompt", in_prompt)


def _overlaps(tasks: Sequence[Task]) -> Iterator[LintWarning]:
    """Yield a warning for each pair of tasks if one task repeats prompts from the other, even as worked examples."""
    prompts: dict[tuple[str, ...], dict[str, _Place]] = {}
    for task in tasks:
        for example in task.examples:
            prompts.setdefault(_key(example.prompt), {}).setdefault(task.name, _Place(task, example.line))
    yield from _repeated(prompts.values())
    yield from _learnt(tasks, prompts)


def _in_few_shots(example: Example) -> str:
    targets = [_words(target) for target in example.targets]
    for number, shot in enumerate(example.few_shot_examples, start=1):
        if _key(shot.prompt) == _key(example.prompt):
            return f"worked example {number} is the question itself"
        if _has_labels(example):
            continue
        completion = _words(shot.completion)
        if completion and completion in targets:
            return f"worked example {number} has the same answer, {_shown(shot.completion)}"
        text = _words(f"{shot.prompt} {shot.completion}")
        leaked = [target for target in targets if len(target) >= _TELLING and _is_in(target, text)]
        if leaked:
            return f"worked example {number} holds the answer {_shown(' '.join(leaked[0]))}"
    return ""


def _in_prompt(task: Task, example: Example, options: Collection[tuple[str, ...]], registry: Registry) -> str:
    score = _score_of(task, example, [example.prompt])
    own = task.threshold(example)
    if score > 0 and is_at_least(score, registry.metric(task.metric_name(example)).threshold if own is None else own):
        return f"a model that repeats the prompt would score {score:.2f}"
    ending = _tokens(example.prompt.rstrip(_FULL_STOP))
    ends = [target for target in example.targets if (end := _tokens(target)) and ending[-len(end) :] == end]
    # "say true or false" ends in an answer, but does not give it away.
    text = _words(example.prompt)
    if not ends or sum(_is_in(option, text) for option in options if option) > 1:
        return ""
    return f"the prompt ends in the answer {_shown(ends[0])}"


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
    return _tokens(prompt) or (prompt,)


def _warning(task: Task, example: Example, rule: str, what: str) -> LintWarning:
    return LintWarning(task.path, example.line, rule, f"{what}; {RULES[rule]}")


SIMILAR = 0.8
"""The lowest Jaccard similarity of near duplicates."""

_WIDTH = 3
_SKETCH = 200  # a longer prompt is represented by its smallest hashes
_COMMON = 0.5
_FEW_PROMPTS = 10  # too few prompts to detect boilerplate
_POSTINGS = 50  # the maximum number of prompts to look up for a shingle


def near_duplicates(task: Task) -> Iterator[LintWarning]:
    """Yield a warning for every prompt that equals or resembles an earlier prompt of its task.

    Compare prompts by their shingles, which are runs of three words or symbols. Ignore shingles that half of the
    prompts share, such as an instruction. Find pairs by their rarest shingles. In any common order, two sets with an
    overlap of at least t share one of their first ``|s| - ceil(t |s|) + 1`` shingles (Bayardo, Ma and Srikant, "Scaling
    up all pairs similarity search", 2007).
    """
    sketches = _without_boilerplate([_sketch(example.prompt) for example in task.examples])
    frequency = Counter(shingle for sketch in sketches for shingle in sketch)
    index: dict[int, list[int]] = {}
    first_same: dict[tuple[str, ...], int] = {}
    for number, sketch in enumerate(sketches):
        example = task.examples[number]
        same = first_same.setdefault(_key(example.prompt), number)
        rarest = _rarest(sketch, frequency)
        if same != number:
            yield _similar(task, example, task.examples[same], 1.0)
            continue
        near, similarity = _nearest(sketch, sorted({each for key in rarest for each in index.get(key, ())}), sketches)
        for key in rarest:
            if len(index.setdefault(key, [])) < _POSTINGS:
                index[key].append(number)
        if similarity >= SIMILAR:
            yield _similar(task, example, task.examples[near], similarity)


def _sketch(prompt: str) -> frozenset[int]:
    words = _tokens(prompt)
    runs = zip(*(words[start:] for start in range(_WIDTH)), strict=False)
    shingles = {zlib.crc32(" ".join(run).encode()) for run in runs}
    return frozenset(shingles if len(shingles) <= _SKETCH else sorted(shingles)[:_SKETCH])


def _without_boilerplate(sketches: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    if len(sketches) < _FEW_PROMPTS:
        return list(sketches)
    frequency = Counter(shingle for sketch in sketches for shingle in sketch)
    common = {shingle for shingle, count in frequency.items() if count >= _COMMON * len(sketches)}
    return [sketch - common for sketch in sketches]


def _rarest(sketch: frozenset[int], frequency: Counter[int]) -> list[int]:
    length = len(sketch) - math.ceil(SIMILAR * len(sketch)) + 1 if sketch else 0
    return sorted(sketch, key=lambda shingle: (frequency[shingle], shingle))[:length]


def _nearest(sketch: frozenset[int], earlier: Sequence[int], sketches: Sequence[frozenset[int]]) -> tuple[int, float]:
    """Return the first similar sketch of ``earlier`` and its similarity, or ``(-1, 0.0)``."""
    for number in earlier:
        shared = len(sketch & sketches[number])
        similarity = shared / (len(sketch) + len(sketches[number]) - shared)
        if similarity >= SIMILAR:
            return number, similarity
    return -1, 0.0


def _similar(task: Task, example: Example, earlier: Example, similarity: float) -> LintWarning:
    degree = "asks the same as" if similarity == 1.0 else f"shares {similarity:.0%} of its wording with"
    same_targets = set(example.targets) == set(earlier.targets)
    targets = "" if same_targets else ", with other targets: one of the two may be wrong"
    detail = f"{_shown(example.prompt)} {degree} line {earlier.line}{targets}; {RULES['near_duplicate']}"
    return LintWarning(task.path, example.line, "near_duplicate", detail)
