"""Run one process's part of a run: plan, send requests and score answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.asking.engine import Ahead
from pytest_lmeval.errors import AdapterError, BudgetSpent, UsageError
from pytest_lmeval.leaderboard.board import SERVICE, UNPRICED
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.records.answers import Journal
from pytest_lmeval.records.service import Outside
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.answers import Engines, Judges, Model, ModelAnswers, OnWait, Render, model_facts, model_of
from pytest_lmeval.run.plan import (
    RunPlan,
    Unit,
    called,
    check_costs,
    check_named,
    check_selection,
    lacking_without_model,
    needs_of,
    opened_sandbox,
    plan_run,
    put_to,
    task_name,
)
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, failed_result, question_of
from pytest_lmeval.scoring.judge import known_answers
from pytest_lmeval.task import Tools
from pytest_lmeval.task import render as default_render
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.run.early import Early
    from pytest_lmeval.run.keeping import Keeper
    from pytest_lmeval.run.resume import HeldResults

# The fields of a result with text from models or requests; names and hashes must stay unchanged.
_WRITTEN = (
    *("prompt", "messages", "targets", "outputs", "predictions", "thoughts", "exchanges", "metrics", "served_by"),
)


class Run:
    """Plans, queries and scores units: pass the result of ``plan`` to ``ask``, and the result of ``ask`` to ``score``.

    ``make_adapter`` returns the adapter for the spec of a judge that a task names. ``held`` holds the resumed run's
    results. ``journal`` stores answers until their example has a result. ``engines`` creates the engines that send
    requests; by default, they have the limits in ``settings``.
    """

    def __init__(
        self,
        settings: RunSettings,
        registry: Registry,
        make_adapter: Callable[[str], Any],
        held: HeldResults | None = None,
        journal: Journal | None = None,
        engines: Engines | None = None,
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.engines = engines = engines or Engines(settings)
        known = {} if held is None else known_answers(held.results.values())
        self.judges = Judges(engines, make_adapter, settings.scrubber, known)
        # Until the first request, only the model's name is known.
        self.model = Model(name=settings.adapter)
        # Messages about uses of an example after its result was reported.
        self.late: list[str] = []
        # Returns messages about application requests that belong to no running example.
        self.strays: Callable[[], Sequence[str]] = tuple
        self.outside: Callable[[], Outside] = Outside
        self.lacking: Mapping[str, str] = {}
        self._registry = registry
        self._held = held
        self._stopped = ""
        self._sandbox_level = ""
        self._thresholds = Thresholds(registry, settings.thresholds, settings.default_thresholds)
        self._answers: ModelAnswers | None = None
        self._rules: dict[tuple[int, int], ScoringRules] = {}
        self._early: Early | None = None
        self._keeper: Keeper | None = None
        if journal is not None:
            engines.on_wait = partial(self._keep, engines.on_wait)

    def plan(
        self,
        units: Sequence[Unit],
        adapter: Any = None,
        judge: Any = None,
        has_own_judge: Callable[[Any], bool] = lambda unit: False,
        group_of: Callable[[Any], Any] = task_name,
    ) -> RunPlan:
        """Plan a run of ``units``; raise UsageError if the run is impossible.

        ``adapter`` is None if each unit has its own adapter. ``judge`` is None if the run has no judge, but a unit may
        have its own judge. Batches never mix units of different groups, and contain no unit whose group is None. The
        plan refuses only tasks with unmet needs; :func:`~pytest_lmeval.run.plan.check_left` raises UsageError if no
        task is left.
        """
        facts = AdapterFacts.of(adapter)
        if adapter is not None:
            if self.settings.cache is not None:
                self.engines.check(adapter)
            check_selection(units, adapter, facts)
        needed = needs_of(units, self._registry, has_own_judge if judge is None else lambda unit: True)
        plan = plan_run(units, needed, self.settings, self._registry, facts, group_of)
        judges, user = self.judges, judge or self.judges.user_adapter
        check_named([judge, judges.user_adapter])
        lacking = lacking_without_model(
            needed, judges.adapter, lambda unit: bool(user) or has_own_judge(unit), plan.no_programs
        )
        if self.settings.max_cost is not None:
            check_costs(
                [adapter, judge, *judges.made, judges.user_adapter], [each.unit.task for each in needed.values()]
            )
        if plan.media:
            from pytest_lmeval.run.media import lacking_of_judges

            for task, reason in lacking_of_judges(needed, judge, judges.adapter):
                lacking.setdefault(task.name, f"{called(task)}: {reason}")
        plan = replace(plan, lacking=lacking)
        return plan if adapter is None else put_to(plan, adapter, facts)

    def sandbox(self, plan: RunPlan) -> Any:
        """Return the sandbox for programs as a context manager."""
        sandbox, self._sandbox_level = opened_sandbox(plan, self.settings)
        return sandbox

    def ask(
        self, plan: RunPlan, adapter: Any, ahead: Ahead | None = None, engine: Any = None, judge: Any = None
    ) -> ModelAnswers:
        """Return an object that gets ``adapter``'s answers to the units of ``plan``.

        ``ahead`` returns the next unit to query. ``engine`` is the project's own engine, or None. ``judge`` is the
        adapter of the run's judge, which simulates users if no other model simulates them.
        """
        self.model = model = model_of(adapter)
        if plan.adapter is not adapter:
            plan = put_to(plan, adapter, AdapterFacts.of(adapter))
        self.lacking = plan.lacking
        recorded = None
        if self._held is not None and self.settings.reuses:
            from pytest_lmeval.run.resume import Recorded

            recorded = Recorded(self._held, model, self.settings.repeats, self.settings.think_tags)
        note = None if self.journal is None else partial(self.journal.add, key=model.key)
        connect = partial(self.engines.of_plan, adapter, plan.batches, ahead)
        if engine is not None:
            connect = partial(self.engines.add, engine)
        self._answers = ModelAnswers(plan, model, self.settings.repeats, connect, recorded, note)
        self._answers.simulated_user = partial(self.judges.simulated_user, judge)
        return self._answers

    def score(
        self, unit: Unit, answers: ModelAnswers, render: Render, judge: Any = None, sandbox: Any = None, item: str = ""
    ) -> ExampleResult:
        """Score a unit and return its result without secrets; if a request or scoring fails, the result has no score.

        ``judge`` is the adapter of the run's judge, or None. ``item`` is the name of the test item, or "" if the name
        follows from the example's id.
        """
        rules = self.rules(sandbox, judge)
        task, example = answers.task(unit), unit.example
        try:
            responses = answers.respond(unit, render)
            is_judged = bool(getattr(rules.tools.judge, "name", ""))
            may_be_early = is_judged or answers.plan.runs_programs
            score = self._early_score(unit, answers, rules.tools) if may_be_early else None
        except (AdapterError, UsageError, BudgetSpent) as error:
            shown = answers.asked(unit) or (default_render(example), None)
            failed = failed_result(task, example, question_of(task, example, shown[0], shown[1], item), error, rules)
            return scrubbed(failed, self.settings.scrubber)
        asked = answers.asked(unit)
        assert asked is not None
        question = question_of(task, example, *asked, item=item)
        return scrubbed(evaluate(task, example, question, responses, rules, score), self.settings.scrubber)

    def unscored(self, unit: Any, reason: str) -> ExampleResult:
        """Return a result with the error ``reason`` for a unit that got no requests."""
        # If an example fails before its request, the test is at fault, and quarantine does not excuse it.
        rules = replace(self.rules(), quarantine=Quarantine(listed={}))
        prompt = default_render(unit.example)
        task = unit.task if self._answers is None else self._answers.task(unit)
        question = question_of(task, unit.example, prompt)
        failed = failed_result(task, unit.example, question, AdapterError(reason), rules)
        return scrubbed(failed, self.settings.scrubber)

    def rules(self, sandbox: Any = None, judge: Any = None) -> ScoringRules:
        """Return the scoring rules; cache them by sandbox and judge."""
        key = (id(sandbox), id(judge))
        if key not in self._rules:
            gate = self.settings.gate
            # Without a sandbox, the run scores nothing and needs no judges.
            judges = None if sandbox is None else self.judges.of(judge)
            self._rules[key] = ScoringRules(
                self._thresholds,
                Tools(sandbox, judges),
                gate == "examples",
                self.model.name,
                self.settings.repeats,
                must_pass_binds=gate != "none",
                quarantine=self.settings.quarantine,
                adapter_key=self.model.key,
            )
        return self._rules[key]

    @property
    def stopped(self) -> str:
        """The reason why the run stopped sending requests, or ""."""
        if not self._stopped and (reason := self.engines.stopped):
            self.stop(reason)
        return self._stopped

    def stop(self, reason: str) -> None:
        """Stop sending requests for further units, and record the ``reason``."""
        self._stopped = self.settings.scrubber.scrub(reason)

    def facts(self) -> dict[str, Any]:
        """Return this process's facts for the manifest, such as the model, think tags, sandbox level and costs."""
        late, outside = [*self.late, *self.strays()], self.outside()
        return {
            "model": model_facts(self.model.adapter, self.settings.scrubber),
            "think_tags": self.settings.think_tags_text,
            **({"sandbox": self._sandbox_level} if self._sandbox_level else {}),
            **(self.engines.cache_facts() if self.settings.cache is not None else {}),
            **self.engines.cost_facts(),
            **({"lacking": [*self.lacking.values()]} if self.lacking else {}),
            **({"late": late} if late else {}),
            **({UNPRICED: unpriced} if (unpriced := self.judges.unpriced) else {}),
            **({SERVICE: self.settings.scrubber.scrub_all(outside.to_json())} if outside else {}),
        }

    def close(self) -> None:
        """Stop sending requests, including to judges; drop open requests, and record the answers that have arrived."""
        if self._answers is not None and self._answers.engine.jobs:
            self._keep()
        for part in (self._early, self._keeper, self.engines, self.journal):
            if part is not None:
                part.close()

    def _early_score(self, unit: Unit, answers: ModelAnswers, tools: Tools) -> Callable[..., Any]:
        """Return a function that scores ``unit``, or returns the scores that early scoring computed."""
        if self._early is None:
            from pytest_lmeval.run.early import Early

            self._early = Early(self.settings.repeats)
            self._keep()
        return self._early.look(answers, tools, unit)

    def _keep(self, on_wait: OnWait | None = None, engine: Any = None) -> None:
        """Call ``on_wait``, and start recording answers that wait for scoring."""
        if on_wait is not None:
            on_wait(engine)
        answers = self._answers
        if self._keeper is None and answers is not None and answers.note is not None:
            from pytest_lmeval.run.keeping import Keeper

            self._keeper = Keeper(answers.engine.arrived, answers.note)


def scrubbed(result: ExampleResult, scrubber: Scrubber) -> ExampleResult:
    """Return a result without the secrets known to ``scrubber``."""
    if not scrubber:
        return result
    texts = {name: scrubber.scrub_answer(getattr(result, name)) for name in _WRITTEN}
    return replace(result, error=scrubber.scrub(result.error), details=scrubber.scrub_all(result.details), **texts)
