"""Text as the page holds it: ASCII JSON, and no single text without an end."""

from __future__ import annotations

from pytest_lmeval.compact_json import compact_encoder

LONGEST_TEXT = 60_000
encode = compact_encoder()


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text without its middle where it has more than ``longest`` characters."""
    if len(text) <= longest:
        return text
    half = longest // 2
    gap = f"[... {len(text) - 2 * half:,} characters are left out here; they are in the ledger ...]"
    return f"{text[:half]}\n{gap}\n{text[-half:]}"
