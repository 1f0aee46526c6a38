"""One CORE task: ask how probable each option is, and score which one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.formats.loglikelihood import by_beginning, by_ending, option_requests, ranked
from pytest_lmeval.metrics.parts.probability import accuracy_by, probability_mass
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.types import Example, Generate, Request, Response, Score


@dataclass(frozen=True, slots=True)
class CoreTask(Task):
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
        # What is rendered is the context, where there is one for all options.
        contexts = data["contexts"] if self.kind == "schema" else (Generate(prompt).text,)
        return option_requests(_pairs(contexts, data["continuations"]), self.name, example.id)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return 1.0 where the right option has the lowest mean loss, or every token of the only one is greedy."""
        data = example.metadata
        if self.kind == "language_modeling":
            text = ranked(responses, data["continuations"])
            greedy = text.options[0].greedy
            size = len(data["continuations"][0].encode("utf-8", "surrogatepass"))
            return Score(float(greedy), {**text.record(), "bytes": size}, example.targets[0] if greedy else "")
        pairs = _pairs(data["contexts"], data["continuations"])
        options = ranked(responses, data["choices"], pairs, by_ending if self.kind == "schema" else by_beginning)
        chosen, gold = options.best("tokens"), data["gold"]
        metrics = {
            "acc": accuracy_by(options.totals, gold),
            "probability_mass": probability_mass(options.totals, [gold]),
        }
        if len(data["contexts"]) == 1:
            metrics["acc_norm"] = accuracy_by(options.values("characters"), gold)
            metrics["acc_norm_bytes"] = accuracy_by(options.values("bytes"), gold)
        return Score(float(chosen == gold), options.record(chosen), data["choices"][chosen], metrics=metrics)

    def threshold(self, example: Example) -> float | None:
        """Return None: the metric's."""
        return None

    def metric_name(self, example: Example) -> str:
        """Return ``accuracy``."""
        return self.metric

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the task type and all that is compared."""
        return {"type": self.kind, **{key: example.metadata[key] for key in ("contexts", "continuations", "gold")}}


def _pairs(contexts: Sequence[str], continuations: Sequence[str]) -> list[tuple[str, str]]:
    if len(contexts) == 1:
        contexts = [*contexts] * len(continuations)
    return list(zip(contexts, continuations, strict=True))
