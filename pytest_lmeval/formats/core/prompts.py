"""What a model is given: few-shot examples, the example's context, and what is to come.

A whole prompt is ``context + delimiter + continuation``, after as many right ones of other records, each followed by a
blank line. It is cut in two where the model's tokens are to be looked at from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from pytest_lmeval.formats.core.entry import Record

_SEED = 1234
_BLANK = re.compile(r"\s")

Rendered = tuple[tuple[str, ...], tuple[str, ...]]
"""Contexts and continuations, as those of a record: one side has a single text, unless contexts end alike."""


def few_shots(records: Sequence[Record], index: int, count: int) -> list[Record]:
    """Return ``count`` other records than number ``index``, drawn by a seed of that record's own.

    The same are drawn whatever else of the task is run. Raise ValueError where there are too few.
    """
    others = random.Random(_SEED + index).sample(range(len(records) - 1), count)
    return [records[number + (number >= index)] for number in others]


def render_record(record: Record, kind: str, delimiter: str, shots: Sequence[Record]) -> Rendered:
    """Return the contexts and the continuations to ask for."""
    before = "".join(f"{_right(shot, kind, delimiter)}\n\n" for shot in shots)
    if kind == "schema":
        return _schema(before, record.contexts, delimiter + record.continuations[0])
    if kind == "multiple_choice":
        return (before + record.contexts[0],), tuple(delimiter + choice for choice in record.continuations)
    # Blanks at the end of a context would be joined with the continuation's first token.
    whole = before + record.contexts[0].strip() + delimiter
    context = whole.rstrip()
    return (context,), (whole[len(context) :] + record.continuations[0],)


def _right(shot: Record, kind: str, delimiter: str) -> str:
    context = shot.contexts[shot.gold if kind == "schema" else 0]
    continuation = shot.continuations[shot.gold if kind == "multiple_choice" else 0]
    return (context.strip() if kind == "language_modeling" else context) + delimiter + continuation


def _schema(before: str, contexts: Sequence[str], continuation: str) -> Rendered:
    """Cut the prompts ahead of the last words that the contexts share: their tokens may be the same, too."""
    pairs = list(zip(contexts, _cuts(contexts), strict=True))
    continuations = tuple(context[cut:] + continuation for context, cut in pairs)
    return tuple(before + context[:cut] for context, cut in pairs), continuations


def _cuts(contexts: Sequence[str]) -> list[int]:
    shared = _shared_at_end(contexts)
    cuts = [_start_of_word(context, len(context) - shared) for context in contexts]
    if 0 in cuts:
        # A prompt must not be empty: leave the first shared word in it.
        words = _BLANK.search(contexts[0], len(contexts[0]) - shared)
        shared = len(contexts[0]) - words.start() if words else 0
        cuts = [len(context) - shared for context in contexts]
    return [len(context) for context in contexts] if 0 in cuts else cuts


def _shared_at_end(texts: Sequence[str]) -> int:
    backwards = zip(*(reversed(text) for text in texts), strict=False)
    return next((size for size, letters in enumerate(backwards) if len(set(letters)) > 1), min(map(len, texts)))


def _start_of_word(text: str, place: int) -> int:
    """Return where the blanks ahead of the word begin that ``place`` is in; the end where nothing is shared."""
    if place == len(text):
        return place
    if not text[place].isspace():
        place = max((found.end() for found in _BLANK.finditer(text, 0, place)), default=0)
    return len(text[:place].rstrip())
