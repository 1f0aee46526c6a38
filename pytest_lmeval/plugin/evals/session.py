"""Start the eval functions of one process; await and score each function when pytest reaches its item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.errors import BudgetSpent
from pytest_lmeval.functions.declare import fresh
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.lm import BlockingLm, Lm, LmBase, Services
from pytest_lmeval.functions.loop import sections
from pytest_lmeval.functions.lost import example_of
from pytest_lmeval.functions.runner import Outcome, Runner, Running, settle
from pytest_lmeval.functions.task import FailureRule, result_of
from pytest_lmeval.plugin.asking.state import RunState, show_waiting
from pytest_lmeval.plugin.evals.process import services_of, shared
from pytest_lmeval.plugin.evals.startable import Starter
from pytest_lmeval.plugin.private.items import arguments_of, closure_of, parameters_of
from pytest_lmeval.plugin.private.reports import crash_of, uncaptured
from pytest_lmeval.plugin.private.workers import is_worker, worker_input
from pytest_lmeval.plugin.settings.models import of_model
from pytest_lmeval.report.wording import duration
from pytest_lmeval.run.run import scrubbed
from pytest_lmeval.text import own_name
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.plugin.evals.item import EvalItem

_LOOK_S = 0.25
_PATIENCE_S = 5.0
_BLOCKED_S = 10.0
_MOST_NOTES = 20
_WORTH_A_NOTE_S = 1.0
# Start a quarter more functions than the limit on requests in flight, because functions also do other work.
_MANY = 32
# The beginnings of pytest's messages for a failed assertion.
_FAILURES = ("assert", "AssertionError", "Failed")


class EvalSession:
    """Starts, awaits and ends one process's eval functions, for the duration of its run.

    ``running`` holds the started examples that pytest has not finished yet.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._config = state.config
        wanted = AdapterFacts.of(state.adapter).requests_in_flight
        self._concurrency = wanted or state.run.settings.policy(0.0).concurrency
        self.shared = shared(self._config)
        # Stray requests may belong to any model, so they make every model's run incomplete.
        state.run.strays = lambda: self.shared.endpoint.strays if self.shared.has_endpoint else ()
        self._at_once = self._concurrency + (self._concurrency // 4 if self._concurrency >= _MANY else 0)
        self._runner = Runner(self.shared.loop, self._at_once)
        self._starter = Starter(state, self._concurrency)
        self._services: Services | None = None
        self._lms: dict[pytest.Item, LmBase] = {}
        self.running: dict[pytest.Item, Running] = {}
        self._now: Running | None = None
        # The remarks to show once, and the numbers of examples that ran one at a time, by task and reason.
        self._notes: dict[str, None] = {}
        self._one_by_one: Counter[tuple[str, str]] = Counter()
        # The number and total seconds of each task's examples that could have run in threads.
        self._alone: dict[str, tuple[int, float]] = {}
        self._blocking: set[str] = set()
        self._failure_rule = FailureRule(self._config.rootpath, (pytest.fail.Exception,))
        self._shows_setup = self._config.getoption("setupshow", False)

    # The fixture

    def lm_of(self, item: pytest.Item, engine: Any, judge: Any, *, blocks: bool) -> LmBase:
        """Return an item's ``lm``; create it on first use."""
        if self._services is None:
            self._services = services_of(self._state, self.shared, engine, judge)
        if item not in self._lms:
            self._lms[item] = BlockingLm(self._services) if blocks else Lm(self._services)
        return self._lms[item]

    def follow(self, item: Any) -> ExampleState:
        """Start recording a test that another plugin runs, and return its state."""
        state = self._new_states(item, 1)[0]
        state.begin()
        self._lms[item].enter(state)
        return state

    def ended_by_another(self, item: Any) -> None:
        """Stop recording a test that another plugin ran."""
        lm = self._lms.pop(item)
        if lm.state is not None:
            settle(lm.state)
        lm.leave()

    # Run the items one after another

    def is_begun_at_turn(self, item: Any, *, sets_up: bool = True) -> bool:
        """Return True if an item has started early, so that its fixtures must not be set up again.

        ``sets_up`` is False if pytest is not setting up the item now. If it is False, an item also counts as started if
        all its fixtures are set up and no example waits for a fixture.
        """
        self._starter.ahead.skip_to(item.position)
        if self._shows_setup or (self._starter.needs_set_up and not sets_up):
            return False
        return item in self.running or (not sets_up and self._starter.values_at_turn(item) is not None)

    def begin(self, item: EvalItem, *, sets_up: bool = True) -> None:
        """Start an item whose fixtures are set up, then other items that may start early.

        Set up the other items' fixtures only if pytest is setting up this item now (``sets_up``).
        """
        begun: list[Running] = []
        if item not in self.running:
            if not sets_up and (values := self._starter.values_at_turn(item)) is not None:
                _hand_over(self, item, values)
            running = self.running[item] = self._new_running(item, item.funcargs)
            needs = self._starter.needs_of(item) if item.runs_beside else None
            running.at_turn = needs is None or bool(needs.reason)
            if not running.at_turn:
                begun.append(running)
            elif needs is not None and not needs.silent and self._starter.may_run_ahead:
                self._one_by_one[item.task.name, needs.reason] += 1
        for follower, values in self._starter.following(item, self.running, sets_up):
            _hand_over(self, follower, values)
            running = self.running[follower] = self._new_running(follower, values)
            begun.append(running)
        self._runner.begin(begun)

    def finish(self, item: EvalItem) -> Running:
        """Wait for the item's example, or run it, and then return the example."""
        running = self._now = self.running.pop(item)
        if item.runs_beside or running.in_thread:
            self._runner.begin([running] if running.at_turn else [])
            self._wait_for(running)
        else:
            self._runner.run_here(running)
        self._now = None
        may_have = not item.runs_beside and item.spec is not None and item.spec.threads is None
        if may_have and not self._starter.needs_of(item).reason:
            count, seconds = self._alone.get(item.task.name, (0, 0.0))
            seconds += sum(outcome.seconds for outcome in running.outcomes)
            self._alone[item.task.name] = count + 1, seconds
        self._lms.pop(item, None)
        item.ran = running
        for outcome in running.outcomes:
            for name, text in sections(outcome.state.printed):
                item.add_report_section("call", name, text)
        return running

    def result(self, unit: Any, outcomes: Sequence[Outcome]) -> ExampleResult:
        """Return an example's result from the outcomes of its function calls."""
        run = self._state.run
        stopped = [str(each.state.failure) for each in outcomes if isinstance(each.state.failure, BudgetSpent)]
        if stopped:
            run.stop(stopped[0])
        for outcome in outcomes:
            outcome.state.is_taken = True
        item = own_name(unit.nodeid, unit.example.id)
        result = result_of(unit, outcomes, self._failure_rule, run.rules(), item)
        return scrubbed(result, run.settings.scrubber)

    def note_part(self, report: pytest.TestReport) -> None:
        """Record a subtest's failure in the current example."""
        state = self._now.lm.state if self._now is not None and report.failed else None
        if state is not None:
            message = str(getattr(crash_of(report), "message", None) or report.longreprtext)
            state.break_off(f"a subtest failed: {message}", is_failure=message.startswith(_FAILURES))

    def cancel(self, item: pytest.Item) -> None:
        """Cancel an item whose result is not needed."""
        if item in self.running or item in self._lms:
            self._end([item])

    # End a scope, and the session

    def end_scope(self, going: Sequence[pytest.Collector]) -> None:
        """Before a module's tear-down, cancel and await the examples that use the module's fixtures."""
        modules = [each for each in going if isinstance(each, pytest.Module)]
        if not modules:
            return
        uses = [
            item
            for item in self.running
            if item.getparent(pytest.Module) in modules and self._starter.needs_of(item).narrowest == "module"
        ]
        self._end(uses)

    def end_all(self) -> None:
        """Cancel and await all started examples."""
        self._end(list(self.running))

    def close(self) -> None:
        """Close the event loop."""
        self.end_all()
        self.shared.release()

    @property
    def notes(self) -> list[str]:
        """Remarks on this process's eval functions and spans, for the end of the run."""
        shared, worker = self.shared, worker_input(self._config).get("workerid", "")
        spans = shared.spans.notes if shared.spans is not None else []
        waited = [
            f"{task}: {count} example{'s' if count > 1 else ''} ran one at a time: {reason}"
            for (task, reason), count in self._one_by_one.items()
        ]
        waited += [
            f"{task}: {count} examples of a def function ran one at a time ({duration(seconds)}); "
            f"threads=True runs {self._at_once} at once"
            for task, (count, seconds) in self._alone.items()
            if count > 1 and seconds >= _WORTH_A_NOTE_S
        ]
        # The worker's name distinguishes equal counts from two processes.
        counts = [f"{note} ({worker})" if worker else note for note in (*waited, *spans)]
        others = list(self._notes)
        left = [f"and {len(others) - _MOST_NOTES} more"] if len(others) > _MOST_NOTES else []
        return [*counts, *others[:_MOST_NOTES], *left]

    def _end(self, items: Sequence[pytest.Item]) -> None:
        running = []
        for item in items:
            self._lms.pop(item, None)
            if (begun := self.running.pop(item, None)) is not None:
                running.append(begun)
        if not running:
            return
        for stubborn in self._runner.cancel(running, _PATIENCE_S):
            state = stubborn.states[0]
            self._notes[f"{state.task}: {state.id} did not end when it was cancelled"] = None
        for item in items:
            if (finish := getattr(item, "finish_fixtures", None)) is not None:
                finish()

    def _new_states(self, item: Any, repeats: int) -> list[ExampleState]:
        of = (item.task.name, item.example.id)
        return [ExampleState(*of, number, self._note_late, self.shared) for number in range(repeats)]

    def _note_late(self, state: ExampleState, message: str) -> None:
        self._notes[message] = None
        if state.is_taken:
            self._state.run.late.append(message)

    def _new_running(self, item: EvalItem, values: Mapping[str, Any]) -> Running:
        spec = item.spec
        wanted, parameters = arguments_of(item), parameters_of(item)
        given = {name: values[name] for name in wanted if name in values and name != "lm"}
        rows = {name: given.pop(name) for name in wanted if name in given and given[name] is parameters.get(name)}
        # An eval function may omit lm.
        lm = self._lms.get(item) or LmBase(None)
        if "lm" in wanted:
            given["lm"] = lm
        function = item.obj
        timeout = spec.timeout if spec is not None else None
        note_shared = partial(_note_shared, self._notes, item.task.name)
        return Running(
            lambda: function(**given, **{name: fresh(row, note_shared) for name, row in rows.items()}),
            lm,
            self._new_states(item, item.example.policy.repeats or self._state.run.settings.repeats),
            timeout,
            # A timeout can only cancel functions in threads.
            in_thread=spec is not None and not spec.is_async and (item.in_thread or timeout is not None),
        )

    def _wait_for(self, running: Running) -> None:
        engine = self._services.model.engine if self._services is not None else None
        while not running.done.wait(_LOOK_S):
            if engine is not None:
                engine.look_after()
                show_waiting(self._config, engine, min(len(self.running) + 1, self._concurrency))
            self._look_for_block(running)

    def _look_for_block(self, at_turn: Running) -> None:
        """Report code that blocks the event loop, with its file and line, once per task."""
        loop = self.shared.loop
        silent = loop.silent_s()
        if silent < _BLOCKED_S or not (where := loop.busy_at()):
            return
        busy_with = loop.busy_with
        examples = [each.states[0] for each in (at_turn, *self.running.values()) if each.task is busy_with]
        state = examples[0] if examples else example_of(busy_with)
        task = state.task if state is not None else ""
        if task in self._blocking:
            return
        self._blocking.add(task)
        why = "it blocks the event loop; await there, or write def with threads=True"
        note = f"{task}{': ' if task else ''}an eval function blocks all others at {where}: {why}"
        self._notes[note] = None
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None and not is_worker(self._config):
            with uncaptured(self._config):
                terminal.write_line(f"\nlmeval: for {silent:.0f} s now {note}", yellow=True)


def _hand_over(evals: EvalSession, item: Any, values: Mapping[str, Any]) -> None:
    """Give an item its fixture values and its ``lm`` without pytest's set-up."""
    if "lm" in closure_of(item):
        engine, judge = (of_model(values[name], item.label) for name in ("lm_engine", "lm_judge"))
        evals.lm_of(item, engine, judge, blocks=not item.spec.is_async)
    item.funcargs.update(values)


def _note_shared(notes: dict[str, None], task: str, value: object) -> None:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    notes[f"{task}: a {kind} in a row is not copied: all calls share it, so none may change it"] = None
