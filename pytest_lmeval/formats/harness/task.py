"""One task: what is asked for each document, what the answers are worth, and what all of them come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.formats.harness.aggregates import AGGREGATIONS, CORPUS, decoded, encoded, gate_value, standard_error
from pytest_lmeval.formats.harness.config import Config, FunctionRef, listed
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.formats.harness.filters import Filter
from pytest_lmeval.formats.harness.measures import RIGHT_OR_WRONG, Measurer
from pytest_lmeval.formats.loglikelihood import ranked
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.groups import GROUPS, MEASURES, finite, shown
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
"""Under which of an example's details its values are, by metric and filter."""


@dataclass(frozen=True, slots=True)
class HarnessTask(Task):
    """A task whose examples are the documents of a data set.

    An example's ``metadata`` has ``place``, its row's number, and ``pairs``, the contexts and continuations of
    log-likelihoods. ``decisive`` is the metric and filter that is the example's score; ``facts`` go into hashes of
    content; ``generation`` are the fields of requests for texts; ``missed`` are targets that are no choice, by place.
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
        """What looks like a fault of the task's documents and is scored as the harness does."""
        if self.missed:
            first = min(self.missed)
            where = f"{self.name}: the target of {len(self.missed):,} of its documents is no choice of theirs, first"
            yield f"{where} {self.missed[first]!r:.80} of {self.name}.{first}; as in the harness, none is right"

    @property
    def metric(self) -> str:
        """The metric that is the score, and the filter where it has a name."""
        return shown(self.decisive)

    @property
    def keywords(self) -> tuple[str, ...]:
        """What ``-k`` finds its items by: groups, tags, output type."""
        config = self.config_of
        return (*config.groups, *map(str, listed(config.get("tag"))), config.output_type)

    @property
    def needs(self) -> str:
        """``loglikelihood`` unless texts are generated."""
        return "" if self.config_of.output_type == "generate_until" else "loglikelihood"

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The metrics over all documents, which another library computes."""
        names = [measure.name for measure in self.measurer.measures if measure.aggregation in CORPUS]
        return {name: Metric(name, _of_all_documents, package="sacrebleu") for name in names}

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the metrics over all documents: no example can do without them."""
        return [*self.own_metrics]

    def prepared(self, adapter: Any) -> HarnessTask:
        """Return the task; raise UsageError if ``adapter`` would answer otherwise than the task asks."""
        taken = AdapterFacts.of(adapter).request_options
        asked = {} if self.needs else self.generation["options"]
        lacking = [] if ANY_OPTION in taken else [name for name in asked if name not in taken]
        if lacking:
            given = ", ".join(f"{name}={asked[name]}" for name in lacking)
            raise UsageError(
                f"the task asks with {given}, which adapter {adapter_name(adapter)} does not take for a request: "
                "name one that does, or override generation_kwargs"
            )
        return self

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the requests of one document, in the order in which its metrics want their answers."""
        kind, pairs = self.config_of.output_type, example.metadata["pairs"]
        of = (self.name, example.id)
        if kind == "generate_until":
            repeats = range(self.config_of.get("repeats", 1))
            return [Generate(prompt, *of, repeat, **self.generation) for repeat in repeats]
        if kind == "loglikelihood_rolling":
            return [LogLikelihood("", pairs[0][1], *of, rolling=True)]
        talks = example.metadata.get("talks") or [()] * len(pairs)
        # Options that read the same are asked for once.
        requests = {}
        for talk, (context, text) in zip(talks, pairs, strict=True):
            messages = tuple(Message(*each) for each in talk)
            requests[context, text, messages] = LogLikelihood(context, text, *of, messages, moves_blanks=True)
        return [*requests.values()]

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return what the answers are worth: every metric of every filter, and in [0, 1] the one that decides."""
        row = self.rows[example.place]
        answers, details = self._answers(example, responses)
        values: dict[str, Any] = {}
        prediction = ""
        for name, steps in self.pipelines.items():
            filtered = [reduce(lambda given, step: step(given, row), steps, answer) for answer in answers]
            values |= {f"{metric},{name}": value for metric, value in self.measurer.of(row, filtered).items()}
            if name == self.decisive.rpartition(",")[2] and isinstance(filtered[0], str):
                prediction = filtered[0]
        if self.decisive not in values:
            raise ScoringError(f"no metric {self.decisive!r}; there are {', '.join(values)}")
        higher = {measure.name: measure.higher_is_better for measure in self.measurer.measures}
        value, how = gate_value(values[self.decisive], higher.get(self.decisive.rpartition(",")[0], True))
        details = {**details, DETAILS: {name: encoded(each) for name, each in values.items()}}
        if how:
            details["gate_value"] = how
        metrics = {shown(name): float(each) for name, each in values.items() if _is_share(each)}
        return Score(value, details, prediction, metrics=metrics, unparsed=prediction == "[invalid]")

    def _answers(self, example: Example, responses: Sequence[Response]) -> tuple[list[Any], dict[str, Any]]:
        """Return the responses to each request as pipelines take them, and what is recorded of them."""
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
        """Return every metric over the documents in their order, and in the notes its standard error."""
        ordered = sorted((each for each in results if DETAILS in each.details), key=lambda each: int(each.id))
        columns: dict[str, list[Any]] = {}
        for result in ordered:
            for name, value in result.details[DETAILS].items():
                columns.setdefault(name, []).append(decoded(value))
        known = {measure.name: measure for measure in self.measurer.measures}
        metrics, notes = {}, {}
        for name, values in columns.items():
            measure = known.get(name.rpartition(",")[0])
            aggregation = measure.aggregation if measure else "mean"
            if isinstance(aggregation, FunctionRef):
                value, error = self.documents.call(aggregation, values), None
            else:
                value = AGGREGATIONS[aggregation](values)
                error = standard_error(aggregation, values, self.iterations)
            metrics[shown(name)] = finite(float(value))
            notes[name] = {
                "stderr": finite(error),
                "n": len(values),
                "higher_is_better": measure.higher_is_better if measure else True,
            }
        return {"metrics": metrics, "notes": {MEASURES: notes, **({GROUPS: self.groups} if self.groups else {})}}

    def threshold(self, example: Example) -> float | None:
        """Return 1.0 for what is right or wrong, else 0.0: no example fails by a score without a scale."""
        return 1.0 if self.decisive.rpartition(",")[0] in RIGHT_OR_WRONG else 0.0

    def metric_name(self, example: Example) -> str:
        """Return the metric that decides."""
        return shown(self.decisive)

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return all that decides the score besides the prompt: keys of the task, functions, the document's pairs."""
        return {**self.facts, "pairs": example.metadata["pairs"]}

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the document: what pairs by id share with a run that the harness itself made."""
        return {"document": self.rows[example.place]}


def _of_all_documents(*_: Any) -> float:
    raise ScoringError("a metric over all documents has no value for one")


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= 1.0
