"""Query a run's model and judges through engines that share limits and a cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name, is_ours, member, secrets_of
from pytest_lmeval.adapters.resolve import as_judge
from pytest_lmeval.asking.engine import Ahead, Arrived, Engine, Hooks
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
"""Renders an example's prompt as text or messages."""
Note = Callable[[str, str, Exchange], None]
"""Records a request and its answer for an example, identified by task and id."""
OnWait = Callable[[Engine], None]
Keep = Callable[[Sequence[Arrived]], bool]
SLOW_MS = 100
"""Record an answer as it arrives if the model took at least this long; a faster answer is cheap to request again."""
Recalled = Callable[[Any, Sequence[Request]], Sequence[Response] | None]
"""Returns the recorded answers to a unit's requests, or None if an answer is missing."""
Converse = Callable[[Any, Request], "Conversation | None"]
"""Returns the conversation that starts with a unit's request, or None."""


class Model(NamedTuple):
    """An adapter (None until it is created), its name, and a key that distinguishes adapters with the same name."""

    adapter: Any = None
    name: str = ""
    key: str = ""


def model_of(adapter: Any) -> Model:
    """Return ``adapter`` with its name and key."""
    if is_ours(adapter):
        # The ledger's header has the adapter's spec and options, so the key needs only the fingerprint of its weights.
        return Model(adapter, adapter_name(adapter), (member(adapter, "fingerprint") or "")[:16])
    from pytest_lmeval.adapters.identity import identity_of

    return Model(adapter, adapter_name(adapter), identity_of(adapter).key[:16])


def model_facts(adapter: Any, scrubber: Scrubber) -> dict[str, Any]:
    """Return the manifest entry of ``adapter``, without secrets."""
    try:
        known, exact = member(adapter, "manifest") or {}, member(adapter, "exact")
        return {**scrubber.scrub_all(redact_options(known)), **({"exact": True} if exact else {})}
    except Exception as error:  # an error in the adapter's code must not stop the run from writing its leaderboard
        return {"error": scrubber.scrub(f"{type(error).__name__}: {error}")}


class Engines:
    """Creates one process's engines for a run's model and judges, which share a policy, a budget and a cache.

    ``spent`` is the run's cost so far. Runs with the same ``budget`` share its limit. While the run waits for an
    answer, it regularly calls ``on_wait`` with the engine. ``start`` returns a helper process, as in
    :class:`~pytest_lmeval.asking.engine.Hooks`.
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
        """Raise UsageError if the cache cannot identify ``adapter``."""
        if self._cache is not None:
            self._cache.of(adapter)

    def make(
        self,
        adapter: Any,
        recall: Recalled | None = None,
        converse: Converse | None = None,
        keep: Keep | None = None,
    ) -> Engine:
        """Return a new engine that queries ``adapter``."""
        cached = None if self._cache is None else self._cache.of(adapter)
        hooks = Hooks(recall, converse, self.on_wait, self._start, keep)
        engine = Engine(adapter, self.policy, self.budget, cached, hooks)
        self._made.append(engine)
        return engine

    def of_plan(
        self,
        adapter: Any,
        batches: Iterable[Sequence[Hashable]],
        ahead: Ahead | None,
        recall: Recalled | None,
        hooks: tuple[Converse, Keep | None],
    ) -> Engine:
        """Return a new engine that queries ``adapter`` about the units in ``batches`` and from ``ahead``."""
        made = self.make(adapter, recall, *hooks)
        # If a batch kills its process, the current example is blamed, so do not request other units ahead of time.
        alone = self._may_crash and not made.streams
        made.plan(batches, (lambda: None) if ahead is None or alone else ahead)
        return made

    def add(self, engine: Any, *_: Any) -> Any:
        """Register a project's own ``engine``, so that ``close`` also closes it, and return it."""
        self._made.append(engine)
        return engine

    @property
    def stopped(self) -> str:
        """The reason why an engine has stopped, or "" if no engine has stopped."""
        return next((str(engine.stopped) for engine in self._made if engine.stopped), "")

    def cache_facts(self) -> dict[str, Any]:
        """Return the cache's manifest entry, or an empty dict without a cache."""
        return {} if self._cache is None else {"cache": self._cache.facts()}

    def cost_facts(self) -> dict[str, Any]:
        """Return the manifest entry for costs: the run's limit, its earlier costs, and this process's costs."""
        if self.budget is None:
            return {}
        return {"max_cost": {"limit": self._limit, "before": self._spent_before, "spent": self.budget.spent}}

    def close(self) -> None:
        """Stop sending, drop open requests, and close the cache."""
        for part in (*reversed(self._made), self._cache and self._cache.store):
            if part is not None:
                part.close()


class Judges:
    """A run's judge and the judges that tasks name; each adapter is created once.

    ``known`` holds the judges' replies from the resumed run. ``user_adapter`` simulates users; if it is None, the judge
    simulates them.
    """

    def __init__(self, engines: Engines, make_adapter: Callable[[str], Any], scrubber: Scrubber, known: Known) -> None:
        self._engines = engines
        self._make_adapter = make_adapter
        self._scrubber = scrubber
        self._known = known
        self._adapters: dict[str, Any] = {}
        self._queried: list[Any] = []
        self._judges: NamedJudges | None = None
        self.user_adapter: Any = None

    @cached_property
    def user(self) -> Judge | None:
        """The model that simulates users, or None if the judge simulates them."""
        return None if self.user_adapter is None else self._judge(self.user_adapter)

    def simulated_user(self, adapter: Any) -> NamedJudges:
        """Return the model that simulates users: the user model if it exists, otherwise the judge with ``adapter``."""
        return self.user or self.of(adapter)

    @property
    def made(self) -> list[Any]:
        """The adapters created for the judges that tasks name."""
        return [*self._adapters.values()]

    def adapter(self, spec: str) -> Any:
        """Return the adapter of a judge that a task names, and create it on first use."""
        if spec not in self._adapters:
            self._adapters[spec] = self._make_adapter(spec)
            self._scrubber.learn(secrets_of(self._adapters[spec]))
        return self._adapters[spec]

    def of(self, adapter: Any) -> NamedJudges:
        """Return the run's judge with ``adapter``, or, without an adapter, the judges that tasks name."""
        if self._judges is None:
            named = NamedJudges(lambda spec: self._judge(self.adapter(spec)))
            self._judges = self._judge(adapter, named.open_model) if adapter else named
        return self._judges

    @property
    def unpriced(self) -> list[str]:
        """The names of judges and simulated users that run on a server with unknown prices."""
        without = [each for each in self._queried if AdapterFacts.of(each).tells_cost is False]
        return [adapter_name(each) for each in without if member(each, "base_url")]

    def _judge(self, adapter: Any, open_model: Callable[[str], Judge] | None = None) -> Judge:
        self._queried.append(adapter)
        return Judge(self._engines.make(as_judge(adapter)), self._known, open_model)


class ModelAnswers:
    """Gets the answers of ``model`` to the units of ``plan``.

    ``connect`` returns the engine that sends requests. ``recorded`` holds an earlier run's answers. ``note`` records
    answers that wait for scoring, and intermediate answers within a conversation. ``simulated_user`` returns the model
    that simulates users.
    """

    simulated_user: Callable[[], Any]

    def __init__(
        self,
        plan: RunPlan,
        model: Model,
        repeats: int,
        connect: Callable[[Recalled | None, tuple[Converse, Keep | None]], Engine],
        recorded: Recorded | None = None,
        note: Note | None = None,
    ) -> None:
        self.plan = plan
        self.model = model
        self._repeats = repeats
        self._recorded = recorded
        self.note = note
        self._asked: dict[Unit, tuple[Prompt, Sequence[Request]]] = {}
        keep = None if note is None else partial(_keep_slow, note)
        self.engine = connect(None if recorded is None else recorded.responses, (self._converse, keep))

    def through(self, engine: Any) -> ModelAnswers:
        """Return a copy that sends its requests through ``engine``, a conftest's replacement."""
        others = copy(self)
        others.engine = engine
        return others

    def task(self, unit: Unit) -> Task:
        """Return the unit's task, prepared for the model."""
        return self.plan.tasks.get(id(unit.task)) or unit.task

    def respond(self, unit: Unit, render: Render) -> list[Response]:
        """Return the model's responses to a unit; raise an error if there are no responses."""
        if self.plan.lacking and (refusal := self.plan.refusal(unit)):
            raise AdapterError(refusal)
        return self.engine.respond(unit, partial(self._requests, render))

    def asked(self, unit: Unit) -> tuple[Prompt, Sequence[Request]] | None:
        """Remove and return a unit's prompt and requests for one repeat, or return None if no prompt was rendered."""
        return self._asked.pop(unit, None)

    def forget(self, unit: Unit) -> None:
        """Drop the requests and answers of a unit that the run will not score."""
        self._asked.pop(unit, None)
        self.engine.forget(unit)

    def _requests(self, render: Render, unit: Unit) -> Sequence[Request]:
        """Return a unit's requests for all repeats, or no requests if the unit cannot be scored."""
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
        note = partial(self.note, unit.task.name, unit.example.id) if self.note else lambda _: None
        user = self.simulated_user() if hasattr(follow_up, "opening") else None
        return Conversation(request, follow_up, recall, note, user)


def _keep_slow(note: Note, arrived: Sequence[Arrived]) -> bool:
    """If an answer took the model at least `SLOW_MS`, record all answers and return True."""
    is_slow = any((getattr(each, "latency_ms", None) or 0) >= SLOW_MS for one in arrived for each in one.responses)
    if is_slow:
        from pytest_lmeval.run.keeping import keep

        for one in arrived:
            keep(note, one)
    return is_slow


def _as_prompt(rendered: Any) -> Prompt:
    """Return a render function's result as text or messages; raise AdapterError for any other result."""
    if isinstance(rendered, str):
        return rendered
    if isinstance(rendered, Sequence) and rendered:
        messages = tuple(_message(entry) for entry in rendered)
        return Joined(messages) if isinstance(rendered, Joined) else messages
    raise AdapterError(f"lm_render returned {type(rendered).__name__}; expected text or a sequence of messages")


def _repeated(request: Request, number: int) -> Request:
    """Return ``request`` for repeat ``number``; a request for log-probabilities is the same in every repeat."""
    return replace(request, repeat=number) if isinstance(request, Generate) else request


def _message(entry: Any) -> Message:
    if isinstance(entry, Message):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("role"), str) and isinstance(entry.get("content"), str):
        return Message(entry["role"], entry["content"])
    raise AdapterError(f"lm_render returned {entry!r} as a message; expected role and content, both text")
