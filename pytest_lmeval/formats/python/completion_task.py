"""A task class over a dataset, as a task of a run."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.data.splits import Row
from pytest_lmeval.errors import RecordRefused, ScoringError, UsageError
from pytest_lmeval.formats.loglikelihood import Ranked, option_requests, ranked
from pytest_lmeval.formats.python.conversation import conversation, texts_of
from pytest_lmeval.formats.python.examples import Examples, id_of
from pytest_lmeval.formats.python.faults import called, scored
from pytest_lmeval.formats.python.items import Items
from pytest_lmeval.formats.python.judging import Scored, question
from pytest_lmeval.formats.python.measures import BY_LOGLIKELIHOOD, BYTE_PROBABILITY, Measure, measured
from pytest_lmeval.formats.task import Prompt, Subjects, TaskDefaults, Tools
from pytest_lmeval.formatters import joined
from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask
from pytest_lmeval.tasks.execution import running_code_in
from pytest_lmeval.tasks.sample import BaseMetricContext, ResponseType, Sample
from pytest_lmeval.types import (
    Completion,
    Example,
    Generate,
    Joined,
    Message,
    Request,
    Response,
    Score,
)

SEED = 1234


@dataclass(frozen=True, slots=True)
class Held:
    """What scoring needs of an item besides its example."""

    sample: Sample
    extras: Mapping[str, Any]


@dataclass(slots=True)
class ExampleMaker:
    """Makes the examples of one task class from the items of its sample split."""

    task: BaseTask[Any]
    items: Items
    measures: Sequence[Measure]
    line: int
    held: dict[str, Held] = field(default_factory=dict)

    def __call__(self, number: int) -> Example:
        """Return the example of the item at ``number``; raise RecordRefused where the class makes none of it."""
        task, place = self.task, self.items[number]
        item = self.items.item(place)
        task.rnd = random.Random(SEED + place.index)
        task.dataset = self.items.drawn(place)
        messages = Joined(conversation(task, self.items, place))
        targets = texts_of(task, "_get_ground_truth", item)
        extras = self._extras(item)
        own_id = id_of(item.get("id"), place.index, place.own_splits)
        sample = Sample(
            id=own_id,
            index=place.index,
            subject=NO_SUBJECT if self.items.has_none else place.subject,
            item=item,
            messages=messages,
            ground_truth=targets if len(targets) > 1 else targets[0],
            possible_completions=self._completions(item, targets),
            context=extras if isinstance(extras, BaseMetricContext) else None,
        )
        self.held.setdefault(own_id, Held(sample, _as_mapping(extras)))
        return Example(
            id=own_id,
            prompt=joined(messages[_last_question(messages) :]),
            targets=targets,
            metric=self.measures[0].name,
            post_process=_rule(task),
            category=place.subject,
            line=self.line,
            messages=messages,
        )

    def _extras(self, item: Row) -> Any:
        name = f"{type(self.task).__name__}._get_context"
        context: Any = called(name, self.task._get_context, item)
        if not (context is None or isinstance(context, BaseMetricContext | Mapping) or hasattr(context, "model_dump")):
            raise RecordRefused("bad_type", name, f"expected a BaseMetricContext or None, got {context!r:.80}")
        for measure in self.measures:
            called(name, measure.check, _as_mapping(context))
        return context

    def _completions(self, item: Row, targets: Sequence[str]) -> tuple[str, ...]:
        if self.task.RESPONSE_TYPE != ResponseType.LOGLIKELIHOODS:
            return ()
        field = f"{type(self.task).__name__}._get_possible_completions"
        completions = texts_of(self.task, "_get_possible_completions", item)
        # How probable the right text is can be told without another; which is the most probable cannot.
        fewest = 1 if all(measure.name == BYTE_PROBABILITY for measure in self.measures) else 2
        if len(set(completions)) < fewest or not all(completions):
            wanted = "at least one text" if fewest == 1 else "two different texts or more"
            raise RecordRefused("bad_value", field, f"expected {wanted}, got {completions!r:.120}")
        # Of several right texts, one need be asked for.
        if not (set(targets) <= set(completions) or (fewest == 1 and set(targets) & set(completions))):
            raise RecordRefused("bad_value", field, f"the ground truth {targets[0]!r:.80} is not one of them")
        return completions


@dataclass(frozen=True, slots=True)
class CompletionTask(TaskDefaults):
    """A class over a dataset: ask for a completion, or for how probable each possible one is, and score it.

    ``dataset`` tells where the data is from: its ``path``, the ``sha256`` of what was read, its ``revision``.
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
        """The method that an adapter must have beside one that answers: ``loglikelihood``, or none."""
        return "loglikelihood" if self.task.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS else ""

    def prepared(self, adapter: Any) -> CompletionTask:
        """Return the task; raise UsageError where ``adapter`` cannot answer it."""
        if self.needs and not callable(getattr(adapter, self.needs, None)):
            raise UsageError(f"task {self.name!r} asks for log-probabilities, which the adapter does not give")
        return self

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the request for a completion, or one for each possible completion."""
        talk = () if isinstance(prompt, str) else Joined(prompt)
        if not self.needs:
            stop = tuple(self.task.stop_sequences or ())
            return (Generate(talk or prompt, self.name, example.id, stop=stop, max_tokens=self.task.max_tokens),)
        context = prompt if isinstance(prompt, str) else joined(prompt)
        options = self.held[example.id].sample.possible_completions
        return option_requests([(context, option) for option in options], self.name, example.id, talk)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the first metric's score of what the class makes of the completion, with the other metrics'."""
        if self.needs:
            return self._chosen(example, self.held[example.id], responses)
        with running_code_in(tools.sandbox):
            return measured(self.measures, self._predicted(example, responses), tools)

    def judges(self, example: Example) -> Sequence[str]:
        """Return the ``MODEL_KEY`` of each metric that asks a judge, "" for the judge of the run."""
        return [measure.judge.MODEL_KEY for measure in self.measures if measure.judge is not None]

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return the first question of each metric that asks the judge of the run."""
        asking = [measure.judge for measure in self.measures if measure.judge and not measure.judge.MODEL_KEY]
        if not asking:
            return None
        answer = self._predicted(example, responses)
        return [question(metric, answer).first for metric in asking]

    def threshold(self, example: Example) -> float | None:
        """Return the class's ``THRESHOLD``, or else the first metric's."""
        own = self.task.THRESHOLD
        return self.measures[0].threshold if own is None else own

    def metric_name(self, example: Example) -> str:
        """Return the first metric's name."""
        return self.measures[0].name

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the metrics that say anything of the example."""
        extras = self.held[example.id].extras
        return [measure.name for measure in self.measures if measure.applies(example.targets, extras)]

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the metrics, the context, the completions to choose from, and a hash of the task file's code."""
        held = self.held[example.id]
        names = [measure.name for measure in self.measures]
        completions = held.sample.possible_completions
        content = {"metrics": names, "context": json_of(held.extras), "completions": completions, "code": self.code}
        # Results of versions that divided by bytes, or put line ends of their own between messages, do not compare.
        normalised = {"normalised_by": "characters"} if "accuracy_norm_loglikelihood" in names else {}
        judged = {measure.name: measure.judge.prompt_hash for measure in self.measures if measure.judge is not None}
        return {**content, "text": "joined", **normalised, **({"judged": judged} if judged else {})}

    def _predicted(self, example: Example, responses: Sequence[Response]) -> Scored:
        held = self.held[example.id]
        (completion,) = responses
        assert isinstance(completion, Completion)
        text = _before_stop(completion.text, self.task.stop_sequences or ())
        name = f"{type(self.task).__name__}.post_process_generated_completion"
        prediction = scored(name, self.task.post_process_generated_completion, text, held.sample)
        if not isinstance(prediction, str):
            raise ScoringError(f"{name} returned {prediction!r:.80}; expected text")
        return Scored(prediction, example.targets, held.extras, example.messages or (), self.name, example.id)

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the same with a hash of the code that leaves out the methods which write prompts."""
        return {**self.scoring(example), "code": self.scoring_code}

    def _chosen(self, example: Example, held: Held, responses: Sequence[Response]) -> Score:
        texts = held.sample.possible_completions
        options = ranked(responses, texts)
        chosen = {measure.name: options.best(BY_LOGLIKELIHOOD.get(measure.name, "total")) for measure in self.measures}
        per_byte = options.values("bytes")[next(texts.index(text) for text in example.targets if text in texts)]
        values = {
            measure.name: math.exp(min(per_byte, 0.0))
            if measure.name == BYTE_PROBABILITY
            else measured([measure], Scored(texts[chosen[measure.name]], example.targets, held.extras), Tools()).value
            for measure in self.measures
        }
        first, *others = values
        further = {name: values[name] for name in others}
        return Score(values[first], _details(options, chosen[first]), texts[chosen[first]], metrics=further)


def _details(options: Ranked, chosen: int) -> dict[str, Any]:
    if len(options.asked) > 1:
        return options.record(chosen)
    # A single text is not chosen: with its size, the row tells the bits per byte of all such texts together.
    return {**options.record(), "bytes": len(options.texts[0].encode("utf-8", "surrogatepass"))}


def json_of(value: Any) -> Any:
    """Return ``value`` as JSON values; what is none is told by its type alone."""
    return json.loads(json.dumps(value, default=lambda other: type(other).__name__, skipkeys=True))


def _as_mapping(context: Any) -> Mapping[str, Any]:
    if isinstance(context, BaseMetricContext):
        return context.as_dict()
    if hasattr(context, "model_dump"):
        return dict(context.model_dump())
    return dict(context or {})


def _before_stop(text: str, stops: Sequence[str]) -> str:
    # An adapter that is given prompts alone cannot stop there itself.
    ends = [text.find(stop) for stop in stops if stop and stop in text]
    return text[: min(ends)] if ends else text


def _last_question(messages: Sequence[Message]) -> int:
    return max(place for place, message in enumerate(messages) if message.role == "user")


def _rule(task: BaseTask[Any]) -> str:
    overridden = type(task).post_process_generated_completion is not BaseTask.post_process_generated_completion
    return "post_process_generated_completion" if overridden else "none"
