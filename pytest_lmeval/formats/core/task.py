"""Make a CORE task's prompts, and score it by the options' log-probabilities.

A full prompt is ``context + delimiter + continuation``, after few-shot examples in the same form. Blank lines separate
the examples. A request's context ends before the first token to compare.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.formats.loglikelihood import by_beginning, by_ending, option_requests, ranked
from pytest_lmeval.metrics.parts.probability import accuracy_by, probability_mass
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.types import Example, Generate, Request, Response, Score


@dataclass(frozen=True, slots=True)
class Record:
    """A record's contexts and continuations, and the index of the correct pair; at most one list has several strings.

    ``line`` is the record's line number, from 1.
    """

    contexts: tuple[str, ...]
    continuations: tuple[str, ...]
    gold: int = 0
    category: str = ""
    line: int = 0

    @property
    def choices(self) -> tuple[str, ...]:
        """The strings to choose from: contexts if there are several, else continuations."""
        return self.contexts if len(self.contexts) > 1 else self.continuations


@dataclass(frozen=True, slots=True)
class CoreTask(Task):
    """A task of ``icl_tasks``; an example's ``metadata`` contains ``contexts``, ``continuations`` and ``choices``.

    ``random_baseline`` is the score of random guessing, in [0, 1). ``dataset`` contains the path and hash of the file
    with the records.
    """

    name: str
    path: Path
    sha256: str
    kind: str
    random_baseline: float = field()
    examples: Sequence[Example]
    dataset: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "accuracy"
    needs: str = "loglikelihood"

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return a request for each distinct option; a schema task's options differ in their contexts."""
        data = example.metadata
        # If all options share a context, the prompt is the shared context.
        contexts = data["contexts"] if self.kind == "schema" else (Generate(prompt).text,)
        return option_requests(_pairs(contexts, data["continuations"]), self.name, example.id)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Score 1.0 if the right option has the lowest mean loss, or a single option is greedy throughout, else 0.0."""
        data = example.metadata
        if self.kind == "language_modeling":
            text = ranked(responses, data["continuations"])
            greedy = text.options[0].greedy
            size = len(data["continuations"][0].encode("utf-8", "surrogatepass"))
            return Score(float(greedy), {**text.record(), "bytes": size}, example.targets[0] if greedy else "")
        pairs = _pairs(data["contexts"], data["continuations"])
        options = ranked(responses, data["choices"], pairs, by_ending if self.kind == "schema" else by_beginning)
        chosen, gold = options.best("tokens"), data["gold"]
        metrics = {
            "acc": accuracy_by(options.totals, gold),
            "probability_mass": probability_mass(options.totals, [gold]),
        }
        if len(data["contexts"]) == 1:
            metrics["acc_norm"] = accuracy_by(options.values("characters"), gold)
            metrics["acc_norm_bytes"] = accuracy_by(options.values("bytes"), gold)
        return Score(float(chosen == gold), options.record(chosen), data["choices"][chosen], metrics=metrics)

    def threshold(self, example: Example) -> float | None:
        """Return None, so that the metric's threshold applies."""
        return None

    def metric_name(self, example: Example) -> str:
        """Return ``accuracy``."""
        return self.metric

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the task type and the strings to compare."""
        return {"type": self.kind, **{key: example.metadata[key] for key in ("contexts", "continuations", "gold")}}


def _pairs(contexts: Sequence[str], continuations: Sequence[str]) -> list[tuple[str, str]]:
    if len(contexts) == 1:
        contexts = [*contexts] * len(continuations)
    return list(zip(contexts, continuations, strict=True))


_SEED = 1234
_BLANK = re.compile(r"\s")

Rendered = tuple[tuple[str, ...], tuple[str, ...]]
"""Contexts and continuations; both have several strings only if the contexts end in the same words."""


def few_shots(records: Sequence[Record], index: int, count: int) -> list[Record]:
    """Return ``count`` random records, excluding the one at ``index``; the seed depends only on ``index``.

    Raises ValueError if there are too few records.
    """
    others = random.Random(_SEED + index).sample(range(len(records) - 1), count)
    return [records[number + (number >= index)] for number in others]


def render_record(record: Record, kind: str, delimiter: str, shots: Sequence[Record]) -> Rendered:
    """Return the contexts and continuations of a record's requests."""
    before = "".join(f"{_right(shot, kind, delimiter)}\n\n" for shot in shots)
    if kind == "schema":
        return _schema(before, record.contexts, delimiter + record.continuations[0])
    if kind == "multiple_choice":
        return (before + record.contexts[0],), tuple(delimiter + choice for choice in record.continuations)
    # Tokenizers merge a space at the end of a context into the next token.
    whole = before + record.contexts[0].strip() + delimiter
    context = whole.rstrip()
    return (context,), (whole[len(context) :] + record.continuations[0],)


def _right(shot: Record, kind: str, delimiter: str) -> str:
    context = shot.contexts[shot.gold if kind == "schema" else 0]
    continuation = shot.continuations[shot.gold if kind == "multiple_choice" else 0]
    return (context.strip() if kind == "language_modeling" else context) + delimiter + continuation


def _schema(before: str, contexts: Sequence[str], continuation: str) -> Rendered:
    """Cut the contexts before the last words that they share, because a token may span the end of a context."""
    pairs = list(zip(contexts, _cuts(contexts), strict=True))
    continuations = tuple(context[cut:] + continuation for context, cut in pairs)
    return tuple(before + context[:cut] for context, cut in pairs), continuations


def _cuts(contexts: Sequence[str]) -> list[int]:
    shared = _shared_at_end(contexts)
    cuts = [_start_of_word(context, len(context) - shared) for context in contexts]
    if 0 in cuts:
        # A prompt must not be empty, so keep the first shared word in it.
        words = _BLANK.search(contexts[0], len(contexts[0]) - shared)
        shared = len(contexts[0]) - words.start() if words else 0
        cuts = [len(context) - shared for context in contexts]
    return [len(context) for context in contexts] if 0 in cuts else cuts


def _shared_at_end(texts: Sequence[str]) -> int:
    backwards = zip(*(reversed(text) for text in texts), strict=False)
    return next((size for size, letters in enumerate(backwards) if len(set(letters)) > 1), min(map(len, texts)))


def _start_of_word(text: str, place: int) -> int:
    """Return the start of the whitespace before the word at ``place``, or ``place`` itself at the end of the text."""
    if place == len(text):
        return place
    if not text[place].isspace():
        place = max((found.end() for found in _BLANK.finditer(text, 0, place)), default=0)
    return len(text[:place].rstrip())
