"""What the eval functions of one process share: the loop, the endpoint, prints and logs, and notes on all of them."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.lm import Services
from pytest_lmeval.functions.loop import LogKeeper, Loop, is_of_this_thread, route_prints, routed, unroute_prints
from pytest_lmeval.plugin.private import is_capturing, is_worker, log_handlers, uncaptured, wrap_captured
from pytest_lmeval.scoring.judge import Judge
from pytest_lmeval.types import Exchange

if TYPE_CHECKING:
    from pytest_lmeval.functions.endpoint import Clients, Endpoint
    from pytest_lmeval.functions.spans import Spans
    from pytest_lmeval.plugin.asking.state import RunState

_BLOCKED_S = 10.0
_MOST = 20
_OTEL = "opentelemetry.trace"


class Shared:
    """Made with the first model's eval functions, and closed with the last one's."""

    def __init__(self, config: pytest.Config) -> None:
        is_routed = is_capturing(config)
        self._unwrap = wrap_captured(config, routed) if is_routed else _nothing
        self.loop = Loop(route_prints if is_routed else _nothing)
        self.running = RunningExamples(lambda: self.endpoint.address if self.has_endpoint else "")
        self.users = 0
        self._config = config
        self._keeper: LogKeeper | None = None
        self._filtered: list[logging.Handler] = []

    @cached_property
    def endpoint(self) -> Endpoint:
        """The endpoint for applications' own clients; most runs have none."""
        from pytest_lmeval.functions.endpoint import Endpoint

        return Endpoint(self.loop)

    @property
    def has_endpoint(self) -> bool:
        """Whether anything has asked for the endpoint."""
        return "endpoint" in vars(self)

    def keep_logs(self) -> None:
        """Keep the log records of examples that run beside others with them, and away from the item at its turn."""
        if self._keeper is None:
            self._keeper = LogKeeper()
            logging.getLogger().addHandler(self._keeper)
            self._filtered = log_handlers(self._config)
            for handler in self._filtered:
                handler.addFilter(is_of_this_thread)

    def release(self) -> None:
        """Note that one of the users is done; the last one's going ends all."""
        self.users -= 1
        if self.users:
            return
        if self.has_endpoint:
            self.endpoint.close()
        self.loop.close()
        if self.running.spans is not None:
            self.running.spans.close()
        self._unwrap()
        unroute_prints()
        if self._keeper is not None:
            logging.getLogger().removeHandler(self._keeper)
            for handler in self._filtered:
                handler.removeFilter(is_of_this_thread)


def shared(config: pytest.Config) -> Shared:
    """Return what is shared in this process, and count one more user."""
    if _SHARED not in config.stash:
        config.stash[_SHARED] = Shared(config)
    found = config.stash[_SHARED]
    found.users += 1
    return found


class RunningExamples:
    """The examples that run now; their spans are listened to once the project has imported OpenTelemetry."""

    def __init__(self, own_address: Callable[[], str]) -> None:
        self.spans: Spans | None = None
        self._own_address = own_address
        self._running: set[ExampleState] = set()

    def began(self, state: ExampleState) -> None:
        """Note that an example runs."""
        self._listen()
        self._running.add(state)
        if self.spans is not None:
            self.spans.began(state)

    def ended(self, state: ExampleState) -> None:
        """Note that an example runs no longer."""
        self._listen()
        self._running.discard(state)
        if self.spans is not None:
            self.spans.ended(state)

    def _listen(self) -> None:
        if self.spans is None and _OTEL in sys.modules:
            from pytest_lmeval.functions.spans import Spans

            self.spans = Spans(self._own_address, self._running)


class EvalNotes:
    """What the end of a run says: sentences, each once, and how many examples ran one at a time and why."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._one_by_one: Counter[tuple[str, str]] = Counter()

    def add(self, text: str) -> None:
        """Note a sentence."""
        self._texts[text] = None

    def one_by_one(self, task: str, reason: str) -> None:
        """Note that an example could not begin ahead of its turn."""
        self._one_by_one[task, reason] += 1

    def shared(self, task: str, value: object) -> None:
        """Note that a value in a row is not copied."""
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.add(f"{task}: a {kind} in a row is passed as it is: all calls share it, so none may change it")

    def lines(self, shared: Shared, worker: str) -> list[str]:
        """Return all notes, those on spans and on stray requests of the process among them.

        ``worker`` is the name of the process: equal counts of two processes are two notes.
        """
        spans, strays = shared.running.spans, shared.endpoint.strays if shared.has_endpoint else ()
        of_spans = [f"{note} ({worker})" if worker else note for note in spans.notes] if spans is not None else []
        found = [
            f"{task}: {count} example{'s' if count > 1 else ''} ran one at a time: {reason}"
            for (task, reason), count in self._one_by_one.items()
        ]
        others = [*self._texts, *strays]
        left = [f"and {len(others) - _MOST} more"] if len(others) > _MOST else []
        return [*found, *of_spans, *others[:_MOST], *left]


class BlockedLoop:
    """Says, while the run waits, which code holds up all examples of the loop."""

    def __init__(self, config: pytest.Config, loop: Loop, notes: EvalNotes) -> None:
        self._config = config
        self._loop = loop
        self._notes = notes
        self._where = ""

    def look(self) -> None:
        """Say once of each place that it blocks the loop."""
        silent = self._loop.silent_s()
        where = self._loop.busy_at() if silent >= _BLOCKED_S else ""
        if where == self._where:
            return
        self._where = where
        if not where:
            return
        why = "it blocks the event loop; await there, or write def with threads=True"
        note = f"an eval function holds up all others at {where}: {why}"
        self._notes.add(note)
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None and not is_worker(self._config):
            with uncaptured(self._config):
                terminal.write_line(f"\nlmeval: for {silent:.0f} s now {note}", yellow=True)


def services_of(state: RunState, shared: Shared, engine: Any, judge: Any) -> Services:
    """Return whom the examples of one model ask, and who judges them."""
    judges = state.run.judges(judge)
    shared.keep_logs()
    judging = _asker(state, shared.loop, judges.engine, judges) if isinstance(judges, Judge) else None
    return Services(_asker(state, shared.loop, engine), judging, lambda asker: _clients(asker, shared.endpoint))


def _asker(state: RunState, loop: Loop, engine: Any, judge: Judge | None = None) -> Asker:
    run = state.run
    key = run.model.key if judge is None else judge.adapter_key
    known = None
    if state.config.option.lm_resume:
        held = state.held
        known = (held.known if judge is None else held.judged)(adapter_name(engine.adapter), key)

    def note(exchange: Exchange) -> None:
        run.note(exchange.request.task, exchange.request.id, exchange, judge)

    return Asker(engine, loop, known, note, key)


def _clients(asker: Asker, endpoint: Endpoint) -> Clients:
    from pytest_lmeval.functions.endpoint import Clients

    return Clients(asker, endpoint)


def _nothing() -> None:
    return None


_SHARED = pytest.StashKey[Shared]()
