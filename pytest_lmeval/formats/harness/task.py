"""A harness task: it makes the requests for each document, scores the answers, and aggregates the scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.formats.harness.aggregates import (
    AGGREGATIONS,
    CORPUS,
    decoded,
    encoded,
    gate_value,
    score_of,
    standard_error,
)
from pytest_lmeval.formats.harness.config import Config, FunctionRef, listed
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.formats.harness.filters import Filter
from pytest_lmeval.formats.harness.measures import RIGHT_OR_WRONG, ByMetric, Measurer
from pytest_lmeval.formats.loglikelihood import ranked
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.groups import GROUPS, LEFT_OUT, MEASURES, finite, shown
from pytest_lmeval.numbers import is_share
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.types import (
    Completion,
    Example,
    ExampleResult,
    Generate,
    LogLikelihood,
    Message,
    Metric,
    Request,
    Response,
    Score,
)

DETAILS = MEASURES
"""The key in an example's details for the values by metric and filter."""
_SOURCES = "returned_by"
"""The key in the details that maps each unexpected name of a value to the metric whose function returned it."""
_DECIDES = "decides"
"""The key in the details that names the value that is the score, if a function returned no value of the metric."""


@dataclass(frozen=True, slots=True)
class HarnessTask(Task):
    """A task whose examples are a data set's documents.

    In an example's ``metadata``, ``place`` is the number of its row, and ``pairs`` are the contexts and continuations.
    ``decisive`` names the metric and the filter that give the score. Content hashes include ``facts``. ``generation``
    contains the fields of generation requests. ``missed`` maps positions to targets that are not choices.
    """

    name: str
    path: Path
    sha256: str
    config_of: Config
    documents: Documents
    measurer: Measurer
    pipelines: Mapping[str, Sequence[Filter]]
    generation: Mapping[str, Any]
    decisive: str
    rows: Sequence[Row]
    facts: Mapping[str, Any]
    iterations: int
    groups: Mapping[str, Any]
    examples: Sequence[Example] = field()
    dataset: Mapping[str, Any] = field()
    missed: Mapping[int, Any] = field(default_factory=dict)
    aggregates: bool = True

    @property
    def remarks(self) -> Iterator[str]:
        """Likely mistakes in the documents, which the task scores as the harness does."""
        if self.missed:
            first = min(self.missed)
            found = f"{self.name}: documents whose target is not one of their choices: {len(self.missed):,}, first"
            yield f"{found} {self.missed[first]!r:.80} in {self.name}.{first}; as in the harness, no choice is right"

    @property
    def metric(self) -> str:
        """The metric that is the score, with the name of its filter, if any."""
        return shown(self.decisive)

    @property
    def score_metric(self) -> str:
        """The deciding metric if a function of the task aggregates its values, else ""."""
        return self.metric if isinstance(self._rules(self.decisive.rpartition(",")[0], {})[0], FunctionRef) else ""

    @property
    def keywords(self) -> tuple[str, ...]:
        """The words by which ``-k`` selects the task: groups, tags and the output type."""
        config = self.config_of
        return (*config.groups, *map(str, listed(config.get("tag"))), config.output_type)

    @property
    def needs(self) -> str:
        """``loglikelihood``, or "" if the model generates text."""
        return "" if self.config_of.output_type == "generate_until" else "loglikelihood"

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The corpus metrics, which sacrebleu computes."""
        names = [measure.name for measure in self.measurer.measures if measure.aggregation in CORPUS]
        return {name: Metric(name, _of_all_documents, package="sacrebleu") for name in names}

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the corpus metrics."""
        return [*self.own_metrics]

    def prepared(self, adapter: Any) -> HarnessTask:
        """Return the task; raise UsageError if ``adapter`` does not support the task's generation options."""
        taken = AdapterFacts.of(adapter).request_options
        asked = {} if self.needs else self.generation["options"]
        lacking = [] if ANY_OPTION in taken else [name for name in asked if name not in taken]
        if lacking:
            given = ", ".join(f"{name}={asked[name]}" for name in lacking)
            detail = f"the task sends {given}, which adapter {adapter_name(adapter)} does not support"
            raise UsageError(f"{detail}: use another adapter, or override generation_kwargs")
        return self

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the requests for one document, in the order in which metrics take the results."""
        kind, pairs = self.config_of.output_type, example.metadata["pairs"]
        of = (self.name, example.id)
        if kind == "generate_until":
            repeats = range(self.config_of.get("repeats", 1))
            return [Generate(prompt, *of, repeat, **self.generation) for repeat in repeats]
        if kind == "loglikelihood_rolling":
            return [LogLikelihood("", pairs[0][1], *of, rolling=True)]
        talks = example.metadata.get("talks") or [()] * len(pairs)
        # Equal options share a request.
        requests = {}
        for talk, (context, text) in zip(talks, pairs, strict=True):
            messages = tuple(Message(*each) for each in talk)
            requests[context, text, messages] = LogLikelihood(context, text, *of, messages, moves_blanks=True)
        return [*requests.values()]

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the score of the answers, in [0, 1], with the value of every metric after every filter."""
        row = self.rows[example.place]
        answers, details = self._answers(example, responses)
        values: ByMetric = {}
        sources: dict[str, str] = {}
        prediction = ""
        for name, steps in self.pipelines.items():
            filtered = [reduce(lambda given, step: step(given, row), steps, answer) for answer in answers]
            values |= {f"{metric},{name}": value for metric, value in self.measurer.of(row, filtered, sources).items()}
            if name == self.decisive.rpartition(",")[2] and isinstance(filtered[0], str):
                prediction = filtered[0]
        decisive = self._deciding(values)
        metric = decisive.rpartition(",")[0]
        score = score_of(values[decisive], *self._rules(metric, sources))
        details |= {DETAILS: {name: encoded(each) for name, each in values.items()}, **score.details}
        if sources:
            details[_SOURCES] = sources
        if decisive != self.decisive:
            details[_DECIDES] = decisive
        metrics = {shown(name): float(each) for name, each in values.items() if is_share(each)}
        # The example's threshold belongs to the expected metric.
        is_right = metric in RIGHT_OR_WRONG and decisive != self.decisive
        return replace(
            score,
            details=details,
            prediction=prediction,
            metrics=metrics,
            unparsed=prediction == "[invalid]",
            thresholds={shown(decisive): 1.0} if is_right else {},
        )

    def _deciding(self, values: ByMetric) -> str:
        """Return the name of the value that is the score; raise ScoringError if it is missing.

        If a function returns only unexpected names, the first value after the first filter decides, unless the file
        names a metric.
        """
        if self.decisive in values:
            return self.decisive
        usual, end = self.measurer.measures[0].name, f",{next(iter(self.pipelines))}"
        first = next((name for name in values if name.endswith(end)), None)
        if first is None or self.decisive != usual + end:
            raise ScoringError(f"no metric {self.decisive!r}; there are {', '.join(values)}")
        return first

    def _rules(self, metric: str, sources: Mapping[str, str]) -> tuple[str | FunctionRef, bool]:
        """Return a metric's aggregation, and True if higher values are better.

        ``sources`` maps unexpected names to their metrics.
        """
        known = {measure.name: measure for measure in self.measurer.measures}
        measure = known.get(metric) or known.get(sources.get(metric, ""))
        return (measure.aggregation, measure.higher_is_better) if measure else ("mean", True)

    def _answers(self, example: Example, responses: Sequence[Response]) -> tuple[list[Any], dict[str, Any]]:
        """Return the responses to each request, in the form that pipelines take, and the details of the score."""
        kind = self.config_of.output_type
        if kind == "generate_until":
            return [[each.text for each in responses if isinstance(each, Completion)]], {}
        pairs = [tuple(pair) for pair in example.metadata["pairs"]]
        found = ranked(responses, [continuation for _, continuation in pairs], pairs)
        if any(math.isnan(total) for total in found.totals):
            raise ScoringError(f"log-probabilities {found.totals!r:.200}: expected numbers")
        if kind == "loglikelihood_rolling":
            return [[found.totals[0]]], found.record()
        return [[(option.total, option.greedy)] for option in found.options], found.record()

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return every metric over the documents with values, in order; the notes contain the standard errors."""
        ordered = sorted((each for each in results if DETAILS in each.details), key=lambda each: int(each.id))
        columns: dict[str, list[Any]] = {}
        sources: dict[str, str] = {}
        for result in ordered:
            sources |= result.details.get(_SOURCES, {})
            for name, value in result.details[DETAILS].items():
                columns.setdefault(name, []).append(decoded(value))
        metrics: dict[str, float | None] = {}
        notes: dict[str, dict[str, Any]] = {}
        for name, values in columns.items():
            aggregation, higher = self._rules(name.rpartition(",")[0], sources)
            if isinstance(aggregation, FunctionRef):
                value, error = self.documents.call(aggregation, values), None
            else:
                value = AGGREGATIONS[aggregation](values)
                error = standard_error(aggregation, values, self.iterations)
            metrics[shown(name)] = finite(float(value))
            notes[name] = {"stderr": finite(error), "n": len(values), "higher_is_better": higher}
        decided = {result.details.get(_DECIDES, self.decisive): result.status for result in ordered}
        measured = next((name for name, status in decided.items() if status == "measured"), "")
        number = metrics.get(shown(measured))
        others = ", ".join(shown(name) for name in decided if name != self.decisive)
        instead = f"the function returned {others} instead, which is the score"
        more = {GROUPS: self.groups, LEFT_OUT: {self.metric: instead} if others else {}}
        return {
            "metrics": metrics,
            "notes": {MEASURES: notes, **{key: value for key, value in more.items() if value}},
            **({} if number is None else {"score": gate_value(number, notes[measured]["higher_is_better"])[0]}),
        }

    def threshold(self, example: Example) -> float | None:
        """Return 1.0 for a right-or-wrong metric, else 0.0, since no value of a graded metric means right."""
        return 1.0 if self.decisive.rpartition(",")[0] in RIGHT_OR_WRONG else 0.0

    def metric_name(self, example: Example) -> str:
        """Return the metric that gives the score."""
        return shown(self.decisive)

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return everything besides the prompt that affects the score: the task's keys and functions, and the pairs."""
        return {**self.facts, "pairs": example.metadata["pairs"]}

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the document, for pairing by id with a run of the harness itself."""
        row = self.rows[example.place]
        if self.config_of.get("doc_to_image") is not None:
            from pytest_lmeval.formats.harness.images import without_images

            row = without_images(row)
        return {"document": row}


def _of_all_documents(*_: Any) -> float:
    raise ScoringError("a corpus metric has no value for a single document")
