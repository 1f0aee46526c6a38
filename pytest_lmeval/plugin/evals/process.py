"""Share an event loop, an endpoint and captured output among a process's eval functions; run their async fixtures."""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_lmeval.adapters.facts import adapter_name
from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.lm import Services
from pytest_lmeval.functions.loop import LogKeeper, Loop, is_of_this_thread, route_prints, routed, unroute_prints
from pytest_lmeval.functions.lost import watch_threads
from pytest_lmeval.plugin.collect.locate import is_function, is_record
from pytest_lmeval.plugin.private.items import asker_of, closure_of, fixture_definitions, fixtures_of
from pytest_lmeval.plugin.private.reports import is_capturing, log_handlers, wrap_captured
from pytest_lmeval.plugin.settings.models import ByModel, of_model
from pytest_lmeval.scoring.judge import Judge
from pytest_lmeval.text import portable_path

if TYPE_CHECKING:
    from pytest_lmeval.functions.endpoint import Endpoint
    from pytest_lmeval.functions.loop import Loop
    from pytest_lmeval.functions.service import Service, ServiceUrl
    from pytest_lmeval.functions.spans import Spans
    from pytest_lmeval.functions.tools import ToolRecords
    from pytest_lmeval.plugin.asking.state import RunState
    from pytest_lmeval.plugin.evals.session import EvalSession

_OTEL = "opentelemetry.trace"


class Shared:
    """The parts that all models share until the last model's eval functions have ended."""

    def __init__(self, config: pytest.Config) -> None:
        is_routed = is_capturing(config)
        self._unwrap = wrap_captured(config, routed) if is_routed else lambda: None
        self.loop = Loop(route_prints if is_routed else lambda: None)
        self.users = 0
        self._endpoint: Endpoint | None = None
        self._making = threading.Lock()
        self.spans: Spans | None = None
        self.running: set[ExampleState] = set()
        self._leave_threads = watch_threads(self.running)
        self._config = config
        self._keeper: LogKeeper | None = None
        self._filtered: list[logging.Handler] = []

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint for applications' own clients, created on first use because most runs need no endpoint."""
        # Threads and the event loop may request it at the same time.
        with self._making:
            if self._endpoint is None:
                from pytest_lmeval.functions.clients.body import ForwardPaths
                from pytest_lmeval.functions.endpoint import Endpoint

                self._endpoint = Endpoint(self.loop, ForwardPaths(self._config.getini("lm_forward_paths")))
            return self._endpoint

    @property
    def has_endpoint(self) -> bool:
        """True if the endpoint has been created."""
        return self._endpoint is not None

    def keep_logs(self) -> None:
        """Attach each log record to the concurrent example that created it, not to the current item."""
        if self._keeper is None:
            self._keeper = LogKeeper()
            logging.getLogger().addHandler(self._keeper)
            self._filtered = log_handlers(self._config)
            for handler in self._filtered:
                handler.addFilter(is_of_this_thread)

    def began(self, state: ExampleState) -> None:
        """Add a running example; record its spans once the project has imported OpenTelemetry."""
        self._listen()
        self.running.add(state)
        if self.spans is not None:
            self.spans.began(state)

    def ended(self, state: ExampleState) -> None:
        """Remove a finished example."""
        self._listen()
        self.running.discard(state)
        if self.spans is not None:
            self.spans.ended(state)

    def _listen(self) -> None:
        if self.spans is None and _OTEL in sys.modules:
            from pytest_lmeval.functions.spans import Spans

            self.spans = Spans(lambda: self.endpoint.address if self.has_endpoint else "", self.running)

    def release(self) -> None:
        """Count one user fewer; after the last user, close everything."""
        self.users -= 1
        if self.users:
            return
        if self.has_endpoint:
            self.endpoint.close()
        self.loop.close()
        if self.spans is not None:
            self.spans.close()
        self._leave_threads()
        self._unwrap()
        unroute_prints()
        if self._keeper is not None:
            logging.getLogger().removeHandler(self._keeper)
            for handler in self._filtered:
                handler.removeFilter(is_of_this_thread)


def shared(config: pytest.Config) -> Shared:
    """Return the parts that all models in this process share, and count one more user."""
    if _SHARED not in config.stash:
        config.stash[_SHARED] = Shared(config)
    found = config.stash[_SHARED]
    found.users += 1
    return found


class EvalHooks:
    """Hooks for a run with eval functions."""

    def __init__(self, evals: EvalSession) -> None:
        self._evals = evals
        self._loop = evals.shared.loop

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        session = item.session
        if nextitem is None or session.shouldstop or session.shouldfail:
            self._evals.end_all()
        elif nextitem.parent is not item.parent:
            staying = set(nextitem.listchain())
            going = [each for each in item.listchain()[:-1] if each not in staying]
            if going:
                self._evals.end_scope([each for each in going if isinstance(each, pytest.Collector)])
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        # Inside the phase, after pytest has replaced the streams.
        self._loop.route_prints()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self._loop.route_prints()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._evals.note_part(report)
        # Between phases, after pytest has restored the streams.
        self._loop.route_prints()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._evals.close()


def provide(request: pytest.FixtureRequest, evals: EvalSession, engine: Any, judge: Any) -> Iterator[Any]:
    """Yield ``lm`` for the item that requests it."""
    item: Any = request.node
    if is_function(item):
        engine, judge = of_model(engine, item.label), of_model(judge, item.label)
        yield item.evals.lm_of(item, engine, judge, blocks=not (item.spec is not None and item.spec.is_async))
        return
    if not hasattr(item, "example"):
        raise pytest.UsageError(f"{item.nodeid}: lm is for test functions; this is a {type(item).__name__}")
    lm = evals.lm_of(item, engine, judge, blocks=not inspect.iscoroutinefunction(getattr(item, "function", None)))
    item.attach_result.state = evals.follow(item)
    yield lm


def services_of(state: RunState, shared: Shared, engine: Any, judge: Any) -> Services:
    """Return the model, judge, endpoint and simulated user for one model's examples."""
    judges = state.run.judges.of(judge)
    shared.keep_logs()
    judging = _asker(state, shared.loop, judges.engine, judges) if isinstance(judges, Judge) else None
    # Created here instead of in the event loop, because inspecting an adapter is slow.
    played = state.run.judges.user
    user = judging if played is None else _asker(state, shared.loop, played.engine, played)
    tools = partial(_tool_records, state, shared.loop, engine)
    return Services(_asker(state, shared.loop, engine), judging, lambda: shared.endpoint, user, tools)


def _tool_records(state: RunState, loop: Loop, engine: Any) -> ToolRecords:
    from pytest_lmeval.functions.tools import ToolRecords

    return ToolRecords(engine.adapter, state.files.held, state.run.journal, loop)


class _Preparing:
    """Marks the set-up of fixtures, which may send requests outside examples even while examples run."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self) -> Generator[None, object, object]:
        __tracebackhide__ = True
        self._service.preparing += 1
        try:
            return (yield)
        finally:
            self._service.preparing -= 1


def serve(state: RunState, shared: Shared, engine: Any, judge: Any) -> ServiceUrl:
    """Return the address to which an application sends requests outside examples, for one or several models."""
    from pytest_lmeval.functions.service import Service, ServiceUrl

    endpoint = shared.endpoint
    answers = None if isinstance(engine, ByModel) else services_of(state, shared, engine, judge).clients
    service = endpoint.service = Service(answers, shared.running, lambda _, message: state.run.late.append(message))
    state.run.outside = service.requests
    state.config.pluginmanager.register(_Preparing(service), "lmeval-service")
    return ServiceUrl.of(endpoint.outside_url, service.state)


def _asker(state: RunState, loop: Loop, engine: Any, judge: Judge | None = None) -> Asker:
    run = state.run
    key = run.model.key if judge is None else judge.adapter_key
    known, held = None, state.files.held
    if held is not None:
        known = (held.known if judge is None else held.judged)(adapter_name(engine.adapter), key)

    name = "" if judge is None else judge.name
    note = None if run.journal is None else partial(run.journal.add, key=key, judge=name)
    return Asker(engine, loop, known, note, key)


_SHARED = pytest.StashKey[Shared]()


Instance = tuple[Any, object]
"""A fixture's definition, and the node for which pytest sets up the fixture once."""


class NotForEvals(UsageError):
    """An eval requests an async fixture that it cannot use."""


def instances_of_others(items: Iterable[pytest.Item]) -> dict[Instance, pytest.Item]:
    """Map each async fixture that ordinary tests use, with a scope wider than function, to the first of these tests.

    Raise NotForEvals if an eval and an ordinary test use the same async fixture, because an object that belongs to one
    event loop does not work in another.
    """
    known: dict[int, list[Any]] = {}
    evals: dict[Instance, pytest.Item] = {}
    others: dict[Instance, pytest.Item] = {}
    for item in items:
        # All items of one function share their fixtures.
        key = id(fixtures_of(item) or item)
        if (definitions := known.get(key)) is None:
            definitions = known[key] = [*_wider(item)]
        for definition in definitions:
            (evals if _is_ours(item) else others).setdefault((definition, _home(item, definition)), item)
    for instance, item in evals.items():
        if instance in others:
            raise NotForEvals(_refusal(instance[0], item, others[instance]))
    return others


class AsyncFixtures:
    """Sets up the async fixtures of evals; ``others`` come from :func:`instances_of_others`."""

    def __init__(self, loop: Loop, others: Mapping[Instance, pytest.Item]) -> None:
        self._loop = loop
        self._others = others

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, object, object]:
        """Run evals' async fixtures in the functions' event loop, before another plugin wraps them."""
        __tracebackhide__ = True
        function: Any = fixturedef.func
        if not _is_async(function) or (item := asker_of(request)) is None or not _is_ours(item):
            return (yield)
        # Plugins for async tests do the same, because pytest has no other way to set up an async fixture.
        fixturedef.func = self._plain(fixturedef, item)  # type: ignore[misc]  # final for pytest's own type checks
        try:
            return (yield)
        except NotForEvals:
            # pytest would cache the exception for tests that are allowed to use the fixture.
            fixturedef.finish(request)
            raise
        finally:
            fixturedef.func = function  # type: ignore[misc]  # as above

    def _plain(self, definition: pytest.FixtureDef[Any], item: pytest.Item) -> Any:
        """Return a plain replacement for an async fixture; it raises NotForEvals if the eval cannot use the fixture."""
        instance = (definition, _home(item, definition))
        if definition.scope != "function" and instance in self._others:
            return partial(_raise, _refusal(definition, item, self._others[instance]))
        if threading.current_thread() is self._loop.thread:
            why = "an async function cannot wait for request.getfixturevalue: take the fixture as an argument"
            return partial(_raise, f"{_named(definition)} is async: {why}")
        call = _generate if inspect.isasyncgenfunction(definition.func) else _call
        return partial(call, definition.func, self._loop)


def _is_ours(item: object) -> bool:
    # Another plugin runs async tests that use lm without eval_task, in its own event loop.
    return is_function(item) or is_record(item)


def _is_async(function: Any) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)


def _wider(item: pytest.Item) -> Iterator[Any]:
    """Yield the async fixtures, with a scope wider than function, that an item needs directly or indirectly."""
    for name in closure_of(item):
        for definition in reversed(fixture_definitions(item, name)):
            if definition.scope != "function" and _is_async(definition.func):
                yield definition
            # A definition that requests its own name gets the definition that it overrides.
            if name not in definition.argnames:
                break


def _home(item: pytest.Item, definition: Any) -> object:
    """Return the class, module or session for which pytest sets up a fixture once; a package counts as the session."""
    if definition.scope == "class":
        return item.getparent(pytest.Class) or item
    return item.getparent(pytest.Module) if definition.scope == "module" else item.session


def _refusal(definition: Any, item: pytest.Item, other: pytest.Item) -> str:
    return (
        f"{_named(definition)} is async and of scope {definition.scope}: the eval {item.nodeid} and the test "
        f"{other.nodeid} cannot share it, as they run in different event loops; make its scope function, or give the "
        "evals a fixture of their own"
    )


def _named(definition: Any) -> str:
    code = inspect.unwrap(definition.func).__code__
    return f"fixture {definition.argname} ({portable_path(code.co_filename)}:{code.co_firstlineno})"


def _raise(why: str, /, **_: Any) -> NoReturn:
    raise NotForEvals(why)


def _call(function: Any, loop: Loop, /, *arguments: Any, **named: Any) -> Any:
    return loop.submit(function(*arguments, **named)).result()


def _generate(function: Any, loop: Loop, /, *arguments: Any, **named: Any) -> Iterator[Any]:
    values = function(*arguments, **named)
    yield loop.submit(_next(values)).result()
    loop.submit(_finish(values)).result()


async def _next(values: Any) -> Any:
    return await anext(values)


async def _finish(values: Any) -> None:
    async for _ in values:
        raise RuntimeError("an async fixture yields once")
