"""Whom a run asks: its model, about each unit at its turn or ahead of it, and its judges; and what these share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.adapters.facts import adapter_name, is_ours, member, secrets_of
from pytest_lmeval.adapters.resolve import as_judge
from pytest_lmeval.asking.engine import Ahead, Engine, Hooks
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.redaction import Scrubber, redact_options
from pytest_lmeval.scoring.judge import Judge, Known, NamedJudges
from pytest_lmeval.types import Example, Exchange, Generate, Joined, Message, Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import Cache
    from pytest_lmeval.asking.hosting import HelperProcess
    from pytest_lmeval.asking.limits import Budget
    from pytest_lmeval.asking.rounds import Conversation
    from pytest_lmeval.run.plan import RunPlan, Unit
    from pytest_lmeval.run.resume import Recorded
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.task import Prompt, Task

Render = Callable[[Example], Any]
"""From an example to its prompt, text or messages."""
Note = Callable[[str, str, Exchange], None]
"""Takes the task and the id of an example with a request that it made and the answer."""
OnWait = Callable[[Engine], None]
Recalled = Callable[[Any, Sequence[Request]], Sequence[Response] | None]
"""From a unit and its requests to the answers that need not be asked for, None where it has not all of them."""
Converse = Callable[[Any, Request], "Conversation | None"]
"""From a unit and one of its requests to the conversation that this begins, None where it begins none."""


class Model(NamedTuple):
    """The adapter (None until it is made), its name, and a key that differs between adapters of one name."""

    adapter: Any = None
    name: str = ""
    key: str = ""


def model_of(adapter: Any) -> Model:
    """Return the model behind ``adapter``."""
    if is_ours(adapter):
        # The ledger's header has its spec and options; its weights may be others.
        return Model(adapter, adapter_name(adapter), (member(adapter, "fingerprint") or "")[:16])
    from pytest_lmeval.adapters.identity import identity_of

    return Model(adapter, adapter_name(adapter), identity_of(adapter).key[:16])


def model_facts(adapter: Any, scrubber: Scrubber) -> dict[str, Any]:
    """Return what ``adapter`` says of its model, without secrets."""
    try:
        known, exact = member(adapter, "manifest") or {}, member(adapter, "exact")
        # It says that it answers the same to the same, always.
        return {**scrubber.scrub_all(redact_options(known)), **({"exact": True} if exact else {})}
    except Exception as error:  # an adapter's own code must not cost the run its board
        return {"error": scrubber.scrub(f"{type(error).__name__}: {error}")}


class Engines:
    """The engines of one process's run, of its model and its judges: they share a policy, a budget and a cache.

    ``spent`` is what the run has cost before; runs that share a ``budget`` spend no more together than one may.
    ``on_wait`` is called with an engine now and then while one of its answers is waited for. ``start`` returns a helper
    process to ask in, as in :class:`~pytest_lmeval.asking.engine.Hooks`.
    """

    def __init__(
        self,
        settings: RunSettings,
        spent: float = 0.0,
        budget: Budget | None = None,
        on_wait: OnWait | None = None,
        start: Callable[[], HelperProcess] | None = None,
    ) -> None:
        self.policy = settings.policy(spent)
        self.budget = budget
        self._limit, self._spent_before = settings.max_cost, spent
        self._start = start
        self._may_crash = settings.may_crash
        self.on_wait = on_wait
        self._cache: Cache | None = None
        self._made: list[Any] = []
        if budget is None and self.policy.max_cost is not None:
            from pytest_lmeval.asking.limits import Budget

            self.budget = Budget(self.policy.max_cost)
        if settings.cache is not None:
            from pytest_lmeval.asking.caching import Cache

            self._cache = Cache(settings.cache, settings.think_tags_text, settings.scrubber)

    def check(self, adapter: Any) -> None:
        """Raise UsageError where the cache cannot tell what ``adapter`` is."""
        if self._cache is not None:
            self._cache.of(adapter)

    def make(self, adapter: Any, recall: Recalled | None = None, converse: Converse | None = None) -> Engine:
        """Return a new engine that asks ``adapter``."""
        cached = None if self._cache is None else self._cache.of(adapter)
        engine = Engine(adapter, self.policy, self.budget, cached, Hooks(recall, converse, self.on_wait, self._start))
        self._made.append(engine)
        return engine

    def of_plan(
        self,
        adapter: Any,
        batches: Iterable[Sequence[Hashable]],
        ahead: Ahead | None,
        recall: Recalled | None,
        converse: Converse,
    ) -> Engine:
        """Return a new engine that asks ``adapter`` about units in ``batches``, and those that ``ahead`` returns."""
        made = self.make(adapter, recall, converse)
        # A batch that kills its process is blamed on the example at its turn: no other goes with it.
        alone = self._may_crash and not made.streams
        made.plan(batches, _nothing if ahead is None or alone else ahead)
        return made

    def add(self, engine: Any, *_: Any) -> Any:
        """Return ``engine``, which a project has made, and close it with the others."""
        self._made.append(engine)
        return engine

    @property
    def stopped(self) -> str:
        """Why one of them asks nothing more; empty as long as all do."""
        for engine in self._made:
            if engine.stopped:
                return str(engine.stopped)
        return ""

    def cache_facts(self) -> dict[str, Any]:
        """Return what the manifest says of the cache; nothing without one."""
        return {} if self._cache is None else {"cache": self._cache.facts()}

    def cost_facts(self) -> dict[str, Any]:
        """Return what the manifest says of the limit on cost: that of the whole run, and what this process spent."""
        if self.budget is None:
            return {}
        return {"max_cost": {"limit": self._limit, "before": self._spent_before, "spent": self.budget.spent}}

    def close(self) -> None:
        """Stop asking; what is under way is dropped."""
        for part in (*reversed(self._made), self._cache and self._cache.store):
            if part is not None:
                part.close()


class Judges:
    """The judges of a run: the one that it was given, or those that tasks name, each adapter made once.

    ``known`` is what judges wrote in the run that is completed. ``user_adapter`` plays users, None where the judge
    does.
    """

    def __init__(self, engines: Engines, make_adapter: Callable[[str], Any], scrubber: Scrubber, known: Known) -> None:
        self._engines = engines
        self._make_adapter = make_adapter
        self._scrubber = scrubber
        self._known = known
        self._adapters: dict[str, Any] = {}
        self._judges: NamedJudges | None = None
        self.user_adapter: Any = None

    @cached_property
    def user(self) -> Judge | None:
        """The model that plays users; None where the judge does."""
        return None if self.user_adapter is None else self._judge(self.user_adapter)

    def player(self, adapter: Any) -> NamedJudges:
        """Return who plays users: the model for that, else the run's judge, behind ``adapter``."""
        return self.user or self.of(adapter)

    @property
    def made(self) -> list[Any]:
        """The adapters that were made for the names of judges."""
        return [*self._adapters.values()]

    def adapter(self, spec: str) -> Any:
        """Return the adapter behind the name of a judge that a task asks for."""
        if spec not in self._adapters:
            self._adapters[spec] = self._make_adapter(spec)
            self._scrubber.learn(secrets_of(self._adapters[spec]))
        return self._adapters[spec]

    def of(self, adapter: Any) -> NamedJudges:
        """Return the run's judge: the one behind ``adapter`` if that is one, else those that tasks name."""
        if self._judges is None:
            named = NamedJudges(lambda spec: self._judge(self.adapter(spec)))
            self._judges = self._judge(adapter, named.open_model) if adapter else named
        return self._judges

    def _judge(self, adapter: Any, open_model: Callable[[str], Judge] | None = None) -> Judge:
        return Judge(self._engines.make(as_judge(adapter)), self._known, open_model)


class ModelAnswers:
    """The answers of ``model`` to the units of ``plan``.

    ``connect`` returns the engine that asks, with what it is to know of the units. ``recorded`` are the answers of an
    earlier run; ``note`` is called with each answer that is a step to a response, and with those that wait to be
    scored. ``player`` returns who plays users.
    """

    player: Callable[[], Any]

    def __init__(
        self,
        plan: RunPlan,
        model: Model,
        repeats: int,
        connect: Callable[[Recalled | None, Converse], Engine],
        recorded: Recorded | None = None,
        note: Note | None = None,
    ) -> None:
        self.plan = plan
        self.model = model
        self._repeats = repeats
        self._recorded = recorded
        self.note = note
        self._asked: dict[Unit, tuple[Prompt, Sequence[Request]]] = {}
        self.engine = connect(None if recorded is None else recorded.responses, self._converse)

    def through(self, engine: Any) -> ModelAnswers:
        """Return these answers, asked through ``engine``: an object that a conftest put instead of the engine."""
        others = copy(self)
        others.engine = engine
        return others

    def task(self, unit: Unit) -> Task:
        """Return the task of a unit, as it is put to the model."""
        return self.plan.tasks.get(id(unit.task)) or unit.task

    def respond(self, unit: Unit, render: Render) -> list[Response]:
        """Return the responses to a unit; raise the error if there was no response."""
        if self.plan.lacking and (refusal := self.plan.refusal(unit)):
            raise AdapterError(refusal)
        return self.engine.respond(unit, partial(self._requests, render))

    def asked(self, unit: Unit) -> tuple[Prompt, Sequence[Request]] | None:
        """Return prompt and requests of a unit, those of one repeat, once; None where nothing was rendered."""
        return self._asked.pop(unit, None)

    def forget(self, unit: Unit) -> None:
        """Let go of what was asked for a unit that nobody will take."""
        self._asked.pop(unit, None)
        self.engine.forget(unit)

    def _requests(self, render: Render, unit: Unit) -> Sequence[Request]:
        """Return what to ask about a unit, all repeats of it; nothing where it cannot be scored."""
        if self.plan.lacking and self.plan.refusal(unit):
            return ()
        prompt = _as_prompt(render(unit.example))
        requests = self.task(unit).requests(unit.example, prompt)
        self._asked[unit] = prompt, requests
        repeats = unit.example.policy.repeats or self._repeats
        if repeats == 1:
            return requests
        return [_repeated(request, number) for number in range(repeats) for request in requests]

    def _converse(self, unit: Unit, request: Request) -> Conversation | None:
        follow_up = self.task(unit).conversation(unit.example)
        if follow_up is None:
            return None
        from pytest_lmeval.asking.rounds import Conversation

        recall = None if self._recorded is None else self._recorded.of(unit)
        note = _not_noted if self.note is None else partial(self.note, unit.task.name, unit.example.id)
        player = self.player() if hasattr(follow_up, "opening") else None
        return Conversation(request, follow_up, recall, note, player)


def _nothing() -> None:
    """Know nothing of what will be wanted."""


def _not_noted(_: Exchange) -> None:
    """Keep an answer nowhere but in the result."""


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
