"""How sure the model was, against how often it was right; and how well it predicted what it was to predict."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_lmeval.leaderboard.responses import confidence_of, first_details, first_score
from pytest_lmeval.metrics.parts.probability import bits_per_byte, brier_score, expected_calibration_error, perplexity
from pytest_lmeval.types import ExampleResult


def calibration(results: Iterable[ExampleResult]) -> dict[str, float | int]:
    """Return the :func:`confidence_metrics`, and ``perplexity``; each only where there is a value.

    The perplexity is that of the texts which language modeling tasks ask for, over all their tokens.
    """
    scored = [result for result in results if result.score is not None]
    predicted = text_metrics(scored)
    return confidence_metrics(scored) | ({"perplexity": predicted["perplexity"]} if predicted else {})


def confidence_metrics(results: Iterable[ExampleResult]) -> dict[str, float | int]:
    """Return ``ece``, ``brier`` and ``n`` of the scored examples that have a confidence; empty if none has.

    The confidence is ``details["confidence"]``, in [0, 1], of an answer that was right where its score reaches the
    threshold. Of several responses the first counts.
    """
    sure = [
        (confidence, score >= result.threshold)
        for result in results
        if result.details
        and (score := first_score(result)) is not None
        and (confidence := confidence_of(first_details(result))) is not None
    ]
    if not sure:
        return {}
    confidences, hits = [confidence for confidence, _ in sure], [hit for _, hit in sure]
    error = expected_calibration_error(confidences, hits)
    return {"ece": error, "brier": brier_score(confidences, hits), "n": len(sure)}


def text_metrics(results: Iterable[ExampleResult]) -> dict[str, float]:
    """Return ``perplexity`` per token and ``bits_per_byte`` of the texts of language modeling tasks, all put together.

    Empty where there are none, or where they are too improbable for a float.
    """
    texts = [text for result in results if result.details and (text := _text(result)) is not None]
    if not texts:
        return {}
    total = math.fsum(total for total, _, _ in texts)
    surprise = perplexity(total, sum(tokens for _, tokens, _ in texts))
    bits = bits_per_byte(total, sum(size for _, _, size in texts))
    return {"perplexity": surprise, "bits_per_byte": bits} if math.isfinite(surprise) else {}


def _text(result: ExampleResult) -> tuple[float, int, int] | None:
    """Return log-probability, tokens and bytes of the only text that was asked for."""
    details = first_details(result)
    if "options" not in details:
        return None
    try:
        (option,) = details["options"]
        total, tokens, size = float(option["total"]), int(option["tokens"]), int(details["bytes"])
    except (KeyError, TypeError, ValueError):
        return None
    return (total, tokens, size) if math.isfinite(total) and tokens > 0 and size > 0 else None
