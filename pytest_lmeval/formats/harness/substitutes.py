"""Substitutes for the few names of ``lm_eval`` and ``datasets`` that most functions of task files import.

``lm_eval`` and ``datasets`` need not be installed.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pytest_lmeval.formats.harness.aggregates import f1_of, mean
from pytest_lmeval.formats.harness.documents import template_of
from pytest_lmeval.formats.harness.filters import NUMBER, found_in
from pytest_lmeval.formats.harness.rowset import RowSet
from pytest_lmeval.metrics.parts import probability
from pytest_lmeval.metrics.parts.patterns import compiled

__all__ = ["Dataset", "DatasetDict", "mean"]

Dataset = RowSet
DatasetDict = dict
eval_logger = logging.getLogger("pytest_lmeval.harness")


def __getattr__(name: str) -> Any:
    # This module represents every module of lm_eval that has a substitute.
    if name in ("api", "extraction", "filter", "filters", "metrics", "registry", "utils"):
        return sys.modules[__name__]
    raise AttributeError(f"functions of task files cannot use {name!r} of lm_eval or datasets: it has no substitute")


def concatenate_datasets(parts: list[Any], **_: Any) -> RowSet:
    """Return the rows of all parts, one part after another."""
    return RowSet([row for part in parts for row in part])


def apply_template(template: str, doc: Mapping[str, Any]) -> str:
    """Return ``template`` filled with the columns of ``doc``."""
    return template_of(template)(doc)


def general_detokenize(string: str) -> str:
    """Return ``string`` without the spaces that word tokenizers insert before punctuation and inside quotes."""
    for pattern, text in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        string = string.replace(pattern, text)
    return re.sub(r" (['.,])", r"\1", string)


def softmax(values: Iterable[float]) -> list[float]:
    """Return the softmax of ``values``."""
    return probability.softmax([*values])


def weighted_f1_score(items: Iterable[tuple[Any, Any]]) -> float:
    """Return the mean F1 of all gold labels, each weighted by its frequency."""
    pairs = [*items]
    golds = [gold for gold, _ in pairs]
    return sum(golds.count(label) * f1_of(pairs, label) for label in sorted(set(golds), key=str)) / len(pairs)


def metric_max_over_ground_truths(metric_fn: Callable[..., Any], prediction: Any, ground_truths: Iterable[Any]) -> Any:
    """Return the highest value of ``metric_fn(prediction, truth)``."""
    return max(metric_fn(prediction, truth) for truth in ground_truths)


def register_filter(name: str) -> Callable[[Any], Any]:
    """Return a decorator that does nothing, since ``filters`` finds registered classes in the source."""
    return lambda decorated: decorated


class BaseFilter:
    """The base class of filters, which change the responses to documents."""

    def __init__(self, **_: Any) -> None:
        pass

    def apply(self, resps: Iterable[Sequence[Any]], docs: Sequence[Any]) -> Iterable[Any]:
        """Return the responses unchanged; subclasses override this method."""
        return resps


Filter = BaseFilter


class RegexFilter(BaseFilter):
    """Extracts a pattern's match from each response."""

    def __init__(self, regex_pattern: str = NUMBER, group_select: int = 0, fallback: Any = "[invalid]") -> None:
        self.regex_pattern = regex_pattern
        self.regex = re.compile(regex_pattern)
        self.group_select = group_select
        self.fallback = fallback

    def apply(self, resps: Iterable[Sequence[Any]], docs: Sequence[Any]) -> list[list[Any]]:
        """Return the match in each response, or the fallback."""
        pattern = compiled(self.regex.pattern, self.regex.flags)
        return [[each or self.fallback for each in found_in(pattern, given, self.group_select)] for given in resps]


class Missing:
    """Replaces a name of a package that is not installed; any use raises ImportError that names the package."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        top = self._name.partition(".")[0]
        package = {"sklearn": "scikit-learn", "rouge_score": "rouge-score", "PIL": "pillow"}.get(top, top)
        raise ImportError(f"{self._name} is not installed: pip install {package}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __call__ = __getitem__ = __iter__ = __enter__ = __mro_entries__ = _refuse
