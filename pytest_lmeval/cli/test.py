"""``lmeval test TASK``: run a few examples of a task and show each stage; store nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import adapter_name
from pytest_lmeval.adapters.resolve import resolve_adapter, scrubber_of
from pytest_lmeval.arguments import THINK_TAGS, key_value, think_tags, whole
from pytest_lmeval.asking.engine import Engine, RequestsOf
from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import aggregate, info_of
from pytest_lmeval.leaderboard.rows import make_row
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.library import ExampleUnit
from pytest_lmeval.run.plan import check_left
from pytest_lmeval.run.run import Run
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.task import Task, render
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion, ExampleResult, Generate, LogLikelihood, LogProb, Message, Request, Response

_WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the key or name of a task, or the path of its file")
    parser.add_argument("-n", dest="count", metavar="N", type=whole(1), default=3, help="examples (default 3)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML values for the task's parameters")
    parser.add_argument("--lm-adapter", metavar="SPEC", required=True, help="the model to ask")
    parser.add_argument("--lm-adapter-arg", metavar="KEY=VALUE", action="append", type=key_value, default=[])
    parser.add_argument("--lm-judge", metavar="SPEC", help="the model that judges")
    parser.add_argument("--lm-judge-arg", metavar="KEY=VALUE", action="append", type=key_value, default=[])
    parser.add_argument("--lm-think-tags", metavar="OPEN,CLOSE", type=think_tags, default=THINK_TAGS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the examples; return 1 if a stage failed."""
    project = Project()
    file = project.find(options.task)
    configs: Sequence[Any] = ()
    if options.config is not None:
        from pytest_lmeval.formats.yaml.configs import read_configs

        configs = read_configs(options.config)
    show(["Checking configuration"])
    loaded = project.load(file, configs)
    if loaded.errors or not loaded.tasks:
        show([*(f"  {error.at(file.path)}" for error in loaded.errors), "Configuration: FAILED"])
        return 1
    show(["Configuration is valid."])
    given = dict(options.lm_adapter_arg)
    adapter = resolve_adapter(options.lm_adapter, project.registry, given, Path.cwd())
    judging = dict(options.lm_judge_arg)
    if judging and not options.lm_judge:
        raise UsageError("--lm-judge-arg needs --lm-judge SPEC, because it sets options of the judge's adapter")
    scrubber = scrubber_of([(options.lm_adapter, given), (options.lm_judge or "", judging)], Path.cwd())
    # A file may contain several tasks.
    tasks = [task for task in loaded.tasks if task.name == options.task] or loaded.tasks
    settings = RunSettings(batch_size=1, scrubber=scrubber, think_tags=options.lm_think_tags)
    judge = resolve_adapter(options.lm_judge, project.registry, judging, Path.cwd()) if options.lm_judge else None
    with DryRun(project.registry, adapter, judge, tasks, options.count, settings) as dry_run:
        failed = [_shown(dry_run, task, adapter_name(adapter), scrubber) for task in tasks]
    return int(any(failed))


def _shown(dry_run: DryRun, task: Any, adapter: str, scrubber: Scrubber) -> bool:
    if reason := dry_run.lacking.get(task.name):
        show([printable(f"REFUSED: {reason}", keep="")])
        return True
    units = dry_run.units[task.name]
    show([f"Task {printable(task.name, keep='')}: {len(units)} of {len(task.examples)} example(s), asking {adapter}"])
    results = []
    failed = False
    for number, unit in enumerate(units, 1):
        show([_rule("="), f"Example {number}/{len(units)}: {printable(unit.example.id, keep='')}"])
        result, stages = dry_run.example(unit)
        for stage in stages:
            # Remove secrets from prompts and answers.
            show(map(scrubber.scrub, _stage(stage)))
        results.append(result)
        failed = failed or result.is_error
    metrics = dry_run.metrics(task, results)
    show([_rule("="), *_stage(metrics)])
    return failed or metrics.failed


def _stage(stage: Shown) -> Iterator[str]:
    yield _rule("-")
    yield f"{stage.name}: FAILED" if stage.failed else stage.name
    yield ""
    yield from (f"  {line}" for line in _as_yaml(stage.value).splitlines())
    yield ""


def _as_yaml(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    import yaml  # type: ignore[import-untyped]  # no types are published with it

    text: str = yaml.safe_dump(_plain(value), allow_unicode=True, sort_keys=False, width=_WIDTH)
    return printable(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _rule(char: str) -> str:
    return char * _WIDTH


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage of an example, such as the solver's output, with the value to show."""

    name: str
    value: Any
    failed: bool = False


class DryRun:
    """A context manager that runs a few examples, one at a time, and closes the model and the judge."""

    def __init__(
        self, registry: Registry, adapter: Any, judge: Any, tasks: Sequence[Task], count: int, settings: RunSettings
    ) -> None:
        self._run = Run(settings, registry, lambda spec: resolve_adapter(spec, registry, {}, Path.cwd()))
        self._adapter = adapter
        self._judge = judge
        self.units = {task.name: [ExampleUnit(task, example) for example in task.examples[:count]] for task in tasks}
        self._stack = ExitStack()

    def __enter__(self) -> DryRun:
        units = [unit for of_task in self.units.values() for unit in of_task]
        self._stack.callback(self._run.close)
        plan = self._run.plan(units, self._adapter, self._judge)
        check_left(plan)
        self.lacking = plan.lacking
        self._sandbox = self._stack.enter_context(self._run.sandbox(plan))
        answers = self._run.ask(replace(plan, batches=()), self._adapter, judge=self._judge)
        self._engine: Any = _Witness(answers.engine)
        self._answers = answers.through(self._engine)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def example(self, unit: ExampleUnit) -> tuple[ExampleResult, list[Shown]]:
        """Query and score an example; return its result, and all stages up to the first failed stage."""
        engine = self._engine
        result = self._run.score(unit, self._answers, render, self._judge, self._sandbox)
        stages = [Shown("Dataset row", unit.task.record(unit.example))]
        if engine.requests:
            stages.append(Shown("Solver input", [_asked(request) for request in engine.requests]))
        if engine.responses is None:
            return result, [*stages, Shown("Solver", result.error, failed=True)]
        if engine.responses:
            stages.append(Shown("Solver output", [_answered(response) for response in engine.responses]))
        return result, [*stages, *_scores(result)]

    def metrics(self, task: Task, results: Sequence[ExampleResult]) -> Shown:
        """Return the metrics of ``results``, including the task's aggregations."""
        info = info_of(task, selected=len(results))
        found, failures = aggregate([info], results, lambda _: task)
        row = make_row(info, results, aggregates=found.get(task.name, {}))
        # Omit metrics without a value.
        known = {name: value for name, value in row.metrics.items() if value is not None}
        metrics: dict[str, Any] = {"score": row.score, **known}
        if problem := "; ".join(failures) or row.problem:
            return Shown("Metrics", {**metrics, "error": problem}, failed=True)
        more = {name: getattr(row, name) for name in ("classes", "confusion", "calibration", "notes")}
        return Shown("Metrics", {**metrics, **{name: value for name, value in more.items() if value}})


class _Witness:
    """An engine that keeps its last requests and responses; until an answer arrives, ``responses`` is None."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.requests: Sequence[Request] = ()
        self.responses: Sequence[Response] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def respond(self, key: Any, requests_of: RequestsOf) -> list[Response]:
        self.requests, self.responses = (), None

        def keeping(unit: Any) -> Sequence[Request]:
            self.requests = requests_of(unit)
            return self.requests

        responses = self._engine.respond(key, keeping)
        self.responses = responses
        return responses


def _asked(request: Request) -> Any:
    if isinstance(request, LogLikelihood):
        talk = {"messages": _turns(request.messages)} if request.messages else {}
        return {**talk, "context": request.context, "continuation": request.continuation}
    assert isinstance(request, Generate)
    asked = {"prompt": request.prompt} if isinstance(request.prompt, str) else {"messages": _turns(request.prompt)}
    choice = {"tool_choice": request.tool_choice} if request.tool_choice else {}
    return {**asked, **({"tools": [tool["name"] for tool in request.tools], **choice} if request.tools else {})}


def _turns(messages: Sequence[Message]) -> list[Mapping[str, object]]:
    return [{"role": message.role, "content": message.to_json()["content"]} for message in messages]


def _answered(response: Response) -> Any:
    if isinstance(response, LogProb):
        return {"log_probability": response.total, "greedy": response.greedy}
    assert isinstance(response, Completion)
    known = {
        name: getattr(response, name)
        for name in ("finish_reason", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "confidence")
    }
    thoughts = {"thoughts": response.thoughts} if response.thoughts else {}
    calls = [{"name": call.name, "arguments": call.values or call.arguments} for call in response.tool_calls]
    return {
        **thoughts,
        "text": response.text,
        **({"tool_calls": calls} if calls else {}),
        **{name: value for name, value in known.items() if value not in (None, "")},
    }


def _scores(result: ExampleResult) -> Iterator[Shown]:
    details = dict(result.details)
    for key, fields in details.pop("scorers", {}).items():
        judged = [entry for entry in details.get("judge", ()) if entry["scorer"] == key]
        yield Shown(f"Scorer {key}", {**fields, **({"judge": judged} if judged else {})})
    scorers = result.details.get("scorers", {})
    if others := [entry for entry in details.pop("judge", ()) if entry["scorer"] not in scorers]:
        yield Shown("Judge", others)
    if result.is_error:
        yield Shown("Scores", result.error, failed=True)
        return
    applies = {} if result.status == "measured" else {"threshold": result.threshold}
    score = {"status": result.status, "score": result.score, **applies}
    excluded = {"reason": result.error} if result.error else {}
    prediction: dict[str, Any] = {"prediction": result.predictions[0]} if result.predictions else {}
    if len(result.predictions) > 1:
        prediction = {"predictions": list(result.predictions)}
    yield Shown("Score", {**score, **excluded, **prediction, **details})
