"""The fixture ``lm``, and the hooks that a run with eval functions needs besides those of every run."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.plugin.collect.locate import is_function
from pytest_lmeval.plugin.settings.models import of_model

if TYPE_CHECKING:
    from pytest_lmeval.plugin.evals.session import EvalSession


class EvalHooks:
    """Registered when the first eval function is prepared to run."""

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
        # Within the phase, and so after pytest has put streams of its own in place.
        self._loop.route_prints()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self._loop.route_prints()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._evals.note_part(report)
        # Between phases, when it has taken them away again.
        self._loop.route_prints()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, object, object]:
        """Run async fixtures in the functions' loop, where no other plugin has made plain ones of them by now."""
        function: Any = fixturedef.func
        plain = _as_plain(self._evals, function)
        if plain is None or not hasattr(request.node, "items" if request.scope == "session" else "nodeid"):
            return (yield)
        # As plugins for async tests do: pytest has no other way to set up what a coroutine provides.
        fixturedef.func = plain  # type: ignore[misc]  # final for pytest's own type checks
        try:
            return (yield)
        finally:
            fixturedef.func = function  # type: ignore[misc]  # as above

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._evals.close()


def provide(request: pytest.FixtureRequest, evals: EvalSession, engine: Any, judge: Any) -> Iterator[Any]:
    """Yield the ``lm`` of the item that asks."""
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


def _as_plain(evals: EvalSession, function: Any) -> Any:
    if inspect.isasyncgenfunction(function):

        def generate(*arguments: Any, **named: Any) -> Any:
            values = function(*arguments, **named)
            yield evals.shared.loop.submit(_next(values)).result()
            evals.shared.loop.submit(_finish(values)).result()

        return generate
    if inspect.iscoroutinefunction(function):
        return lambda *arguments, **named: evals.shared.loop.submit(function(*arguments, **named)).result()
    return None


async def _next(values: Any) -> Any:
    return await anext(values)


async def _finish(values: Any) -> None:
    async for _ in values:
        raise RuntimeError("an async fixture yields once")
