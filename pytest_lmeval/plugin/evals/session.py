"""The eval functions of one process: which of them run, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.errors import BudgetSpent
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.declare import fresh
from pytest_lmeval.functions.endpoint import Answers, Endpoint
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.lm import BlockingLm, Lm, LmBase, Services
from pytest_lmeval.functions.loop import sections
from pytest_lmeval.functions.runner import Outcome, Runner, Running
from pytest_lmeval.functions.task import Reading, result_of
from pytest_lmeval.plugin.asking.ahead import Ahead
from pytest_lmeval.plugin.collect.locate import is_function
from pytest_lmeval.plugin.evals.remarks import Remarks
from pytest_lmeval.plugin.evals.shared import shared
from pytest_lmeval.plugin.evals.startable import Needs, needs_of, parameters_of, values_for
from pytest_lmeval.plugin.private import (
    arguments_of,
    closure_of,
    crash_of,
    fixtures_of,
    is_replacement,
    is_worker,
    uncaptured,
    worker_input,
)
from pytest_lmeval.plugin.settings.models import of_model
from pytest_lmeval.records.answers import KnownAnswers
from pytest_lmeval.scoring.judge import Judge
from pytest_lmeval.text import own_name
from pytest_lmeval.types import ExampleResult, Exchange

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import RunState
    from pytest_lmeval.plugin.evals.item import EvalItem

_LOOK_S = 0.25
_BLOCKED_S = 10.0
_PATIENCE_S = 5.0
# How pytest's words for a failed assertion begin.
_FAILURES = ("assert", "AssertionError", "Failed")


class EvalSession:
    """Begins, awaits and ends the eval functions of one process; lives as long as its run."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._config = state.config
        self.concurrency = state.run.settings.policy(0.0).own_concurrency
        self._shared = shared(self._config)
        self.loop, self.endpoint = self._shared.loop, self._shared.endpoint
        self.runner = Runner(self.loop, self.concurrency)
        self._services: Services | None = None
        self._lms: dict[pytest.Item, LmBase] = {}
        self._running: dict[pytest.Item, Running] = {}
        self._now: Running | None = None
        self._needs: dict[int, tuple[object, Needs]] = {}
        self._put_off: Any = None
        self._remarks = Remarks()
        self._told_blocked = ""
        self._reading = Reading(self._config.rootpath, (pytest.fail.Exception,))
        option = self._config.option
        self._shows_setup = option.setupshow or option.setuponly or option.setupplan
        # A worker's death is blamed on the item at its turn: one that took another's place runs nothing beside it.
        self._may_run_ahead = not (is_worker(self._config) and is_replacement(self._config))

    @cached_property
    def ahead(self) -> Ahead:
        """What will come to its turn next."""
        label = self._state.label
        return Ahead(
            self._config, self._state.items, lambda item: is_function(item) and getattr(item, "label", "") == label
        )

    def route_prints(self) -> None:
        """Keep what examples print from now on apart."""
        self._shared.route_prints()

    # The fixture

    def lm_of(self, item: pytest.Item, engine: Any, judge: Any, *, blocks: bool) -> LmBase:
        """Return the ``lm`` of an item, made when it is first asked for."""
        if self._services is None:
            self._services = self._new_services(engine, judge)
        if item not in self._lms:
            self._lms[item] = BlockingLm(self._services) if blocks else Lm(self._services)
        return self._lms[item]

    def follow(self, item: Any) -> None:
        """Let a test that another plugin runs record from now on."""
        state = self._new_states(item, 1)[0]
        state.begin(beside=False)
        self._lms[item].enter(state)
        item.__dict__["lm_state"] = state

    def ended_by_another(self, item: Any, error: BaseException | None, seconds: float) -> Outcome | None:
        """Return how a test ended that another plugin ran; None where it never got its ``lm``."""
        lm, state = self._lms.pop(item, None), item.__dict__.pop("lm_state", None)
        if lm is None or state is None:
            return None
        lm.leave()
        return Outcome(state, error, seconds)

    # One item after the other

    def catch_up(self, item: Any) -> None:
        """Note that the turn of ``item`` has come."""
        self.ahead.catch_up(item.position)

    def has_begun(self, item: pytest.Item) -> bool:
        """Tell whether an item was begun ahead of its turn, so that its fixtures need not be set up once more."""
        return item in self._running and not self._shows_setup

    def begin(self, item: EvalItem) -> None:
        """Begin an item whose fixtures are set up, ahead of those that may begin before their turn."""
        begun: list[Running] = []
        if item not in self._running:
            running = self._running[item] = self._new_running(item, item.funcargs)
            needs = self._needs_of(item) if item.runs_beside else None
            running.at_turn = needs is None or bool(needs.reason)
            if not running.at_turn:
                begun.append(running)
            elif needs is not None and not needs.silent and self._may_run_ahead:
                self._remarks.one_by_one(item.task.name, needs.reason)
        self.runner.begin([*begun, *self._followers(item)])

    def finish(self, item: EvalItem) -> Running:
        """Return the item's example once it has run."""
        running = self._now = self._running.pop(item)
        if item.runs_beside or running.in_thread:
            self.runner.begin([running] if running.at_turn else [])
            self._wait_for(running)
        else:
            self.runner.run_here(running)
        self._now = None
        self._lms.pop(item, None)
        item.__dict__["ran"] = running
        for outcome in running.outcomes:
            for name, text in sections(outcome.state.printed):
                item.add_report_section("call", name, text)
        return running

    def result(self, unit: Any, outcomes: Sequence[Outcome]) -> ExampleResult:
        """Return the result of an example from how the calls of its function ended."""
        run = self._state.run
        stopped = [str(each.state.failure) for each in outcomes if isinstance(each.state.failure, BudgetSpent)]
        if stopped:
            run.stopped = stopped[0]
        for outcome in outcomes:
            outcome.state.is_taken = True
        if self._services is not None:
            run.note_stops(self._services.model.engine)
        item = own_name(unit.nodeid, unit.example.id)
        return run.scrubbed(result_of(unit, outcomes, self._reading, run.judgement(), item))

    def note_part(self, report: pytest.TestReport) -> None:
        """Note what a report says that comes while an example is at its turn: one of a part of it, a subtest."""
        state = self._now.lm.state if self._now is not None and report.failed else None
        if state is not None:
            said = str(getattr(crash_of(report), "message", None) or report.longreprtext)
            state.break_off(f"a subtest failed: {said}", is_failure=said.startswith(_FAILURES))

    def let_go(self, item: pytest.Item) -> None:
        """Cancel what was begun for an item that nobody will take."""
        running = self._running.pop(item, None)
        self._lms.pop(item, None)
        if running is not None and running.task is not None:
            self._cancel([running])

    # The end of a scope, and of the session

    def end_scope(self, going: Sequence[pytest.Collector]) -> None:
        """Cancel, and wait for, what was begun and uses fixtures of a collector that is torn down."""
        modules = [each for each in going if isinstance(each, pytest.Module)]
        if not modules:
            return
        uses = [
            item
            for item in self._running
            if item.getparent(pytest.Module) in modules and self._needs_of(item).narrowest == "module"
        ]
        self._end(uses)

    def end_all(self) -> None:
        """Cancel, and wait for, all that was begun."""
        self._end(list(self._running))

    def close(self) -> None:
        """End the loop."""
        self.end_all()
        self._shared.release()

    @property
    def remarks(self) -> list[str]:
        """What the end of the run says of its eval functions."""
        # Counts of two workers may be equal, and are not to be taken for one remark.
        where = worker_input(self._config).get("workerid")
        spans = [f"{remark} ({where})" if where else remark for remark in self._shared.spans.remarks]
        return self._remarks.lines(spans, self.endpoint.strays)

    def _end(self, items: Sequence[pytest.Item]) -> None:
        running = [self._running.pop(item) for item in items]
        for item in items:
            self._lms.pop(item, None)
        self._cancel(running)

    def _cancel(self, running: Sequence[Running]) -> None:
        if not running:
            return
        for stubborn in self.runner.cancel(running, _PATIENCE_S):
            state = stubborn.states[0]
            self._remarks.add(f"{state.task}: {state.id} did not end when it was cancelled")

    def _new_services(self, engine: Any, judge: Any) -> Services:
        judges = self._state.run.judge(judge, engine)
        self._shared.keep_logs()
        judging = self._new_asker(judges.engine, judges) if isinstance(judges, Judge) else None
        return Services(self._new_asker(engine), judging, self.endpoint, _clients_of)

    def _new_asker(self, engine: Any, judge: Judge | None = None) -> Asker:
        held, run = self._state.held, self._state.run
        key = run.adapter_key if judge is None else judge.adapter_key
        known: KnownAnswers | None = None
        if self._config.option.lm_resume:
            known = (held.known if judge is None else held.judged)(adapter_name(engine.adapter), key)

        def note(exchange: Exchange) -> None:
            self._state.run.note(exchange.request.task, exchange.request.id, exchange, judge)

        return Asker(engine, self.loop, known, note, key)

    def _new_states(self, item: Any, repeats: int) -> list[ExampleState]:
        of = (item.task.name, item.example.id)
        return [ExampleState(*of, number, self._note_late, self._shared.spans) for number in range(repeats)]

    def _note_late(self, state: ExampleState, message: str) -> None:
        self._remarks.add(message)
        if state.is_taken:
            self._state.run.late.append(message)

    def _new_running(self, item: EvalItem, values: Mapping[str, Any]) -> Running:
        spec = item.spec
        wanted, parameters = arguments_of(item), parameters_of(item)
        given = {name: values[name] for name in wanted if name in values and name != "lm"}
        rows = {name: given.pop(name) for name in wanted if name in given and given[name] is parameters.get(name)}
        # A function that takes no lm is an example, too.
        lm = self._lms.get(item) or LmBase(None)
        if "lm" in wanted:
            given["lm"] = lm
        function = item.obj
        timeout = spec.timeout if spec is not None else None
        note_shared = partial(self._remarks.shared, item.task.name)
        return Running(
            lambda: function(**given, **{name: fresh(row, note_shared) for name, row in rows.items()}),
            lm,
            self._new_states(item, self._state.run.settings.repeats),
            timeout,
            # Only from beside can a function be told that its time is over.
            in_thread=spec is not None and not spec.is_async and (spec.threads or timeout is not None),
        )

    def _followers(self, item: EvalItem) -> list[Running]:
        window = 4 * self.concurrency
        if not self._may_run_ahead or len(self._running) > window - max(1, window // 8):
            return []
        begun = []
        while len(self._running) < window:
            follower = self._put_off or self.ahead()
            self._put_off = None
            if follower is None:
                break
            if follower in self._running or follower is item or not follower.runs_beside:
                continue
            needs = self._needs_of(follower)
            if needs.reason:
                continue
            if needs.narrowest == "module" and _module(follower) is not _module(item):
                # Its module's fixtures are set up when that module's turn comes; what follows it waits with it.
                self._put_off = follower
                break
            values = values_for(follower, needs, item)
            if values is not None:
                if "lm" in closure_of(follower):
                    engine, judge = (of_model(values[name], follower.label) for name in ("lm_engine", "lm_judge"))
                    self.lm_of(follower, engine, judge, blocks=not follower.spec.is_async)
                follower.funcargs.update(values)
                running = self._running[follower] = self._new_running(follower, values)
                begun.append(running)
        return begun

    def _needs_of(self, item: pytest.Item) -> Needs:
        # Items of one function share what they need; kept with the key, whose id is its own only while it lives.
        key = fixtures_of(item)
        known = self._needs.get(id(key))
        if known is None or known[0] is not key:
            known = self._needs[id(key)] = (key, needs_of(item))
        return known[1]

    def _wait_for(self, running: Running) -> None:
        engine = self._services.model.engine if self._services is not None else None
        while not running.done.wait(_LOOK_S):
            self.runner.look_after(running)
            if engine is not None:
                engine.look_after()
                self._state.show_waiting(min(len(self._running) + 1, self.concurrency), engine)
            self._watch()

    def _watch(self) -> None:
        silent = self.loop.silent_s()
        if silent < _BLOCKED_S:
            self._told_blocked = ""
            return
        where = self.loop.busy_at()
        if where == self._told_blocked:
            return
        self._told_blocked = where
        why = "it blocks the event loop; await there, or write def with threads=True"
        said = f"an eval function holds up all others at {where}: {why}"
        self._remarks.add(said)
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None and not is_worker(self._config):
            with uncaptured(self._config):
                terminal.write_line(f"\nlmeval: for {silent:.0f} s now {said}", yellow=True)


def _clients_of(asker: Asker, endpoint: Endpoint) -> Answers:
    from pytest_lmeval.functions.clients import Clients

    return Clients(asker, endpoint)


def _module(item: pytest.Item) -> pytest.Collector | None:
    return item.getparent(pytest.Module)
