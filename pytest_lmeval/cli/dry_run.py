"""Examples asked and scored one at a time, with what happened at every stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name, make_adapter
from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.evaluate import Judgement, Thresholds, evaluate, failed_result
from pytest_lmeval.engine.judge import Judge
from pytest_lmeval.engine.policy import Policy
from pytest_lmeval.errors import AdapterError, LmevalError
from pytest_lmeval.formats.task import Prompt, Task, Tools
from pytest_lmeval.leaderboard.rows import TaskInfo, make_row
from pytest_lmeval.registry import Registry
from pytest_lmeval.rendering import render
from pytest_lmeval.sandbox import open_sandbox
from pytest_lmeval.types import Completion, Example, ExampleResult, Generate, LogLikelihood, LogProb, Request, Response

__all__ = ["DryRun", "Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage, and what is to be seen of it."""

    name: str
    value: Any
    failed: bool = False


class DryRun:
    """Holds the model and the judge while examples are tried; a context manager that closes them."""

    def __init__(self, registry: Registry, adapter: Any, judge: str | None) -> None:
        self._registry = registry
        self._engine = Engine(adapter, Policy(batch_size=1))
        self._judge = self._open_judge(judge) if judge else None
        tools = Tools(open_sandbox(), self._judge)
        self._judgement = Judgement(Thresholds(registry), tools, adapter=adapter_name(adapter))

    def __enter__(self) -> DryRun:
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()
        if self._judge is not None:
            self._judge.close()

    def example(self, task: Task, example: Example) -> tuple[ExampleResult, list[Shown]]:
        """Ask about an example and score it; return its result, and the stages up to the one that failed, if any."""
        prompt = render(example)
        requests = task.requests(example, prompt)
        stages = [Shown("Dataset row", _row(task, example))]
        if requests:
            stages.append(Shown("Solver input", [_asked(request) for request in requests]))
        try:
            responses = self._engine.respond((task.name, example.id), lambda _: requests)
        except AdapterError as error:
            result = failed_result(task, example, prompt, error, self._judgement)
            return result, [*stages, Shown("Solver", str(error), failed=True)]
        if responses:
            stages.append(Shown("Solver output", [_answered(response) for response in responses]))
        result = self._scored(task, example, prompt, responses)
        return result, [*stages, *_scores(result)]

    def metrics(self, task: Task, results: Sequence[ExampleResult]) -> Shown:
        """Return the metrics over ``results``: the task's own, where it has any, and those of its row."""
        count = len(results)
        name = str(getattr(task, "score_metric", ""))
        info = TaskInfo(task.name, str(task.path), task.sha256, task.metric, count, count, score_metric=name)
        aggregate = getattr(task, "aggregate", None)
        found: Mapping[str, Any] = {}
        problem = ""
        try:
            found = aggregate(results) if callable(aggregate) else {}
        except LmevalError as error:
            problem = str(error)
        row = make_row(info, results, aggregates=found)
        metrics: dict[str, Any] = {"score": row.score, **row.metrics}
        if problem or row.problem:
            return Shown("Metrics", {**metrics, "error": problem or row.problem}, failed=True)
        more = {name: value for name, value in found.items() if name not in ("metrics", "score") and value}
        return Shown("Metrics", {**metrics, **more})

    def _scored(self, task: Task, example: Example, prompt: Prompt, responses: Sequence[Response]) -> ExampleResult:
        return evaluate(task, example, prompt, responses, self._judgement)

    def _open_judge(self, spec: str) -> Judge:
        def open_model(other: str) -> Judge:
            adapter = make_adapter(other, self._registry, {}, Path.cwd())
            return Judge(Engine(adapter, Policy(batch_size=1)), {})

        adapter = make_adapter(spec, self._registry, {}, Path.cwd())
        return Judge(Engine(adapter, Policy(batch_size=1)), {}, open_model)


def _row(task: Any, example: Example) -> Any:
    samples = getattr(task, "samples", None)
    if samples is not None:
        return samples[example.id]
    shown = {"prompt": example.prompt, "targets": list(example.targets), "metric": example.metric}
    return {**shown, **({"metadata": example.metadata} if example.metadata else {})}


def _asked(request: Request) -> Any:
    if isinstance(request, LogLikelihood):
        return {"context": request.context, "continuation": request.continuation}
    assert isinstance(request, Generate)
    if isinstance(request.prompt, str):
        return {"prompt": request.prompt}
    return {"messages": [{"role": message.role, "content": message.content} for message in request.prompt]}


def _answered(response: Response) -> Any:
    if isinstance(response, LogProb):
        return {"log_probability": response.total, "greedy": response.greedy}
    assert isinstance(response, Completion)
    known = {name: getattr(response, name) for name in ("finish_reason", "prompt_tokens", "completion_tokens", "cost")}
    return {"text": response.text, **{name: value for name, value in known.items() if value not in (None, "")}}


def _scores(result: ExampleResult) -> Iterator[Shown]:
    details = dict(result.details)
    for key, fields in details.pop("scorers", {}).items():
        judged = [entry for entry in details.get("judge", ()) if entry["scorer"] == key]
        yield Shown(f"Scorer {key}", {**fields, **({"judge": judged} if judged else {})})
    details.pop("judge", None)
    if result.status in ("error", "timeout"):
        yield Shown("Scores", result.error, failed=True)
        return
    applies = {} if result.status == "measured" else {"threshold": result.threshold}
    score = {"status": result.status, "score": result.score, **applies}
    excluded = {"reason": result.error} if result.error else {}
    prediction = {"prediction": result.predictions[0]} if result.predictions else {}
    yield Shown("Score", {**score, **excluded, **prediction, **details})
