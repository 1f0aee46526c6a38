"""The pytest item of an eval function's example, which may start early but reports in pytest's order."""

from __future__ import annotations

import unittest
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.functions.declare import fresh
from pytest_lmeval.functions.lost import describe
from pytest_lmeval.functions.runner import Outcome, Running
from pytest_lmeval.plugin.asking import turn
from pytest_lmeval.plugin.asking.item import ScoredItem, attach
from pytest_lmeval.plugin.asking.state import RunState, other_adapter, run_state, stop_session
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.plugin.private.items import drop_tmp_path, hide_frames, parameters_of
from pytest_lmeval.plugin.settings.models import config_of, of_model
from pytest_lmeval.text import is_installed
from pytest_lmeval.types import Example, ExampleResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_lmeval.functions.declare import EvalFunction
    from pytest_lmeval.functions.example import ExampleState
    from pytest_lmeval.functions.task import FunctionTask
    from pytest_lmeval.plugin.evals.session import EvalSession


_MARK = pytest.mark.lmeval
_IS_UP = pytest.StashKey[bool]()
"""Marks a module or class in which an eval function's fixtures have been set up."""
_PLACES = pytest.StashKey[dict[str, tuple[str, int | None, str]]]()
"""The stash key under which a module or class caches each eval function's path, line and item name prefix."""


class EvalItem(ScoredItem):
    """An example whose function runs in the event loop, in a thread, or in the main thread.

    If ``runs_beside``, the example may run concurrently, because its function is async or runs ``in_thread``.
    ``made_path`` is the temporary folder of an item that started early, and ``finishers`` tear down its safe fixtures.
    """

    task: FunctionTask
    spec: EvalFunction | None = None
    label: str = ""
    function_name: str = ""
    runs_beside: bool = False
    in_thread: bool = False
    made_path: Path | None = None
    ran: Running | None = None
    _finishers: list[Callable[[], None]] | None = None
    _run_state: RunState | None = None

    def assign(self, task: FunctionTask, example: Example, spec: EvalFunction | None, name: str) -> None:
        """Assign the example to the item; the arguments of ``eval_task``, if any, are in ``spec``."""
        self.task = task
        self.example = example
        self.spec = spec
        if spec is not None and not spec.is_async:
            self.in_thread = bool(self.config.getini("lm_threads") if spec.threads is None else spec.threads)
        self.runs_beside = self.in_thread or (spec is not None and spec.is_async)
        self.function_name = name
        self.explained = ""
        self.add_marker(_MARK)
        self.extra_keyword_matches.add(task.name)
        if spec is not None and spec.tags:
            from pytest_lmeval.plugin.collect.selecting import mark_by_tags

            self.extra_keyword_matches.update(spec.tags)
            mark_by_tags(self, spec.tags)

    @property
    def run_state(self) -> RunState:
        """The run's state in this process."""
        if self._run_state is None:
            self._run_state = run_state(config_of(self.config, self.label) if self.label else self.config)
        return self._run_state

    @property
    def evals(self) -> EvalSession:
        """The session that runs this process's eval functions."""
        return session_of(self.run_state)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The item's path, line and name for reports; the path and line are cached per function."""
        places = self.parent.stash.setdefault(_PLACES, {})
        if self.function_name not in places:
            path, line, shown = super().location
            if not shown.endswith(self.name):
                return path, line, shown
            places[self.function_name] = (path, line, shown.removesuffix(self.name))
        path, line, before = places[self.function_name]
        # As in pytest.
        return path, line, (before + self.name).replace(".[", "[")

    def setup(self) -> None:
        """Set up the fixtures, then start this example and other examples that may start early."""
        __tracebackhide__ = True
        # An item that started early got its values from fixtures that other items had set up.
        evals = self.evals
        if self.spec is not None and _IS_UP not in (stash := self.parent.stash):
            stash[_IS_UP] = True
            self.parent.addfinalizer(partial(stash.__delitem__, _IS_UP))
            if not (plugins := self.config.pluginmanager).is_registered(turn):
                plugins.register(turn, turn.NAME)
        if not evals.is_begun_at_turn(self):
            if self.spec is not None and self.spec.data is not None:
                # A fixture may change the row, and items with other parameters share it.
                parameters = parameters_of(self)
                parameters["row"] = fresh(parameters["row"], lambda _: None)
            super().setup()
        evals.begin(self)

    @property
    def is_set_up(self) -> bool:
        """True if pytest has nothing to set up: the fixtures have values, and no early example waits for a fixture."""
        is_up = self.made_path is None and not self._finishers and _IS_UP in self.parent.stash
        return is_up and self.evals.is_begun_at_turn(self, sets_up=False)

    def begin_turn(self) -> None:
        """Start this example, and other examples that may start early and have all their fixtures."""
        self.evals.begin(self, sets_up=False)

    def runtest(self) -> None:
        """Wait for the function, or run it; fail if its result counts as a failure."""
        state, evals = self.run_state, self.evals
        run = state.run
        if other := self._other_adapter():
            evals.cancel(self)
            result = run.unscored(self, other)
            self.keep(result)
            self._fail(result)
        running = evals.finish(self)
        for outcome in running.outcomes:
            if (error := control_of(outcome.error)) is not None:
                raise error
        result = evals.result(self, running.outcomes)
        if (stopped := run.stopped) and not self.label:
            stop_session(self.session, stopped)
            add_to_report(self.config, stopped=stopped)
        self.keep(result)
        if result.is_failed and not state.excuses(result):
            self._fail(result, running.outcomes)

    @property
    def finishers(self) -> list[Callable[[], None]]:
        """The functions that tear down the safe fixtures."""
        if self._finishers is None:
            self._finishers = []
        return self._finishers

    def finish_fixtures(self) -> None:
        """Tear down the safe fixtures of an item that started early, in reverse order."""
        while self._finishers:
            self._finishers.pop()()

    def teardown(self) -> None:
        """Cancel the function if it is running although the item was skipped."""
        self.evals.cancel(self)
        super().teardown()
        self.finish_fixtures()
        if self.made_path is not None:
            drop_tmp_path(self, self.made_path)

    def attach_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Attach the result to the report, with the function's own duration."""
        if call.when == "call" and self.ran is not None:
            if self.ran.outcomes:
                report.duration = sum(outcome.seconds for outcome in self.ran.outcomes)
                report.start = report.stop - report.duration
            self.ran = None
        super().attach_result(report, call)
        if call.when == "call" and self.explained:
            report.sections.append(("example", self.explained))
            self.explained = ""

    def _other_adapter(self) -> str:
        if "lm_engine" not in self.funcargs:
            return ""
        adapter, engine = (of_model(self.funcargs[name], self.label) for name in ("lm_adapter", "lm_engine"))
        # Other models continue.
        return other_adapter(adapter, engine) or (self.run_state.run.stopped if self.label else "")

    def _fail(self, result: ExampleResult, outcomes: Sequence[Outcome] = ()) -> NoReturn:
        from pytest_lmeval.plugin.asking.failure import ExampleFailed, explain

        before = self.run_state.baseline_results.get((result.task, result.id))
        explained = explain(result, self, before)
        raised = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        if raised is None or isinstance(raised, LmevalError):
            raise ExampleFailed(explained) from raised
        # pytest shows the exception, and the report gets the explanation as a section.
        self.explained = explained
        if any(outcome.state.failure is not None for outcome in outcomes):
            # The explanation says why the request got no answer; the client's stack frames do not.
            hide_frames(self, is_installed)
        raise raised


def session_of(state: RunState) -> EvalSession:
    """Return the session for a run's eval functions; create it on first use."""
    if state.evals is None:
        from pytest_lmeval.plugin.evals.session import EvalSession

        state.evals = EvalSession(state)
    return state.evals


def control_of(error: BaseException | None) -> BaseException | None:
    """Return an exception that skips the test or ends the run, or None for any other exception, such as xfail."""
    if isinstance(error, BaseExceptionGroup):
        found = [control_of(each) for each in error.exceptions]
        return found[0] if found and all(found) else None
    kinds = (pytest.skip.Exception, unittest.SkipTest, pytest.exit.Exception, KeyboardInterrupt)
    return error if isinstance(error, kinds) else None


def follow(item: pytest.Function, task: FunctionTask, example: Example, name: str) -> pytest.Function:
    """Turn an async test that another plugin runs into an example, based on its reports."""
    item.add_marker(_MARK)
    item.extra_keyword_matches.add(task.name)
    follower = _Follower(item, task, example, name)
    item.__dict__.update(task=task, example=example, attach_result=follower)
    item.obj = _heeding(follower, item.obj)
    return item


def _heeding(follower: _Follower, function: Any) -> Any:
    """Wrap an async test so that its example receives the return value, which other plugins discard."""

    @wraps(function)
    async def call(*arguments: Any, **named: Any) -> None:
        returned = await function(*arguments, **named)
        if returned is not None and follower.state is not None:
            follower.state.record_returned(returned)

    return call


class _Follower:
    """Scores a test that another plugin ran; ``state`` is the record of its ``lm``, or None if it has no ``lm``."""

    def __init__(self, item: pytest.Function, task: FunctionTask, example: Example, name: str) -> None:
        self._item = item
        self.nodeid = item.nodeid
        self.function_name = name
        self.task = task
        self.example = example
        self.state: ExampleState | None = None

    def __call__(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Attach the result to the report that decides it."""
        item: Any = self._item
        raised = call.excinfo.value if call.excinfo is not None else None
        if call.when == "setup" and report.failed:
            self._unscored(report, "set-up failed", raised)
        if call.when != "call" or control_of(raised) is not None:
            return
        state, self.state = self.state, None
        if state is None:
            self._unscored(report, "not scored", raised)
            return
        evals = session_of(run_state(item.config))
        evals.ended_by_another(item)
        result = evals.result(self, [Outcome(state, raised, call.duration)])
        if result.is_failed and not report.failed and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            from pytest_lmeval.plugin.asking.failure import explain

            report.longrepr = explain(result, item)
        attach(item, report, result)

    def _unscored(self, report: pytest.TestReport, stage: str, error: BaseException | None) -> None:
        why = "no exception" if error is None else describe(error)
        attach(self._item, report, run_state(self._item.config).run.unscored(self, f"{stage}: {why}"))
