"""What the author of a record or a task probably meant: what is misspelt, and what is of another tool."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

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
