"""The task that a run makes from a class over a data set."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.loglikelihood import Ranked, option_requests, ranked
from pytest_lmeval.formats.python.examples import Examples
from pytest_lmeval.formats.python.measures import (
    BY_LOGLIKELIHOOD,
    BYTE_PROBABILITY,
    Measure,
    Scored,
    measured,
    question,
)
from pytest_lmeval.formats.python.samples import Samples, pair_requests, paired, pairs_of
from pytest_lmeval.formats.task import Subjects
from pytest_lmeval.formatters import joined
from pytest_lmeval.stops import first_stop
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask
from pytest_lmeval.tasks.execution import running_code_in
from pytest_lmeval.tasks.faults import called, scored
from pytest_lmeval.tasks.prompts import checked_context, checked_messages, checked_texts
from pytest_lmeval.tasks.sample import BaseMetricContext, ResponseType, Sample
from pytest_lmeval.types import Completion, Example, Generate, Joined, Message, Metric, Request, Response, Score


@dataclass(frozen=True, slots=True)
class Held:
    """The data for scoring an example: its sample, its extras, and ``others``, the samples in a comparison."""

    sample: Sample
    extras: Mapping[str, Any]
    others: Sequence[Sample] = ()


@dataclass(slots=True)
class ExampleMaker:
    """Makes examples from a task class's samples."""

    task: BaseTask[Any]
    samples: Samples
    measures: Sequence[Measure]
    line: int
    held: dict[str, Held] = field(default_factory=dict)

    def __call__(self, number: int) -> Example:
        """Return the example at ``number``; raise RecordRefused if the class cannot make it."""
        group = [self._read(sample) for sample in self.samples.group(number)]
        if self.measures[0].compares:
            held = Held(paired(self._field("_create_samples"), group), {}, group)
        else:
            held = self._held(group[0])
        self.held.setdefault(str(held.sample.id), held)
        sample = held.sample
        return Example(
            id=str(sample.id),
            prompt=joined(sample.messages[_last_question(sample.messages) :]),
            targets=_targets(sample),
            metric=self.measures[0].name,
            post_process=_rule(self.task),
            category="" if sample.subject == NO_SUBJECT else sample.subject,
            line=self.line,
            messages=Joined(sample.messages),
            place=number,
        )

    def _held(self, sample: Sample) -> Held:
        self._check_completions(sample)
        context = checked_context(self._field("_get_context"), sample.context)
        for measure in self.measures:
            called(self._field("_get_context"), measure.check, _as_mapping(context))
        own = context if isinstance(context, BaseMetricContext) else None
        return Held(replace(sample, context=own), _as_mapping(context))

    def _read(self, sample: Sample) -> Sample:
        """Return the sample with checked fields, since a class may have set any values."""
        messages = checked_messages(self._field("_create_samples"), sample.messages)
        if not any(message.role == "user" for message in messages):
            raise RecordRefused("bad_value", self._field("_get_messages"), "expected a message of the user")
        targets = checked_texts(self._field("_get_ground_truth"), sample.ground_truth)
        chooses = self.task.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS
        given = sample.possible_completions
        completions = checked_texts(self._field("_get_possible_completions"), given) if chooses else ()
        truth = targets if len(targets) > 1 else targets[0]
        return replace(sample, messages=Joined(messages), ground_truth=truth, possible_completions=completions)

    def _check_completions(self, sample: Sample) -> None:
        if self.task.RESPONSE_TYPE != ResponseType.LOGLIKELIHOODS:
            return
        field, targets, completions = self._field("_get_possible_completions"), _targets(sample), _options(sample)
        # A probability needs one text; a choice needs two.
        fewest = 1 if all(measure.name == BYTE_PROBABILITY for measure in self.measures) else 2
        if len(set(completions)) < fewest or not all(completions):
            wanted = "at least one text" if fewest == 1 else "two different texts or more"
            raise RecordRefused("bad_value", field, f"expected {wanted}, got {completions!r:.120}")
        if not (set(targets) <= set(completions) or (fewest == 1 and set(targets) & set(completions))):
            raise RecordRefused("bad_value", field, f"the ground truth {targets[0]!r:.80} is not one of them")

    def _field(self, method: str) -> str:
        return f"{type(self.task).__name__}.{method}"


@dataclass(frozen=True, slots=True)
class CompletionTask(Task):
    """Requests a completion for each sample, or the probabilities of possible completions, and scores the responses.

    ``dataset`` contains the ``path``, the ``revision`` and the ``sha256`` of the data.
    """

    name: str
    path: Path
    sha256: str
    code: str
    scoring_code: str
    task: BaseTask[Any]
    measures: Sequence[Measure]
    examples: Examples
    held: Mapping[str, Held]
    dataset: Mapping[str, str] = field()
    subjects: Subjects | None = None

    @property
    def metric(self) -> str:
        """The first metric that the class lists."""
        return self.measures[0].name

    @property
    def needs(self) -> str:
        """The adapter method that the task needs, which is ``loglikelihood`` or ""."""
        return "loglikelihood" if self.task.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS else ""

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The metrics that the class lists."""
        return {measure.name: measure.metric for measure in self.measures}

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the request for a completion, or a request for each possible completion."""
        talk = () if isinstance(prompt, str) else Joined(prompt)
        if not self.needs:
            stop = tuple(self.task.stop_sequences or ())
            return (Generate(talk or prompt, self.name, example.id, stop=stop, max_tokens=self.task.max_tokens),)
        held = self.held[example.id]
        if held.others:
            return pair_requests(held.others, prompt, self.name, example)
        context = prompt if isinstance(prompt, str) else joined(prompt)
        return option_requests([(context, option) for option in _options(held.sample)], self.name, example.id, talk)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the first metric's score of the post-processed completion, with the other metrics' scores."""
        if self.needs:
            return self._chosen(example, self.held[example.id], responses)
        with running_code_in(tools.sandbox):
            return measured(self.measures, self._predicted(example, responses), tools)

    def judges(self, example: Example) -> Sequence[str]:
        """Return the ``MODEL_KEY`` of each metric that asks a judge, or "" for the run's judge."""
        return [measure.judge.MODEL_KEY for measure in self.measures if measure.judge is not None]

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return the first question from each metric that asks the run's judge."""
        asking = [measure.judge for measure in self.measures if measure.judge and not measure.judge.MODEL_KEY]
        if not asking:
            return None
        answer = self._predicted(example, responses)
        return [question(metric, answer).first for metric in asking]

    def threshold(self, example: Example) -> float | None:
        """Return the class's ``THRESHOLD``, by default the first metric's threshold."""
        own = self.task.THRESHOLD
        return self.measures[0].metric.threshold if own is None else own

    def metric_name(self, example: Example) -> str:
        """Return the first metric's name."""
        return self.measures[0].name

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the metrics that apply to the example."""
        extras = self.held[example.id].extras
        return [measure.name for measure in self.measures if measure.applies(example.targets, extras)]

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the metrics, the context, the possible completions, and a hash of the task file's code."""
        held = self.held[example.id]
        names = [measure.name for measure in self.measures]
        completions = _options(held.sample)
        content = {"metrics": names, "context": json_of(held.extras), "completions": completions, "code": self.code}
        # Earlier versions divided by bytes, and joined messages differently.
        normalised = {"normalised_by": "characters"} if "accuracy_norm_loglikelihood" in names else {}
        judged = {measure.name: measure.judge.prompt_hash for measure in self.measures if measure.judge is not None}
        return {**content, "text": "joined", **normalised, **({"judged": judged} if judged else {})}

    def _predicted(self, example: Example, responses: Sequence[Response]) -> Scored:
        held = self.held[example.id]
        (completion,) = responses
        assert isinstance(completion, Completion)
        # A run has already cut the completion at its first stop sequence, but other callers may not have done so.
        text = completion.text[: first_stop(completion.text, self.task.stop_sequences or ())]
        name = f"{type(self.task).__name__}.post_process_generated_completion"
        prediction = scored(name, self.task.post_process_generated_completion, text, held.sample)
        if not isinstance(prediction, str):
            raise ScoringError(f"{name} returned {prediction!r:.80}; expected text")
        return Scored(prediction, example.targets, held.extras, example.messages or (), self.name, example.id, text)

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the fields of :meth:`scoring`, with a hash of the code without the methods that write prompts."""
        return {**self.scoring(example), "code": self.scoring_code}

    def _chosen(self, example: Example, held: Held, responses: Sequence[Response]) -> Score:
        texts = _options(held.sample)
        options = ranked(responses, texts, pairs_of(held.others))
        best = [options.best(BY_LOGLIKELIHOOD.get(measure.name, "total")) for measure in self.measures]
        chosen = {measure.name: number for measure, number in zip(self.measures, best, strict=True)}
        values = {each.name: self._value(each, example, options, chosen[each.name]) for each in self.measures}
        first, *others = values
        further = {name: values[name] for name in others}
        return Score(values[first], _details(options, chosen[first]), texts[chosen[first]], metrics=further)

    def _value(self, measure: Measure, example: Example, options: Ranked, chosen: int) -> float:
        texts, extras = options.texts, self.held[example.id].extras
        if measure.name == BYTE_PROBABILITY:
            right = next(texts.index(text) for text in example.targets if text in texts)
            return math.exp(min(options.values("bytes")[right], 0.0))
        if measure.of_loglikelihoods is not None:
            by_text = dict(zip(texts, options.totals, strict=True))
            return scored(f"metric {measure.name!r}", measure.of_loglikelihoods, by_text, example.targets)
        return measured([measure], Scored(texts[chosen], example.targets, extras), Tools()).value


def _details(options: Ranked, chosen: int) -> dict[str, Any]:
    if len(options.asked) > 1:
        return options.record(chosen)
    # The board computes bits per byte from the sizes of all texts.
    return {**options.record(), "bytes": len(options.texts[0].encode("utf-8", "surrogatepass"))}


def json_of(value: Any) -> Any:
    """Return ``value`` as JSON; a value that JSON cannot represent becomes its type's name."""
    return json.loads(json.dumps(value, default=lambda other: type(other).__name__, skipkeys=True))


def _as_mapping(context: Any) -> Mapping[str, Any]:
    if isinstance(context, BaseMetricContext):
        return context.as_dict()
    if hasattr(context, "model_dump"):
        return dict(context.model_dump())
    return dict(context or {})


def _targets(sample: Sample) -> tuple[str, ...]:
    truth = sample.ground_truth
    return (truth,) if isinstance(truth, str) else tuple(truth or ())


def _options(sample: Sample) -> tuple[str, ...]:
    return tuple(sample.possible_completions or ())


def _last_question(messages: Sequence[Message]) -> int:
    return max(place for place, message in enumerate(messages) if message.role == "user")


def _rule(task: BaseTask[Any]) -> str:
    overridden = type(task).post_process_generated_completion is not BaseTask.post_process_generated_completion
    return "post_process_generated_completion" if overridden else "none"
