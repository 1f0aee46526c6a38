"""What the author of a record or a task probably meant: what is misspelt, and what is of another tool.

A key of ``extras``, or ``metadata``, that nothing reads is the author's own and may be anything. One that is nearly a
key that is read was hardly meant so: a misspelt ``must_pass`` would let a run pass.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.types import Example

_GUIDE = "docs/coming-from.md says what becomes what"
# By the keys that give a record away, the first that has all of them.
_RECORDS = (
    (frozenset({"input", "ideal"}), "a sample of OpenAI's evals"),
    (frozenset({"input", "target"}), "a sample of inspect_ai"),
    (frozenset({"instruction", "output"}), "a record to train on"),
    (frozenset({"messages"}), "a conversation"),
    (frozenset({"question", "answer"}), "a row of a data set"),
)
_FILES = (
    (frozenset({"doc_to_text"}), "a task of lm-eval"),
    (frozenset({"dataset_path", "task"}), "a task of lm-eval"),
    (frozenset({"providers"}), "a configuration of promptfoo"),
    (frozenset({"prompts", "tests"}), "a configuration of promptfoo"),
)
OF_ANY = ("cluster", "must_pass", "quarantine", "tags", "threshold")
"""What is read of every example, of whatever format; metrics declare what they read besides."""
OF_COMPACT = (*OF_ANY, "category", "post_process")
"""What is read of every compact record."""
WORDS = frozenset({"difficulty", "subject"})
"""Words of the schemas that nothing reads: they are no mistake."""
_SIMILARITY = 0.8


def misspelt(wanted: str, given: Iterable[str], known: Collection[str], likeness: float = 0.6) -> str:
    """Return ``"; did you mean 'wanted' by 'x'?"`` for the nearest given name that is not known, or an empty text."""
    others = [name for name in given if name not in known]
    near = difflib.get_close_matches(wanted, others, n=1, cutoff=likeness)
    return f"; did you mean {wanted!r} by {near[0]!r}?" if near else ""


def foreign_record(keys: Collection[str]) -> str:
    """Return what a record of another tool is, and where it says how to bring it here; else an empty text."""
    return _foreign(keys, _RECORDS)


def foreign_file(keys: Collection[str]) -> str:
    """Return what a YAML file of another tool is, and where it says how to bring it here; else an empty text."""
    return _foreign(keys, _FILES)


def _foreign(keys: Collection[str], kinds: Iterable[tuple[frozenset[str], str]]) -> str:
    found = next((what for wanted, what in kinds if wanted <= set(keys)), "")
    return found and f"this reads like {found}: {_GUIDE}"


def check_keys(holder: Mapping[str, Any], prefix: str, read: Iterable[str]) -> None:
    """Raise RecordRefused for a key of ``holder`` that is nearly one of those that are ``read``."""
    known = frozenset(read)
    for key in holder:
        if wanted := meant(key, known):
            detail = f"nothing reads the key {key!r:.80}; did you mean {wanted!r}?"
            raise RecordRefused("unknown_field", f"{prefix}.{key}", detail)


def unread_keys(examples: Iterable[Example]) -> Iterator[tuple[int, str]]:
    """Yield the line of the first record, and a sentence, for each misspelt key of records whose metadata are free."""

    def read(example: Example) -> frozenset[str]:
        return frozenset((*OF_ANY, "timeout_s") if example.metric == "code_exec" else OF_ANY)

    for line, key, wanted, count in misspelt_keys(examples, read):
        often = f" (in {count} records)" if count > 1 else ""
        yield line, f"nothing reads metadata.{key:.80}{often}; did you mean {wanted!r}?"


def misspelt_keys(
    examples: Iterable[Example], read: Callable[[Example], frozenset[str]]
) -> Iterator[tuple[int, str, str, int]]:
    """Yield ``(first line, key, what was meant, examples)`` for each key that is nearly one that is ``read``."""
    first: dict[tuple[str, str], int] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for example in examples:
        for key in example.metadata:
            if wanted := meant(key, read(example)):
                first.setdefault((key, wanted), example.line)
                counts[key, wanted] += 1
    yield from ((line, *pair, counts[pair]) for pair, line in first.items())


@lru_cache(maxsize=4096)
def meant(key: str, known: Collection[str]) -> str:
    """Return the key of ``known`` that ``key`` is nearly, or an empty text."""
    if key in known or key in WORDS:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    # One word more makes another key: cluster_id, threshold_note.
    if any(plain.startswith(f"{each}_") or plain.endswith(f"_{each}") for each in known):
        return ""
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=_SIMILARITY)
    return near[0] if near else ""
