"""One process's part of a run: plan it, ask about its examples, score the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.resolve import adapter_name, as_judge, secrets_of
from pytest_lmeval.asking.engine import Ahead, Engine, Hooks
from pytest_lmeval.errors import AdapterError, BudgetSpent, UsageError
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.records.answers import Journal, exchange_record
from pytest_lmeval.redaction import Scrubber, redact_options
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.answers import Model, ModelAnswers, Render
from pytest_lmeval.run.plan import (
    RunPlan,
    Unit,
    check_costs,
    check_selection,
    opened_sandbox,
    plan_run,
    requirements_of,
    task_name,
    tasks_of,
)
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, failed_result, question_of
from pytest_lmeval.scoring.judge import Judge, NamedJudges, known_answers
from pytest_lmeval.task import Tools
from pytest_lmeval.task import render as default_render
from pytest_lmeval.types import ExampleResult, Exchange

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import Cache
    from pytest_lmeval.asking.limits import Budget
    from pytest_lmeval.run.early import Early
    from pytest_lmeval.run.resume import HeldResults

# What in a result is text of a model, or of what it was asked; names and hashes tell results apart.
_WRITTEN = ("prompt", "targets", "outputs", "predictions", "thoughts", "exchanges", "metrics", "served_by")


class Run:
    """Plans, asks and scores units: ``plan`` returns what ``ask`` takes, and ``ask`` what ``score`` takes.

    ``make_adapter`` returns the adapter behind the name of a judge that a task asks for. ``held`` are the results of
    the run that this one completes, ``journal`` keeps answers until their example has a result.
    Runs that share a ``budget`` spend no more together than one may.
    """

    def __init__(
        self,
        settings: RunSettings,
        registry: Registry,
        make_adapter: Callable[[str], Any],
        held: HeldResults | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.settings = settings
        self.policy = settings.policy(0.0 if held is None else held.cost)
        self.budget = budget
        # Known by its name alone until it is asked.
        self.model = Model(name=settings.adapter)
        # What used an example whose result had been reported.
        self.late: list[str] = []
        self._registry = registry
        self._make_adapter = make_adapter
        self._held = held
        self._journal = journal
        self._stopped = ""
        self._sandbox_level = ""
        self._engines: list[Any] = []
        self._on_wait: Callable[[Engine], None] | None = None
        self._judges: NamedJudges | None = None
        self._named_judges: dict[str, Any] = {}
        self._thresholds = Thresholds(registry, settings.thresholds, settings.default_thresholds)
        self._answers: ModelAnswers | None = None
        self._rules: dict[tuple[int, int], ScoringRules] = {}
        self._early: Early | None = None
        self._cache: Cache | None = None
        if budget is None and self.policy.max_cost is not None:
            from pytest_lmeval.asking.limits import Budget

            self.budget = Budget(self.policy.max_cost)
        if settings.cache is not None:
            from pytest_lmeval.asking.caching import Cache

            self._cache = Cache(settings.cache, settings.think_tags_text, settings.scrubber)

    def plan(
        self,
        units: Sequence[Unit],
        adapter: Any = None,
        judge: Any = None,
        has_own_judge: Callable[[Any], bool] = lambda unit: False,
        group_of: Callable[[Any], Any] = task_name,
    ) -> RunPlan:
        """Return what is known of ``units`` before anything is asked; raise UsageError for what is missing.

        ``adapter`` is None where every unit has one of its own, ``judge`` where the run has no judge; a unit may have
        one of its own. Units of one group are asked together; those of the group None are not asked by the plan.
        """
        if adapter is not None:
            if self._cache is not None:
                self._cache.of(adapter)
            check_selection(units, adapter)
        needed = requirements_of(units, has_own_judge if judge is None else lambda unit: True, self._registry)
        named = [self._named_judge(spec) for spec in needed.judges if spec]
        if self.settings.max_cost is not None:
            check_costs([adapter, judge, *named], tasks_of(units))
        return plan_run(units, needed, self.settings, self._registry, adapter, group_of)

    def sandbox(self, plan: RunPlan) -> Any:
        """Return the place where programs are run, a context manager."""
        sandbox, self._sandbox_level = opened_sandbox(plan, self.settings)
        return sandbox

    def ask(
        self,
        plan: RunPlan,
        adapter: Any,
        ahead: Ahead | None = None,
        on_wait: Callable[[Engine], None] | None = None,
        engine: Any = None,
    ) -> ModelAnswers:
        """Return the answers of ``adapter`` to the units of ``plan``.

        ``ahead`` returns the unit that will be wanted next; ``on_wait`` is called now and then while an answer is
        waited for. ``engine`` is what asks, where a project has one of its own.
        """
        self.model = _model(adapter)
        self._on_wait = on_wait

        def connect(hooks: Hooks) -> Any:
            if engine is not None:
                self._engines.append(engine)
                return engine
            made = self._engine(adapter, replace(hooks, on_wait=on_wait))
            # A batch that kills its process is blamed on the example at its turn: no other goes with it.
            alone = self.settings.may_crash and not made.streams
            made.plan(plan.batches, _nothing if ahead is None or alone else ahead)
            return made

        recorded = None
        if self._held is not None and self.settings.reuses:
            from pytest_lmeval.run.resume import Recorded

            recorded = Recorded(self._held, self.model, self.settings.repeats, self.settings.think_tags)
        self._answers = ModelAnswers(plan, self.model, self.settings.repeats, connect, recorded, self.note)
        return self._answers

    def judges(self, adapter: Any) -> NamedJudges:
        """Return the run's judge: the one behind ``adapter`` if that is one, else those that tasks name."""
        if self._judges is None:
            known = {} if self._held is None else known_answers(self._held.results.values())

            def judge(adapter: Any, open_model: Callable[[str], Judge] | None = None) -> Judge:
                return Judge(self._engine(as_judge(adapter), Hooks(on_wait=self._on_wait)), known, open_model)

            def open_model(spec: str) -> Judge:
                return judge(self._named_judge(spec))

            self._judges = judge(adapter, open_model) if adapter else NamedJudges(open_model)
        return self._judges

    def score(
        self, unit: Unit, answers: ModelAnswers, render: Render, judge: Any = None, sandbox: Any = None
    ) -> ExampleResult:
        """Return the result of a unit; what cannot be asked or scored has the status ``error`` or ``timeout``.

        ``judge`` is the adapter of the run's judge, false without one. Secrets that the run knows are hidden in it.
        """
        rules = self.rules(sandbox, self.judges(judge))
        task, example = answers.task(unit), unit.example
        try:
            responses = answers.respond(unit, render)
            score = self._early_score(unit, answers, rules.tools)
        except (AdapterError, UsageError, BudgetSpent) as error:
            shown = answers.asked(unit) or (default_render(example), None)
            return self.scrubbed(failed_result(task, example, question_of(task, example, *shown), error, rules))
        asked = answers.asked(unit)
        assert asked is not None
        question = question_of(task, example, *asked)
        return self.scrubbed(evaluate(task, example, question, responses, rules, score))

    def unscored(self, unit: Any, reason: str) -> ExampleResult:
        """Return the result of a unit that never got as far as being asked."""
        # What failed before the model was asked is a fault of the test, which no quarantine is for.
        rules = replace(self.rules(), quarantine=Quarantine(listed={}))
        prompt = default_render(unit.example)
        task = unit.task if self._answers is None else self._answers.task(unit)
        question = question_of(task, unit.example, prompt)
        return self.scrubbed(failed_result(task, unit.example, question, AdapterError(reason), rules))

    def scrubbed(self, result: ExampleResult) -> ExampleResult:
        """Return a result with the secrets hidden that the run knows."""
        scrubber = self.settings.scrubber
        if not scrubber:
            return result
        texts = {name: scrubber.scrub_answer(getattr(result, name)) for name in _WRITTEN}
        return replace(result, error=scrubber.scrub(result.error), details=scrubber.scrub_all(result.details), **texts)

    def rules(self, sandbox: Any = None, judges: NamedJudges | None = None) -> ScoringRules:
        """Return what turns responses into results, made once for each sandbox and judge."""
        key = (id(sandbox), id(judges))
        if key not in self._rules:
            gate = self.settings.gate
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

    def note(self, task: str, example: str, exchange: Exchange, judge: Judge | None = None) -> None:
        """Keep an answer of the model, or of ``judge``, until the result of its example is kept."""
        if self._journal is None:
            return
        record = self.settings.scrubber.scrub_answer(exchange_record(exchange))
        name, key = ("", self.model.key) if judge is None else (judge.name, judge.adapter_key)
        self._journal.note(task, example, {**record, **({"adapter_key": key} if key else {})}, name)

    @property
    def stopped(self) -> str:
        """Why no further unit should be asked, if there is a reason: the model's, or that of a judge."""
        if not self._stopped:
            for engine in self._engines:
                if engine.stopped:
                    self.stop(engine.stopped)
                    break
        return self._stopped

    def stop(self, reason: str) -> None:
        """Ask no further unit, for ``reason``."""
        self._stopped = self.settings.scrubber.scrub(reason)

    def facts(self) -> dict[str, Any]:
        """Return what only a process that ran examples knows: the model, how it was read, the level of programs."""
        found = {
            "sandbox": self._sandbox_level,
            "cache": {} if self._cache is None else self._cache.facts(),
            "late": self.late,
        }
        return {
            "model": _model_facts(self.model.adapter, self.settings.scrubber),
            "think_tags": self.settings.think_tags_text,
            **{name: value for name, value in found.items() if value},
        }

    def close(self) -> None:
        """Stop asking, the judges too; what is under way is dropped."""
        for part in (self._early, *reversed(self._engines), self._cache and self._cache.store, self._journal):
            if part is not None:
                part.close()

    def _engine(self, adapter: Any, hooks: Hooks) -> Engine:
        if hasattr(adapter, "think_tags"):
            adapter.think_tags = self.policy.think_tags
        cached = None if self._cache is None else self._cache.of(adapter)
        engine = Engine(adapter, self.policy, self.budget, cached, hooks)
        self._engines.append(engine)
        return engine

    def _named_judge(self, spec: str) -> Any:
        """Return the adapter behind the name of a judge that a task asks for, made once."""
        if spec not in self._named_judges:
            self._named_judges[spec] = self._make_adapter(spec)
            self.settings.scrubber.learn(secrets_of(self._named_judges[spec]))
        return self._named_judges[spec]

    def _early_score(self, unit: Unit, answers: ModelAnswers, tools: Tools) -> Callable[..., Any] | None:
        """Return what scores ``unit`` where that is begun early, None where its task's method does."""
        if not answers.plan.runs_programs and not getattr(tools.judge, "name", ""):
            return None
        if self._early is None:
            from pytest_lmeval.run.early import Early

            self._early = Early(self.settings.repeats)
        return self._early.look(answers, tools, unit)


def _nothing() -> None:
    return None


def _model(adapter: Any) -> Model:
    if type(adapter).__module__.startswith("pytest_lmeval."):
        # The ledger's header has its spec and options; its weights may be others.
        return Model(adapter, adapter_name(adapter), getattr(adapter, "fingerprint", "")[:16])
    from pytest_lmeval.adapters.identity import identity_of

    return Model(adapter, adapter_name(adapter), identity_of(adapter).key[:16])


def _model_facts(adapter: Any, scrubber: Scrubber) -> dict[str, Any]:
    try:
        facts = redact_options(getattr(adapter, "manifest", None) or {})
        # It says that it answers the same to the same, always.
        exact = {"exact": True} if getattr(adapter, "exact", False) else {}
        return {**scrubber.scrub_all(facts), **exact}
    except Exception as error:  # an adapter's own code must not cost the run its board
        return {"error": scrubber.scrub(f"{type(error).__name__}: {error}")}
