"""How sure the model was, against how often it was right; and how well it predicted what it was to predict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.probability import bits_per_byte, brier_score, expected_calibration_error, perplexity
from pytest_lmeval.types import ExampleResult

__all__ = ["calibration", "text_metrics"]


def calibration(results: Iterable[ExampleResult]) -> dict[str, float | int]:
    """Return ``ece``, ``brier`` and ``n`` of the examples that tell a confidence, and ``perplexity``.

    Each only where there is something to tell. The confidence is ``details["confidence"]``, in [0, 1], of an answer
    that was right where its score is 1. The perplexity is that of the texts which language modeling tasks ask for,
    over all their tokens.
    """
    scored = [result for result in results if result.score is not None]
    sure = [(confidence, result.score == 1.0) for result in scored if (confidence := _confidence(result)) is not None]
    found: dict[str, float | int] = {}
    if sure:
        confidences, hits = [confidence for confidence, _ in sure], [hit for _, hit in sure]
        error = expected_calibration_error(confidences, hits)
        found = {"ece": error, "brier": brier_score(confidences, hits), "n": len(sure)}
    predicted = text_metrics(scored)
    return found | ({"perplexity": predicted["perplexity"]} if predicted else {})


def text_metrics(results: Iterable[ExampleResult]) -> dict[str, float]:
    """Return ``perplexity`` per token and ``bits_per_byte`` of the texts of language modeling tasks, all put together.

    Empty where there are none, or where they are too improbable for a float.
    """
    texts = [text for result in results if (text := _text(result)) is not None]
    if not texts:
        return {}
    total = math.fsum(total for total, _, _ in texts)
    surprise = perplexity(total, sum(tokens for _, tokens, _ in texts))
    bits = bits_per_byte(total, sum(size for _, _, size in texts))
    return {"perplexity": surprise, "bits_per_byte": bits} if math.isfinite(surprise) else {}


def _details(result: ExampleResult) -> Mapping[str, Any]:
    # Of repeats the first stands for all: how probable a text is does not change.
    repeats = result.details.get("repeats")
    first = repeats[0] if isinstance(repeats, Sequence) and repeats else result.details
    return first if isinstance(first, Mapping) else {}


def _confidence(result: ExampleResult) -> float | None:
    value = _details(result).get("confidence")
    is_share = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if is_share and value is not None else None


def _text(result: ExampleResult) -> tuple[float, int, int] | None:
    """Return log-probability, tokens and bytes of the only text that was asked for."""
    details = _details(result)
    try:
        (option,) = details["options"]
        total, tokens, size = float(option["total"]), int(option["tokens"]), int(details["bytes"])
    except (KeyError, TypeError, ValueError):
        return None
    return (total, tokens, size) if math.isfinite(total) and tokens > 0 and size > 0 else None
