"""One CORE task: ask how probable each option is, and score which one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.formats.loglikelihood import Option, as_written, by_beginning, by_ending, log_probs, whole
from pytest_lmeval.formats.task import Prompt, TaskDefaults, Tools
from pytest_lmeval.metrics.probability import (
    accuracy_by,
    lowest,
    per_byte,
    per_character,
    probability_mass,
    softmax,
)
from pytest_lmeval.types import Example, Generate, LogLikelihood, Request, Response, Score

__all__ = ["CoreTask"]


@dataclass(frozen=True, slots=True)
class CoreTask(TaskDefaults):
    """A task of ``icl_tasks``; an example's ``metadata`` has its ``contexts``, ``continuations`` and ``choices``.

    ``random_baseline`` is the score that guessing reaches, in [0, 1); ``dataset`` are path and hash of the records.
    """

    name: str
    path: Path
    sha256: str
    kind: str
    random_baseline: float = field()
    examples: Sequence[Example]
    dataset: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "accuracy"
    needs: str = "loglikelihood"

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return a request per option, one for options that read the same; ``prompt`` goes before a schema's alone."""
        data = example.metadata
        # What is rendered stands for the context, where there is one for all options.
        contexts = data["contexts"] if self.kind == "schema" else (Generate(prompt).text,)
        if len(contexts) == 1:
            pairs = [(contexts[0], continuation) for continuation in data["continuations"]]
        else:
            pairs = list(zip(contexts, data["continuations"], strict=True))
        return [LogLikelihood(*pair, self.name, example.id) for pair in dict.fromkeys(pairs)]

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return 1.0 where the right option has the lowest mean loss, or every token of the only one is greedy."""
        given = log_probs(responses)
        if self.kind == "language_modeling":
            (option,) = whole(given)
            size = len(example.metadata["continuations"][0].encode("utf-8", "surrogatepass"))
            details = {"options": as_written([option]), "bytes": size}
            return Score(float(option.greedy), details, example.targets[0] if option.greedy else "")
        options = by_ending(given) if self.kind == "schema" else by_beginning(given)
        return _chosen(example, options)

    def threshold(self, example: Example) -> float | None:
        """Return None: the metric's."""
        return None

    def metric_name(self, example: Example) -> str:
        """Return ``accuracy``."""
        return self.metric

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the task type and all that is compared."""
        return {"type": self.kind, **{key: example.metadata[key] for key in ("contexts", "continuations", "gold")}}


def _chosen(example: Example, asked: Sequence[Option]) -> Score:
    data = example.metadata
    texts = _texts(data)
    # Options that read the same were asked for once.
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    options = [asked[numbers[text]] for text in texts]
    totals = [option.total for option in options]
    gold: int = data["gold"]
    chosen = lowest([option.loss for option in options])
    metrics = {"acc": accuracy_by(totals, gold), "probability_mass": probability_mass(totals, [gold])}
    if len(data["contexts"]) == 1:
        metrics["acc_norm"] = accuracy_by(per_character(totals, data["choices"]), gold)
        metrics["acc_norm_bytes"] = accuracy_by(per_byte(totals, data["choices"]), gold)
    details = {"chosen": chosen, "confidence": softmax(totals)[chosen], "options": as_written(asked)}
    return Score(float(chosen == gold), details, data["choices"][chosen], metrics=metrics)


def _texts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    contexts, continuations = data["contexts"], data["continuations"]
    if len(contexts) == 1:
        contexts = contexts * len(continuations)
    return list(zip(contexts, continuations, strict=True))
