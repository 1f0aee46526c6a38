"""What several responses to every example say: pass@k, the majority's score, and where the spread comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_lmeval.stats.intervals import mean, standard_error
from pytest_lmeval.types import ExampleResult


def pass_at_k(correct: int, n: int, k: int) -> float:
    """Return the chance that at least one of k responses, drawn without replacement from n, is correct; 1 <= k <= n.

    The unbiased estimator of M. Chen et al., "Evaluating Large Language Models Trained on Code", 2021.
    """
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def pass_hat_k(correct: int, n: int, k: int) -> float:
    """Return the chance that all of k responses, drawn without replacement from n, are correct; 1 <= k <= n.

    The unbiased estimator of S. Yao et al., "tau-bench", 2024.
    """
    return math.comb(correct, k) / math.comb(n, k)


def repeat_metrics(results: Sequence[ExampleResult]) -> dict[str, float]:
    """Return ``pass@k`` and ``pass^k`` for k = 1, 2, 4 ... and n, and ``maj@n``; empty without repeats.

    Over the scored examples: the chance that one of k responses is right, that all are, and that the commonest is.
    ``pass^1`` would be ``pass@1``.
    """
    scored = [(result, _scores(result)) for result in results if result.details and len(_scores(result)) > 1]
    if not scored:
        return {}
    n = min(len(scores) for _, scores in scored)
    counts = [(sum(score >= result.threshold for score in scores), len(scores)) for result, scores in scored]
    ks = sorted({n, *(2**power for power in range(n.bit_length()) if 2**power <= n)})
    metrics = {f"pass@{k}": mean([pass_at_k(correct, total, k) for correct, total in counts]) for k in ks}
    metrics |= {f"pass^{k}": mean([pass_hat_k(correct, total, k) for correct, total in counts]) for k in ks if k > 1}
    metrics[f"maj@{n}"] = mean([float(result.details["majority_score"]) for result, _ in scored])
    return metrics


def repeat_errors(results: Sequence[ExampleResult]) -> dict[str, float | int | None]:
    """Return how often each example was asked, and the standard error of the task's score within and between examples.

    ``stderr_within`` is what asking again would move the score by; ``stderr_between`` what other examples would.
    """
    scores = [_scores(result) for result in results if result.details and len(_scores(result)) > 1]
    if not scores:
        return {}
    within = [error * error for error in map(standard_error, scores) if error is not None]
    return {
        "count": min(map(len, scores)),
        "stderr_within": math.sqrt(math.fsum(within)) / len(scores),
        "stderr_between": standard_error([mean(values) for values in scores]),
    }


def _scores(result: ExampleResult) -> Sequence[float]:
    # Of a single response the details are the metric's own.
    if result.score is None or "majority_score" not in result.details:
        return ()
    scores: Sequence[float] = result.details["scores"]
    return scores
