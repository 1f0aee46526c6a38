"""Which keys of ``extras``, or ``metadata``, are read, and which unread one is nearly such a key.

A key that nothing reads is the author's own and may be anything. One that is nearly a key that is read was hardly
meant so: a misspelt ``must_pass`` would let a run pass.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.types import Example

OF_ANY = ("cluster", "must_pass", "quarantine", "tags", "threshold")
"""What is read of every example, of whatever format; metrics declare what they read besides."""
OF_COMPACT = (*OF_ANY, "category", "post_process")
"""What is read of every compact record."""
WORDS = frozenset({"difficulty", "subject"})
"""Words of the schemas that nothing reads: they are no mistake."""
_ALIKE = 0.8


def check_keys(holder: Mapping[str, Any], prefix: str, read: Iterable[str]) -> None:
    """Raise RecordRefused for a key of ``holder`` that is nearly one of those that are ``read``."""
    known = frozenset(read)
    for key in holder:
        if wanted := meant(key, known):
            detail = f"nothing reads the key {key!r:.80}; did you mean {wanted!r}?"
            raise RecordRefused("unknown_field", f"{prefix}.{key}", detail)


def unread_keys(examples: Iterable[Example]) -> Iterator[tuple[int, str]]:
    """Yield the line of the first record, and a sentence, for each misspelt key of records whose metadata are free."""
    first: dict[tuple[str, str], int] = {}
    counts: dict[tuple[str, str], int] = {}
    for example in examples:
        read = frozenset((*OF_ANY, "timeout_s") if example.metric == "code_exec" else OF_ANY)
        for key in example.metadata:
            if wanted := meant(key, read):
                first.setdefault((key, wanted), example.line)
                counts[key, wanted] = counts.get((key, wanted), 0) + 1
    for (key, wanted), line in first.items():
        often = f" (in {counts[key, wanted]} records)" if counts[key, wanted] > 1 else ""
        yield line, f"nothing reads metadata.{key:.80}{often}; did you mean {wanted!r}?"


@lru_cache(maxsize=4096)
def meant(key: str, known: Collection[str]) -> str:
    """Return the key of ``known`` that ``key`` is nearly, or an empty text."""
    if key in known or key in WORDS:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    # One word more makes another key: cluster_id, threshold_note.
    if any(plain.startswith(f"{each}_") or plain.endswith(f"_{each}") for each in known):
        return ""
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=_ALIKE)
    return near[0] if near else ""
