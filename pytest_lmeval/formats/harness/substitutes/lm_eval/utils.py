"""The substitute of ``lm_eval.utils``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

eval_logger = logging.getLogger("pytest_lmeval.harness")


def apply_template(template: str, doc: Mapping[str, Any]) -> str:
    """Return ``template`` filled with the columns of ``doc``."""
    from pytest_lmeval.formats.harness.documents import template_of

    return template_of(template)(doc)


def general_detokenize(string: str) -> str:
    """Return ``string`` without the blanks that word tokenizers insert before marks and inside quotes."""
    for pattern, text in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        string = string.replace(pattern, text)
    return re.sub(r" (['.,])", r"\1", string)


def softmax(values: Iterable[float]) -> list[float]:
    """Return the softmax of ``values``."""
    from pytest_lmeval.metrics.parts.probability import softmax as ours

    return ours([*values])


def weighted_f1_score(items: Iterable[tuple[Any, Any]]) -> float:
    """Return the mean of the F1 of each gold label, weighted by how often it is gold."""
    from pytest_lmeval.formats.harness.aggregates import f1_of

    pairs = [*items]
    golds = [gold for gold, _ in pairs]
    return sum(golds.count(label) * f1_of(pairs, label) for label in sorted(set(golds), key=str)) / len(pairs)
