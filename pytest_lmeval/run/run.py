"""One process's part of a run: plan it, ask about its examples, score the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.asking.engine import Ahead
from pytest_lmeval.errors import AdapterError, BudgetSpent, UsageError
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.records.answers import Journal
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.answers import (
    Engines,
    Judges,
    Model,
    ModelAnswers,
    OnWait,
    Render,
    model_facts,
    model_of,
)
from pytest_lmeval.run.plan import (
    RunPlan,
    Unit,
    check_costs,
    check_named,
    check_selection,
    lacking_without_model,
    needs_of,
    opened_sandbox,
    plan_run,
    put_to,
    task_name,
    tasks_of,
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

# What in a result is text of a model, or of what it was asked; names and hashes tell results apart.
_WRITTEN = ("prompt", "targets", "outputs", "predictions", "thoughts", "exchanges", "metrics", "served_by")


class Run:
    """Plans, asks and scores units: ``plan`` returns what ``ask`` takes, and ``ask`` what ``score`` takes.

    ``make_adapter`` returns the adapter behind the name of a judge that a task asks for. ``held`` are the results of
    the run that this one completes, ``journal`` keeps answers until their example has a result. ``engines`` ask, by
    default with the limits of ``settings``.
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
        # Known by its name alone until it is asked.
        self.model = Model(name=settings.adapter)
        # What used an example whose result had been reported.
        self.late: list[str] = []
        # Says which requests of applications' clients belonged to no running example.
        self.strays: Callable[[], Sequence[str]] = tuple
        # Of tasks that are not asked, as of the plan that is asked.
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
        """Return what is known of ``units`` before anything is asked; raise UsageError if the run cannot be.

        ``adapter`` is None where every unit has one of its own, ``judge`` where the run has no judge; a unit may have
        one of its own. Units of one group are asked together; those of the group None are not asked by the plan. A task
        that lacks something is refused alone; :func:`~pytest_lmeval.run.plan.check_left` raises if none is left.
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
            check_costs([adapter, judge, *judges.made, judges.user_adapter], tasks_of(units))
        plan = replace(plan, lacking=lacking)
        return plan if adapter is None else put_to(plan, adapter, facts)

    def sandbox(self, plan: RunPlan) -> Any:
        """Return the place where programs are run, a context manager."""
        sandbox, self._sandbox_level = opened_sandbox(plan, self.settings)
        return sandbox

    def ask(
        self, plan: RunPlan, adapter: Any, ahead: Ahead | None = None, engine: Any = None, judge: Any = None
    ) -> ModelAnswers:
        """Return the answers of ``adapter`` to the units of ``plan``.

        ``ahead`` returns the unit that will be wanted next. ``engine`` is what asks, where a project has one of its
        own. ``judge`` is the adapter of the run's judge, which plays users where nobody else does.
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
        self._answers.player = partial(self.judges.player, judge)
        return self._answers

    def score(
        self, unit: Unit, answers: ModelAnswers, render: Render, judge: Any = None, sandbox: Any = None, item: str = ""
    ) -> ExampleResult:
        """Return the result of a unit; what cannot be asked or scored has the status ``error`` or ``timeout``.

        ``judge`` is the adapter of the run's judge, false without one. Secrets that the run knows are hidden in it.
        ``item`` is the name of the unit's test item where that is known not to follow from the example's id.
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
        """Return the result of a unit that never got as far as being asked."""
        # What failed before the model was asked is a fault of the test, which no quarantine is for.
        rules = replace(self.rules(), quarantine=Quarantine(listed={}))
        prompt = default_render(unit.example)
        task = unit.task if self._answers is None else self._answers.task(unit)
        question = question_of(task, unit.example, prompt)
        failed = failed_result(task, unit.example, question, AdapterError(reason), rules)
        return scrubbed(failed, self.settings.scrubber)

    def rules(self, sandbox: Any = None, judge: Any = None) -> ScoringRules:
        """Return what turns responses into results, made once for each sandbox and adapter of a judge."""
        key = (id(sandbox), id(judge))
        if key not in self._rules:
            gate = self.settings.gate
            # Without a sandbox nothing is scored, and no judge asked.
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
        """Why no further unit should be asked, if there is a reason: the model's, or that of a judge."""
        if not self._stopped and (reason := self.engines.stopped):
            self.stop(reason)
        return self._stopped

    def stop(self, reason: str) -> None:
        """Ask no further unit, for ``reason``."""
        self._stopped = self.settings.scrubber.scrub(reason)

    def facts(self) -> dict[str, Any]:
        """Return what only a process that ran examples knows: the model, how it was read, the level of programs."""
        late = [*self.late, *self.strays()]
        return {
            "model": model_facts(self.model.adapter, self.settings.scrubber),
            "think_tags": self.settings.think_tags_text,
            **({"sandbox": self._sandbox_level} if self._sandbox_level else {}),
            **(self.engines.cache_facts() if self.settings.cache is not None else {}),
            **self.engines.cost_facts(),
            **({"lacking": [*self.lacking.values()]} if self.lacking else {}),
            **({"late": late} if late else {}),
        }

    def close(self) -> None:
        """Stop asking, the judges too; what is under way is dropped, what has arrived is noted."""
        if self._answers is not None and self._answers.engine.jobs:
            self._keep()
        for part in (self._early, self._keeper, self.engines, self.journal):
            if part is not None:
                part.close()

    def _early_score(self, unit: Unit, answers: ModelAnswers, tools: Tools) -> Callable[..., Any]:
        """Return what scores ``unit``: what was begun early, or its task's method."""
        if self._early is None:
            from pytest_lmeval.run.early import Early

            self._early = Early(self.settings.repeats)
            self._keep()
        return self._early.look(answers, tools, unit)

    def _keep(self, on_wait: OnWait | None = None, engine: Any = None) -> None:
        """Note answers from now on that wait for their turn: something takes its time."""
        if on_wait is not None:
            on_wait(engine)
        answers = self._answers
        if self._keeper is None and answers is not None and answers.note is not None:
            from pytest_lmeval.run.keeping import Keeper

            self._keeper = Keeper(answers.engine.arrived, answers.note)


def scrubbed(result: ExampleResult, scrubber: Scrubber) -> ExampleResult:
    """Return a result with the secrets hidden that ``scrubber`` knows."""
    if not scrubber:
        return result
    texts = {name: scrubber.scrub_answer(getattr(result, name)) for name in _WRITTEN}
    return replace(result, error=scrubber.scrub(result.error), details=scrubber.scrub_all(result.details), **texts)
