"""One process's part of a run: ask about its examples, score the answers, return the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

from pytest_lmeval.adapters.resolve import adapter_name, as_judge, secrets_of
from pytest_lmeval.asking.ask import without_thoughts
from pytest_lmeval.asking.engine import Ahead, Engine, Hooks
from pytest_lmeval.asking.limits import Budget
from pytest_lmeval.asking.rounds import Conversation
from pytest_lmeval.errors import AdapterError, BudgetSpent, UsageError
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.records.answers import KnownAnswers, Underway, exchange_record
from pytest_lmeval.redaction import redact_options
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.needs import Needs, Programs, Refusals, check_answers, check_costs
from pytest_lmeval.run.resume import Asked, HeldResults
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, failed_result
from pytest_lmeval.scoring.judge import Judge, NamedJudges, known_answers
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.task import render as default_render
from pytest_lmeval.types import Example, ExampleResult, Exchange, Generate, Joined, Message, Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import Cache
    from pytest_lmeval.asking.policy import Policy
    from pytest_lmeval.run.early import Early

Render = Callable[[Example], Any]
_NOTHING_HELD = HeldResults()
# What in a result is text of a model, or of what it was asked; names and hashes tell results apart.
_WRITTEN = ("prompt", "targets", "outputs", "predictions", "thoughts", "exchanges", "metrics", "served_by")


class Unit(Protocol):
    """What is asked and scored at one turn: an example, with the task it is of."""

    task: Task
    example: Example

    def __hash__(self) -> int: ...


class Run:
    """Asks, scores and judges units, one at its turn and those that follow it ahead of theirs.

    In this order: ``prepare`` before anything is asked, ``open`` once the adapter is there, ``result`` for each unit,
    ``close``. ``make_adapter`` returns the adapter behind the name of a judge that a task asks for. ``held`` are the
    results of the run that this one completes. ``name`` is what the adapter is called until it is there. ``stopped``
    says why no further unit should be asked.
    """

    def __init__(
        self,
        settings: RunSettings,
        registry: Registry,
        make_adapter: Callable[[str], Any],
        held: HeldResults = _NOTHING_HELD,
        name: str = "",
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.refusals = Refusals(registry)
        self.programs = Programs(settings, self.refusals)
        self._early: Early | None = None
        self.engine: Engine | None = None
        self._on_wait: Callable[[Engine], None] | None = None
        self.adapter: Any = None
        self.stopped = ""
        # What used an example whose result had been reported.
        self.late: list[str] = []
        self._name = name
        self._make_adapter = make_adapter
        self._held = held
        self._judge: NamedJudges | None = None
        self._named_judges: dict[str, Any] = {}
        self._thresholds = Thresholds(registry, settings.thresholds, settings.default_thresholds)
        self._judgements: dict[tuple[int, int], ScoringRules] = {}
        self._prompts: dict[Unit, Prompt] = {}
        self.underway: Underway | None = None
        self.adapter_key = ""
        self.shared_budget: list[Budget] = []
        self.cache: Cache | None = None
        if settings.cache is not None:
            from pytest_lmeval.asking.caching import Cache

            self.cache = Cache(settings.cache, settings.think_tags_text, settings.scrubber)

    def prepare(
        self,
        units: Sequence[Unit],
        adapter: Any = None,
        judge: Any = None,
        has_own_judge: Callable[[Any], bool] = lambda unit: False,
    ) -> None:
        """Find out which units cannot be scored; raise UsageError for what is missing, and for a selection refused.

        ``adapter`` is None where every unit has one of its own, ``judge`` where the run has no judge; a unit may have
        one of its own.
        """
        if adapter is not None:
            self.adapter = adapter
            check_answers(units, adapter)
            if self.cache is not None:
                self.cache.of(adapter)
            self.refusals.look_at({unit.task.name: unit.task for unit in units}.values(), adapter)
            check = getattr(adapter, "check_selection", None)
            if callable(check):
                check([(unit.task.name, unit.example.id) for unit in units])
        needs = Needs.of(units, has_own_judge if judge is None else lambda unit: True)
        needs.check(self.registry)
        named = [self._named_judge(spec) for spec in needs.judges if spec]
        if self.settings.max_cost is not None:
            tasks = {unit.task.name: unit.task for unit in units}
            check_costs([each for each in (adapter, judge, *named) if each is not None], tasks.values())
        self.programs.prepare(units if needs.programs(self.registry) else (), trusted=self.is_trusted)

    def open(
        self,
        adapter: Any,
        units: Sequence[Unit],
        batches: Iterable[Sequence[Unit]],
        ahead: Ahead | None = None,
        on_wait: Callable[[Engine], None] | None = None,
    ) -> Engine:
        """Return the engine that answers ``units`` from ``adapter``.

        ``batches`` says which units are asked together. ``ahead`` returns the unit that will be wanted next.
        ``on_wait`` is called now and then while an answer is waited for.
        """
        self.adapter = adapter
        self._name = adapter_name(adapter)
        if type(adapter).__module__.startswith("pytest_lmeval."):
            # The ledger's header has its spec and options; its weights may be others.
            self.adapter_key = getattr(adapter, "fingerprint", "")[:16]
        else:
            from pytest_lmeval.adapters.identity import identity_of

            self.adapter_key = identity_of(adapter).key[:16]
        ready = {id(task): task.prepared(adapter) for task in {id(unit.task): unit.task for unit in units}.values()}
        for unit in units:
            unit.task = ready[id(unit.task)]
        # Runs that share a budget share that of the first.
        budget = self.shared_budget[0] if self.shared_budget else None
        self._on_wait = on_wait
        hooks = Hooks(self._recall if self.settings.reuses else None, self._converse, on_wait)
        engine = self.engine = self._engine(adapter, self.settings.policy(self._held.cost), budget, hooks)
        self.shared_budget[:] = [] if engine.budget is None else [engine.budget]
        alone = ahead is None or (self.settings.may_crash and not engine.streams)
        engine.plan(batches, ahead if ahead is not None and not alone else _nothing)
        return engine

    def judge(self, adapter: Any, engine: Engine) -> NamedJudges:
        """Return the run's judge: the one behind ``adapter`` if that is one, else those that tasks name."""
        if self._judge is None:
            known = known_answers(self._held.results.values())

            def judging(adapter: Any) -> Engine:
                return self._engine(as_judge(adapter), engine.policy, engine.budget, Hooks(on_wait=self._on_wait))

            def open_model(spec: str) -> Judge:
                return Judge(judging(self._named_judge(spec)), known)

            self._judge = Judge(judging(adapter), known, open_model) if adapter else NamedJudges(open_model)
        return self._judge

    def _engine(self, adapter: Any, policy: Policy, budget: Budget | None, hooks: Hooks) -> Engine:
        if hasattr(adapter, "think_tags"):
            adapter.think_tags = policy.think_tags
        return Engine(adapter, policy, budget, None if self.cache is None else self.cache.of(adapter), hooks)

    def result(self, unit: Unit, render: Render, *, engine: Engine, judge: Any, sandbox: Any) -> ExampleResult:
        """Return the result of a unit; what cannot be asked or scored has the status ``error`` or ``timeout``.

        ``judge`` is the adapter of the run's judge, false without one. Secrets that the run knows are hidden in it.
        """
        result = self.scrubbed(self._result(unit, render, engine, judge, sandbox))
        self.note_stops(engine)
        return result

    def note_stops(self, engine: Engine) -> None:
        """Take over why the engine, or that of a judge, asks nothing more."""
        stopped = engine.stopped or (self._judge.stopped if self._judge is not None else "")
        if stopped and not self.stopped:
            self.stopped = self.settings.scrubber.scrub(stopped)

    def _result(self, unit: Unit, render: Render, engine: Engine, judge: Any, sandbox: Any) -> ExampleResult:
        judgement = self.judgement(sandbox, self.judge(judge, engine))
        try:
            if refusal := self.refusals.reason(unit.task, unit.example):
                raise AdapterError(refusal)
            responses: Sequence[Response] = engine.respond(unit, lambda each: self.requests(each, render))
            score = self._score_of(unit, engine, judgement.tools)
        except (AdapterError, UsageError, BudgetSpent) as error:
            prompt = self._prompts.pop(unit, None) or default_render(unit.example)
            return failed_result(unit.task, unit.example, prompt, error, judgement)
        return evaluate(unit.task, unit.example, self._prompts.pop(unit), responses, judgement, score)

    def unscored(self, unit: Any, reason: str) -> ExampleResult:
        """Return the result of a unit that never got as far as being asked."""
        error = AdapterError(reason)
        prompt = default_render(unit.example)
        # What failed before the model was asked is a fault of the test, which no quarantine is for.
        judgement = replace(self.judgement(), quarantine=Quarantine(listed={}))
        return self.scrubbed(failed_result(unit.task, unit.example, prompt, error, judgement))

    def scrubbed(self, result: ExampleResult) -> ExampleResult:
        """Return a result with the secrets hidden that the run knows."""
        scrubber = self.settings.scrubber
        if not scrubber:
            return result
        texts = {name: scrubber.scrub_answer(getattr(result, name)) for name in _WRITTEN}
        return replace(result, error=scrubber.scrub(result.error), details=scrubber.scrub_all(result.details), **texts)

    def requests(self, unit: Unit, render: Render) -> Sequence[Request]:
        """Return what to ask about a unit, all repeats of it; nothing where it cannot be scored."""
        if self.refusals.reason(unit.task, unit.example):
            return ()
        prompt = self._prompts[unit] = _as_prompt(render(unit.example))
        requests = unit.task.requests(unit.example, prompt)
        repeats = self.settings.repeats
        if repeats == 1:
            return requests
        return [_repeated(request, number) for number in range(repeats) for request in requests]

    def _converse(self, unit: Unit, request: Request) -> Conversation | None:
        follow_up = unit.task.conversation(unit.example)
        if follow_up is None:
            return None
        known = self._known.of(unit.task.name, unit.example.id)
        return Conversation(request, follow_up, known, partial(self.note, unit.task.name, unit.example.id))

    @cached_property
    def _known(self) -> KnownAnswers:
        return self._held.known(self._name, self.adapter_key) if self.settings.reuses else KnownAnswers()

    def note(self, task: str, example: str, exchange: Exchange, judge: Judge | None = None) -> None:
        """Keep an answer of the model, or of ``judge``, until the result of its example is kept."""
        if self.underway is not None:
            record = self.settings.scrubber.scrub_answer(exchange_record(exchange))
            name, key = ("", self.adapter_key) if judge is None else (judge.name, judge.adapter_key)
            self.underway.note(task, example, {**record, **({"adapter_key": key} if key else {})}, name)

    def _recall(self, unit: Unit, requests: Sequence[Request]) -> Sequence[Response] | None:
        """Return the answers to the requests of a unit that the interrupted run has, if it has them."""
        repeats = self.settings.repeats
        asked = Asked(request_hash(requests[: len(requests) // repeats]), self._name, repeats, self.adapter_key)
        held = self._held.responses(unit.task.name, unit.example.id, asked)
        return None if held is None else self._read_again(held, requests)

    def _read_again(self, held: Sequence[Response], requests: Sequence[Request]) -> list[Response]:
        # A version that knew no thoughts may have recorded them as part of the text.
        tags = self.settings.think_tags
        taken = [without_thoughts(one, request, tags) for one, request in zip(held, cycle(requests), strict=False)]
        return [one for one in taken if not isinstance(one, AdapterError)]

    def forget(self, unit: Unit) -> None:
        """Let go of what was asked for a unit that nobody will take."""
        self._prompts.pop(unit, None)
        if self.engine is not None:
            self.engine.forget(unit)

    def judgement(self, sandbox: Any = None, judge: NamedJudges | None = None) -> ScoringRules:
        """Return what turns responses into results, made once for each sandbox and judge."""
        key = (id(sandbox), id(judge))
        if key not in self._judgements:
            gate = self.settings.gate
            self._judgements[key] = ScoringRules(
                self._thresholds,
                Tools(sandbox, judge),
                gate == "examples",
                self._name,
                self.settings.repeats,
                must_pass_binds=gate != "none",
                quarantine=self.settings.quarantine,
                adapter_key=self.adapter_key,
            )
        return self._judgements[key]

    def facts(self) -> dict[str, Any]:
        """Return what only a process that ran examples knows: the model, how it was read, the level of programs."""
        level = self.programs.level
        cache = {} if self.cache is None else {"cache": self.cache.facts()}
        tags = self.settings.think_tags_text
        late = {"late": self.late} if self.late else {}
        return {
            "model": self._model_facts(),
            "think_tags": tags,
            **({"sandbox": level} if level else {}),
            **cache,
            **late,
        }

    def close(self) -> None:
        """Stop asking, the judges too; what is under way is dropped."""
        if self._early is not None:
            self._early.close()
        if self._judge is not None:
            self._judge.close()
        if self.engine is not None:
            self.engine.close()
        if self.cache is not None:
            self.cache.store.close()
        if self.underway is not None:
            self.underway.close()

    @property
    def is_trusted(self) -> bool:
        """Whether the code that the adapter writes is ours."""
        return bool(getattr(self.adapter, "trusted", False))

    @property
    def is_exact(self) -> bool:
        """Whether the adapter says that it answers the same to the same, always."""
        return bool(getattr(self.adapter, "exact", False))

    def _named_judge(self, spec: str) -> Any:
        """Return the adapter behind the name of a judge that a task asks for, made once."""
        if spec not in self._named_judges:
            self._named_judges[spec] = self._make_adapter(spec)
            self.settings.scrubber.learn(secrets_of(self._named_judges[spec]))
        return self._named_judges[spec]

    def _score_of(self, unit: Unit, engine: Engine, tools: Tools) -> Callable[..., Any]:
        """Return what scores ``unit``: begun early where that helps, or its task's method."""
        if not self.programs.any and not getattr(tools.judge, "name", ""):
            return unit.task.score
        if self._early is None:
            from pytest_lmeval.run.early import Early

            self._early = Early(self)
        return self._early.look(engine, tools, unit)

    def _model_facts(self) -> dict[str, Any]:
        try:
            facts = redact_options(getattr(self.adapter, "manifest", None) or {})
            return {**self.settings.scrubber.scrub_all(facts), **({"exact": True} if self.is_exact else {})}
        except Exception as error:  # an adapter's own code must not cost the run its board
            return {"error": self.settings.scrubber.scrub(f"{type(error).__name__}: {error}")}


def _nothing() -> None:
    return None


def _as_prompt(rendered: Any) -> Prompt:
    """Return what a render function gave as text or messages; raise AdapterError for anything else."""
    if isinstance(rendered, str):
        return rendered
    if isinstance(rendered, Sequence) and rendered:
        messages = tuple(_message(entry) for entry in rendered)
        return Joined(messages) if isinstance(rendered, Joined) else messages
    raise AdapterError(f"lm_render returned {type(rendered).__name__}; expected text or a sequence of messages")


def _repeated(request: Request, number: int) -> Request:
    """Return ``request`` as the one for repeat ``number``; how probable a text is does not change with repeats."""
    return replace(request, repeat=number) if isinstance(request, Generate) else request


def _message(entry: Any) -> Message:
    if isinstance(entry, Message):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("role"), str) and isinstance(entry.get("content"), str):
        return Message(entry["role"], entry["content"])
    raise AdapterError(f"lm_render returned {entry!r} as a message; expected role and content, both text")
