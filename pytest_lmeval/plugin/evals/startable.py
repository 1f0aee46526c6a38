"""Choose the examples that may start early, based on their fixtures, and provide the fixture values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.plugin.collect.locate import is_function
from pytest_lmeval.plugin.private.items import (
    arguments_of,
    cached_value,
    closure_of,
    fixture_definitions,
    fixtures_of,
    is_of_pytest,
    is_parameter,
    new_tmp_path,
    parameters_of,
    set_up_by,
)
from pytest_lmeval.plugin.private.workers import is_replacement, is_worker

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import Ahead, RunState

_Definitions = tuple[tuple[str, Any], ...]
_SKIPS = ("skip", "skipif", "xfail")


@dataclass(frozen=True, slots=True)
class FixtureNeeds:
    """The fixtures that a function's items need, and the ``reason`` (if any) why the items must not start early.

    The summary shows the reason unless ``silent`` is set. If ``has_tmp_path``, each item gets a temporary folder.
    ``own`` lists the safe fixtures to set up for each item, in set-up order.
    """

    fixtures: _Definitions = ()
    reason: str = ""
    silent: bool = False
    narrowest: str = "session"
    has_tmp_path: bool = False
    own: _Definitions = ()


class Starter:
    """Chooses the examples to start early, so that ``concurrency`` of them run at a time."""

    def __init__(self, state: RunState, concurrency: int) -> None:
        self._state = state
        self._window = 4 * concurrency
        self._put_off: Any = None
        self.needs_set_up = False
        self._safe: Sequence[str] = state.config.getini("lm_safe_fixtures")
        self._needs: dict[int, tuple[object, FixtureNeeds]] = {}
        # xdist blames the current item if a worker dies, so a replacement worker runs nothing else at the same time.
        self.may_run_ahead = not (is_worker(state.config) and is_replacement(state.config))

    @cached_property
    def ahead(self) -> Ahead:
        """The examples that pytest reaches next."""
        return self._state.upcoming(is_function)

    def needs_of(self, item: pytest.Item) -> FixtureNeeds:
        """Return the fixtures that an item needs."""
        # Items of one function share their needs. The cache also stores the key, so that its id is not reused.
        key = fixtures_of(item)
        known = self._needs.get(id(key))
        if known is None or known[0] is not key:
            known = self._needs[id(key)] = (key, needs_of(item, self._safe))
        return known[1]

    def values_at_turn(self, item: Any) -> dict[str, Any] | None:
        """Return the fixture values of an item that did not start early, or None if a fixture is not set up."""
        if item.runs_beside or item.spec is None:
            return None
        needs = self.needs_of(item)
        # pytest creates the temporary folder and the narrow fixtures of the current item.
        if needs.reason or needs.has_tmp_path or needs.own or not _are_there(needs):
            return None
        return values_for(item, needs, item)

    def following(
        self, item: Any, begun: Mapping[pytest.Item, object], sets_up: bool
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield examples to start while the current ``item`` runs, each with its fixture values.

        The caller must add each example to ``begun`` before it requests the next example. If ``sets_up`` is False, an
        example whose fixtures are not all set up must wait.
        """
        self.needs_set_up = False
        window = self._window
        if not self.may_run_ahead or len(begun) > window - max(1, window // 8):
            return
        while len(begun) < window:
            follower = self._put_off or self.ahead()
            self._put_off = None
            if follower is None:
                return
            if follower in begun or follower is item or not follower.runs_beside:
                continue
            needs = self.needs_of(follower)
            if needs.reason:
                continue
            if needs.narrowest == "module" and _module(follower) is not _module(item):
                # pytest sets up the module's fixtures when it reaches the module; later examples wait, too.
                self._put_off = follower
                return
            if not sets_up and not _are_there(needs):
                self._put_off, self.needs_set_up = follower, True
                return
            if (values := values_for(follower, needs, item)) is not None:
                yield follower, values


def needs_of(item: pytest.Item, safe: Sequence[str]) -> FixtureNeeds:
    """Return the fixtures that an item needs; all of its function's items need the same ones.

    ``safe`` names the function-, class- or package-scoped fixtures that may exist several times at once.
    """
    if any(item.get_closest_marker(name) is not None for name in _SKIPS):
        return FixtureNeeds(reason="marked", silent=True)
    if "request" in arguments_of(item):
        return FixtureNeeds(reason="it uses the fixture request")
    parameters = parameters_of(item)
    fixtures, narrowest, has_tmp_path = [], "session", False
    narrow: dict[str, Any] = {}
    for name in closure_of(item):
        if name in ("request", "lm"):
            continue
        definitions = fixture_definitions(item, name)
        if not definitions:
            return FixtureNeeds(reason=f"fixture {name} is not known")
        definition = definitions[-1]
        if name in parameters and is_parameter(definition):
            continue
        if name == "tmp_path" and is_of_pytest(definition):
            has_tmp_path = True
            continue
        if definition.scope not in ("session", "module"):
            narrow[name] = definition
            continue
        narrowest = "module" if definition.scope == "module" else narrowest
        fixtures.append((name, definition))
    reason, own = ("", ()) if not narrow else _of_narrow(item, narrow, safe)
    if reason:
        return FixtureNeeds(reason=reason)
    return FixtureNeeds(tuple(fixtures), narrowest=narrowest, has_tmp_path=has_tmp_path, own=own)


def _of_narrow(item: pytest.Item, fixtures: Mapping[str, Any], safe: Sequence[str]) -> tuple[str, _Definitions]:
    """Return the reason for not starting early, or "", and the function- or class-scoped fixtures with an effect."""
    # Most projects have no such fixtures.
    from pytest_lmeval.plugin.evals.safe import is_needed, order_of, reason_against

    reasons = [reason_against(item, name, definition, safe) for name, definition in fixtures.items()]
    own = {name: definition for name, definition in fixtures.items() if is_needed(item, name, definition)}
    return next(filter(None, reasons), ""), order_of(own)


def _are_there(needs: FixtureNeeds) -> bool:
    return all(cached_value(definition)[0] for _, definition in needs.fixtures)


def values_for(item: Any, needs: FixtureNeeds, running: Any) -> dict[str, Any] | None:
    """Return the values of an item's fixtures and parameters, or None if a value is not available early.

    Set up missing fixtures on behalf of ``running``, the current item.
    """
    parameters = parameters_of(item)
    values = dict(parameters)
    for name, definition in needs.fixtures:
        is_there, value, key = cached_value(definition)
        if not is_there:
            if not set_up_by(running, definition, name):
                return None
            _, value, key = cached_value(definition)
        if name in parameters and key is not parameters[name] and key != parameters[name]:
            return None
        values[name] = value
    if needs.has_tmp_path:
        item.made_path = values["tmp_path"] = new_tmp_path(item, values["tmp_path_factory"])
    if needs.own:
        from pytest_lmeval.plugin.evals.safe import set_up

        for name, definition in needs.own:
            try:
                values[name] = set_up(definition, values, item.finishers)
            except Exception:  # pytest raises it again when it reaches the item
                item.finish_fixtures()
                return None
    return values


def _module(item: pytest.Item) -> pytest.Collector | None:
    return item.getparent(pytest.Module)
