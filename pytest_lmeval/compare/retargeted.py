"""Score new answers against old targets if only an example's targets changed.

These scores do not affect the verdict; they show whether new answers or new targets made an example pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.compare.pairing import Pair
from pytest_lmeval.postprocess import Extraction, apply_metric
from pytest_lmeval.registry import Metric, Registry
from pytest_lmeval.stats.intervals import is_at_least, mean
from pytest_lmeval.types import ExampleResult


@dataclass(frozen=True, slots=True)
class Retargeted:
    """A changed example, and the score of its new answers against the old targets."""

    pair: Pair
    score: float

    @property
    def passed_before(self) -> bool:
        """True if the example passed in the old run."""
        return self.pair.old.status == "passed"

    @property
    def passes(self) -> bool:
        """True if the example passes against its new targets."""
        return self.pair.new.status == "passed"

    @property
    def passes_by_old_targets(self) -> bool:
        """True if the new answers would pass against the old targets with the new threshold."""
        return is_at_least(self.score, self.pair.new.threshold)

    def to_json(self) -> dict[str, Any]:
        """Return the example, its targets and its scores as JSON values."""
        old, new = self.pair.old, self.pair.new
        return {
            "task": new.task,
            "id": new.id,
            "line": new.line,
            "old_targets": list(old.targets),
            "targets": list(new.targets),
            "prediction": new.predictions[0],
            "passed_before": self.passed_before,
            "score": new.score,
            "passes": self.passes,
            "score_by_old_targets": self.score,
            "passes_by_old_targets": self.passes_by_old_targets,
        }


def retargeted(changed: Sequence[Pair]) -> tuple[Retargeted, ...]:
    """Return the ``changed`` examples that can be scored against their old targets.

    An example's content hashes must prove that only the targets changed and that the metric reads nothing but the
    prediction and the targets. The metric must be built in and must not need a sandbox. Skip results without a prompt.
    """
    if not changed:
        return ()
    from pytest_lmeval.loading import default_registry

    registry = default_registry(entry_points=False)
    scores = ((pair, _score_by_old_targets(pair, registry)) for pair in changed)
    return tuple(Retargeted(pair, score) for pair, score in scores if score is not None)


def _score_by_old_targets(pair: Pair, registry: Registry) -> float | None:
    old, new = pair.old, pair.new
    metric = _proven_metric(pair, registry)
    if metric is None or new.score is None or not new.predictions:
        return None
    try:
        # A ledger from another version may score the same answer differently.
        is_known = _score(metric, new, new.targets) == new.score
        return _score(metric, new, old.targets) if is_known else None
    except Exception:  # if a metric fails, the run still needs its comparison
        return None


def _proven_metric(pair: Pair, registry: Registry) -> Metric | None:
    """Return a pair's metric if only the targets changed and the metric reads only the prediction and the targets."""
    from pytest_lmeval.formats.checks import RENAMED
    from pytest_lmeval.hashes import hashes_of

    old, new = pair.old, pair.new
    for name in dict.fromkeys((new.metric, RENAMED.get(new.metric, new.metric))):
        metric = registry.metrics.get(name)
        if metric is None or metric.needs_sandbox:
            continue
        expected = [(result.targets, result.hash) for result in (old, new)]
        if all(hashes_of(new.prompt, targets, name, new.post_process, {})[0] == hash for targets, hash in expected):
            return metric
    return None


def _score(metric: Metric, result: ExampleResult, targets: Sequence[str]) -> float:
    found = (apply_metric(metric, Extraction(prediction, True), targets, {}) for prediction in result.predictions)
    return mean([float(each.value) for each in found])
