"""Async fixtures: those that evals ask for run in the loop of the functions, all others are their own plugin's."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.plugin.collect.locate import is_function, is_record
from pytest_lmeval.plugin.private.items import asker_of, closure_of, fixture_definitions, fixtures_of
from pytest_lmeval.text import portable_path

if TYPE_CHECKING:
    from pytest_lmeval.functions.loop import Loop

Instance = tuple[Any, object]
"""A definition of a fixture, and the node for which pytest sets it up once."""


class NotForEvals(UsageError):
    """An eval asks for an async fixture that it cannot have."""


def instances_of_others(items: Iterable[pytest.Item]) -> dict[Instance, pytest.Item]:
    """Return the async fixtures of wider scope that tests which are no evals ask for, each with the first such test.

    Raise NotForEvals for one that evals ask for, too: what is made in one event loop does not work in another.
    """
    known: dict[int, list[Any]] = {}
    evals: dict[Instance, pytest.Item] = {}
    others: dict[Instance, pytest.Item] = {}
    for item in items:
        # Items of one function share what they ask for.
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
    """Sets up those of evals. ``others`` are what :func:`instances_of_others` returned."""

    def __init__(self, loop: Loop, others: Mapping[Instance, pytest.Item]) -> None:
        self._loop = loop
        self._others = others

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, object, object]:
        """Run the async fixtures of evals in the functions' loop, before another plugin makes plain ones of them."""
        __tracebackhide__ = True
        function: Any = fixturedef.func
        if not _is_async(function) or (item := asker_of(request)) is None or not _is_ours(item):
            return (yield)
        # As plugins for async tests do: pytest has no other way to set up what a coroutine provides.
        fixturedef.func = self._plain(fixturedef, item)  # type: ignore[misc]  # final for pytest's own type checks
        try:
            return (yield)
        except NotForEvals:
            # pytest would keep it for the tests that may have the fixture.
            fixturedef.finish(request)
            raise
        finally:
            fixturedef.func = function  # type: ignore[misc]  # as above

    def _plain(self, definition: pytest.FixtureDef[Any], item: pytest.Item) -> Any:
        """Return what is called instead; it raises NotForEvals if others have it, or the loop would wait for itself."""
        instance = (definition, _home(item, definition))
        if definition.scope != "function" and instance in self._others:
            return partial(_raise, _refusal(definition, item, self._others[instance]))
        if threading.current_thread() is self._loop.thread:
            why = "an async function cannot wait for request.getfixturevalue: take the fixture as an argument"
            return partial(_raise, f"{_named(definition)} is async: {why}")
        call = _generate if inspect.isasyncgenfunction(definition.func) else _call
        return partial(call, definition.func, self._loop)


def _is_ours(item: object) -> bool:
    # An async test that takes lm and has no eval_task is run by another plugin, in the loop of that.
    return is_function(item) or is_record(item)


def _is_async(function: Any) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)


def _wider(item: pytest.Item) -> Iterator[Any]:
    """Yield the async fixtures of wider scope than one test that an item gets, by whatever other fixtures."""
    for name in closure_of(item):
        for definition in reversed(fixture_definitions(item, name)):
            if definition.scope != "function" and _is_async(definition.func):
                yield definition
            # One that asks for its own name gets the definition that it overrides.
            if name not in definition.argnames:
                break


def _home(item: pytest.Item, definition: Any) -> object:
    """Return the node for which pytest sets a fixture up once; a definition is of one package at most."""
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
