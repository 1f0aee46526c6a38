"""Random texts of few words, so that two of them have some in common."""

from __future__ import annotations

import random

from hypothesis import strategies as st

__all__ = ["TEXT", "WORDS", "sentence"]

WORDS = ["the", "cat", "sat", "on", "a", "mat", "The", "CAT,", "don't", "42", "3.5", "x-ray", "end.\n", "!?"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)


def sentence(draw: random.Random, words: list[str] = WORDS) -> str:
    """Return up to 15 words."""
    return " ".join(draw.choices(words, k=draw.randrange(16)))
