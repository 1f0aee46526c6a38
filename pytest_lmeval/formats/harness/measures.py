"""Read a task's metrics, and compute their values for one document."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, nearest
from pytest_lmeval.formats.checks import check_names
from pytest_lmeval.formats.harness.aggregates import AGGREGATIONS, CORPUS
from pytest_lmeval.formats.harness.config import Config, FunctionRef
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.patterns import without
from pytest_lmeval.metrics.parts.probability import softmax

# For generated text, these metrics pass the target and the result to the task's own aggregation.
_PASSED_ON = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info")
RIGHT_OR_WRONG = frozenset({*_PASSED_ON, "exact_match"})
# The default aggregations other than the mean.
_DEFAULTS = {
    **{name: name for name in ("perplexity", "bits_per_byte", "brier_score", "f1", "bypass")},
    **{name: name for name in CORPUS},
    **dict.fromkeys(("word_perplexity", "byte_perplexity"), "weighted_perplexity"),
    "mcc": "matthews_corrcoef",
}
_LOWER_IS_BETTER = frozenset(
    {"brier_score", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "ter"}
)
_PAIRS = frozenset({*CORPUS, "f1", "mcc"})
_KNOWN = {
    "loglikelihood": ("perplexity", "acc"),
    "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
    "multiple_choice": (*_PASSED_ON, "exact_match", "f1", "mcc", "brier_score"),
    "generate_until": ("exact_match", *sorted(_PAIRS), "bypass"),
}
# The number of an output type's default metrics, which come first in its entry in ``_KNOWN``.
_USUAL = {"loglikelihood": 2, "loglikelihood_rolling": 3, "multiple_choice": 2, "generate_until": 1}
_MATCH_OPTIONS = ("regexes_to_ignore", "ignore_case", "ignore_punctuation", "ignore_numbers")
_NOT_OPTIONS = frozenset({"metric", "aggregation", "higher_is_better", "hf_evaluate", "weight_by_size"})
_NOWHERE = -100


ByMetric = dict[str, Any]
"""Values by the name of their metric."""


@dataclass(frozen=True, slots=True)
class HarnessMetric:
    """One metric of a task.

    ``function`` and ``aggregation`` may be the task's own functions.
    """

    name: str
    function: FunctionRef | None
    options: Mapping[str, Any]
    aggregation: str | FunctionRef
    higher_is_better: bool


def measures_of(config: Config) -> list[HarnessMetric]:
    """Return a task's metrics; raise RecordRefused for an unknown metric."""
    given = config.get("metric_list")
    if given is None:
        given = [{"metric": name} for name in _KNOWN[config.output_type][: _USUAL[config.output_type]]]
    if not given:
        raise RecordRefused("missing_required", "metric_list", "expected a metric")
    return [_measure(config, each) for each in given]


def _measure(config: Config, given: Any) -> HarnessMetric:
    if not isinstance(given, dict) or "metric" not in given:
        raise RecordRefused("missing_required", "metric_list", f"expected metric, got {given!r:.80}")
    metric, kind = given["metric"], config.output_type
    own = metric if isinstance(metric, FunctionRef) else None
    name = own.name if own else str(metric)
    known = _KNOWN[kind]
    if kind == "generate_until" and isinstance(given.get("aggregation"), FunctionRef):
        known = (*known, *_PASSED_ON)
    # The harness calls metrics from other libraries only for generated text.
    is_skipped = given.get("hf_evaluate") and kind != "generate_until"
    if not (own or name in known or is_skipped or config.get("process_results") is not None):
        reason = f"{kind} has no metric {name!r}{nearest(name, known, 'expected one of')}"
        raise RecordRefused("not_supported", "metric_list", reason)
    options = {key: value for key, value in given.items() if key not in _NOT_OPTIONS}
    # The task's functions and metrics from other libraries take their own options.
    if not own and not given.get("hf_evaluate"):
        takes = {*_MATCH_OPTIONS, *_NOT_OPTIONS} | ({"average"} if name != "exact_match" else set())
        check_names({str(key): key for key in options}, sorted(takes), f"metric_list.{name}.")
    try:
        without(() if own else options.get("regexes_to_ignore"), "")
    except (TypeError, ValueError) as error:
        raise RecordRefused("bad_value", "metric_list.regexes_to_ignore", f"{name}: {error}") from None
    aggregation = given.get("aggregation", _DEFAULTS.get(name, "mean"))
    if isinstance(aggregation, str) and aggregation not in AGGREGATIONS:
        hint = nearest(aggregation, AGGREGATIONS, "expected one of")
        raise RecordRefused("not_supported", "metric_list", f"unknown aggregation{hint}")
    higher = bool(given.get("higher_is_better", name not in _LOWER_IS_BETTER))
    return HarnessMetric(name, own, options, aggregation, higher)


@dataclass(frozen=True, slots=True)
class Measurer:
    """Computes the metric values for a task's documents, which aggregations then combine."""

    config: Config
    documents: Documents
    measures: Sequence[HarnessMetric]
    has_inputs: bool = False
    has_targets: bool = False

    def of(self, row: Row, results: Sequence[Any], sources: dict[str, str] | None = None) -> ByMetric:
        """Return the values for ``row`` by metric.

        ``results`` contains a pipeline's result for each request. If a metric's function returns values under other
        names, ``sources`` receives the metric of each such name.
        """
        own, kind = self.config.get("process_results"), self.config.output_type
        if own is not None:
            found = self.documents.call(own, dict(row), [*results])
            if not isinstance(found, Mapping):
                raise ScoringError(f"{own} returned {found!r:.80}: expected metrics and their values")
            return {str(name): value for name, value in found.items()}
        if kind == "generate_until":
            return self._generated(row, results[0], {} if sources is None else sources)
        if kind == "multiple_choice":
            found = self._chosen(row, results)
        elif kind == "loglikelihood":
            found = {"perplexity": results[0][0], "acc": int(results[0][1])}
        else:
            text = str(self.documents.target(row))
            words, size = len(re.split(r"\s+", text)), len(text.encode("utf-8"))
            found = {"word_perplexity": (results[0], words)}
            found |= dict.fromkeys(("byte_perplexity", "bits_per_byte"), (results[0], size))
        names = {measure.name for measure in self.measures}
        return {name: value for name, value in found.items() if name in names}

    def _chosen(self, row: Row, results: Sequence[Any]) -> ByMetric:
        choices = self.documents.choices(row)
        totals = [total for total, _ in results[: len(choices)]]
        greedy = [is_greedy for _, is_greedy in results]
        best, gold = _best(totals), self._gold(row, choices)
        golds = gold if isinstance(gold, list) else [gold]

        def right(place: int) -> float:
            return float(place in gold if self.has_targets else place == gold)

        found = {
            "acc": right(best),
            "acc_norm": right(_best(_divided(totals, map(len, choices)))),
            "acc_bytes": right(_best(_divided(totals, (len(each.encode("utf-8")) for each in choices)))),
            "exact_match": int(any(greedy[place] for place in golds if place != _NOWHERE)),
            **dict.fromkeys(("f1", "mcc"), (gold, best)),
            "brier_score": (gold, softmax(totals)),
        }
        if len(results) == 2 * len(choices):
            gains = [total - alone for total, (alone, _) in zip(totals, results[len(choices) :], strict=True)]
            found["acc_mutual_info"] = float(_best(gains) == gold)
        return found

    def _gold(self, row: Row, choices: Sequence[str]) -> Any:
        gold = self.documents.text(row) if self.has_inputs else self.documents.target(row)
        if isinstance(gold, list):
            return [place if place < len(choices) else _NOWHERE for place in gold]
        if isinstance(gold, str):
            return choices.index(gold) if gold in choices else _NOWHERE
        return gold if gold < len(choices) else _NOWHERE

    def _generated(self, row: Row, result: Any, sources: dict[str, str]) -> ByMetric:
        gold = self.documents.target(row)
        if self.config.has_choices:
            gold = self.documents.choices(row)[gold]
        elif self.has_targets:
            gold = [*gold] if isinstance(gold, list | tuple) else [gold]
        elif type(gold) is not type(result) and not isinstance(result, list):
            gold = type(result)(gold)
        golds = gold if self.has_targets and isinstance(gold, list) else [gold]
        found: ByMetric = {}
        for measure in self.measures:
            values = [self._value(measure, each, result) for each in golds]
            if self.has_targets:
                values = [float(any(_of_target(value, measure.name) for value in values))]
            named = values[0] if isinstance(values[0], dict) else {measure.name: values[0]}
            sources |= {name: measure.name for name in named if name != measure.name and name not in sources}
            found |= named
        return found

    def _value(self, measure: HarnessMetric, gold: Any, result: Any) -> Any:
        if measure.function is not None:
            try:
                return self.documents.call(measure.function, references=[gold], predictions=[result], **measure.options)
            except ScoringError as error:
                # Some functions take the target and the result as one list instead.
                if not isinstance(error.__cause__, TypeError):
                    raise
                return self.documents.call(measure.function, [gold, result])
        if measure.name in CORPUS and isinstance(result, list) and len(result) > 1:
            raise ScoringError(f"{measure.name} got {len(result)} texts: end the filter with take_first")
        if measure.name in _PAIRS or measure.name in _PASSED_ON:
            return (gold, result)
        if measure.name == "bypass":
            return None
        return _match_share(gold, result, measure.options)


def _of_target(value: Any, name: str) -> Any:
    """Return the value of metric ``name`` for one of several targets."""
    if isinstance(value, dict) and name not in value:
        returned = ", ".join(map(str, value))
        raise ScoringError(f"{name} returned {returned}: for a document with several targets, expected {name}")
    return value[name] if isinstance(value, dict) else value


def is_choice(answer: Any, choices: Sequence[str]) -> bool:
    """Return True if ``answer``, or each answer in a list, is the text or the number of a choice."""
    return all(
        each in choices if isinstance(each, str) else isinstance(each, int) and 0 <= each < len(choices)
        for each in (answer if isinstance(answer, list) else [answer])
    )


def _best(values: Sequence[float]) -> int:
    """Return the index of the first NaN, or of the first maximum if there is no NaN."""
    nan = next((place for place, value in enumerate(values) if math.isnan(value)), None)
    return max(range(len(values)), key=values.__getitem__) if nan is None else nan


def _divided(totals: Sequence[float], sizes: Iterable[int]) -> list[float]:
    # An empty option has an infinite value with the sign of its total, or NaN for 0.
    return [
        total / size if size else (math.nan if total == 0 else math.copysign(math.inf, total))
        for total, size in zip(totals, sizes, strict=True)
    ]


def _match_share(gold: Any, result: Any, options: Mapping[str, Any]) -> float:
    """Return the share of results that equal the target after ``options`` are applied to both."""
    results = result if isinstance(result, list) else [result]
    return sum(bool(_cleaned(gold, options) == _cleaned(each, options)) for each in results) / len(results)


def _cleaned(text: Any, options: Mapping[str, Any]) -> Any:
    if not isinstance(text, str):
        return text
    text = without(options.get("regexes_to_ignore"), text)
    if options.get("ignore_case"):
        text = text.lower()
    dropped = string.punctuation if options.get("ignore_punctuation") else ""
    dropped += string.digits if options.get("ignore_numbers") else ""
    return text.translate(str.maketrans("", "", dropped)) if dropped else text
