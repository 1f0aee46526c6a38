"""One example of an eval function as a pytest item: begun ahead where that may be, reported at its turn."""

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
from pytest_lmeval.plugin.private.items import drop_tmp_path, parameters_of
from pytest_lmeval.plugin.settings.models import config_of, of_model
from pytest_lmeval.types import Example, ExampleResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_lmeval.functions.declare import EvalFunction
    from pytest_lmeval.functions.example import ExampleState
    from pytest_lmeval.functions.task import FunctionTask
    from pytest_lmeval.plugin.evals.session import EvalSession


_MARK = pytest.mark.lmeval
_IS_UP = pytest.StashKey[bool]()
"""On the module or class of an eval function while it is set up."""
_PLACES = pytest.StashKey[dict[str, tuple[str, int | None, str]]]()
"""On a module or class, of each eval function: its path, its line, and what comes before the name of an item."""


class EvalItem(ScoredItem):
    """An example whose function runs in the loop, in a thread, or here.

    ``runs_beside`` says that it may run beside others: it is async, or runs ``in_thread``, by ``threads`` or the ini
    file. ``made_path`` is the temporary folder that was made for it ahead of its turn.
    """

    task: FunctionTask
    spec: EvalFunction | None = None
    label: str = ""
    function_name: str = ""
    runs_beside: bool = False
    in_thread: bool = False
    made_path: Path | None = None
    ran: Running | None = None
    _run_state: RunState | None = None

    def assign(self, task: FunctionTask, example: Example, spec: EvalFunction | None, name: str) -> None:
        """Say which example this is; ``spec`` is what ``eval_task`` was given, None without it."""
        self.task = task
        self.example = example
        self.spec = spec
        if spec is not None and not spec.is_async:
            self.in_thread = bool(self.config.getini("lm_threads") if spec.threads is None else spec.threads)
        self.runs_beside = self.in_thread or (spec is not None and spec.is_async)
        self.function_name = name
        self.add_marker(_MARK)
        self.extra_keyword_matches.add(task.name)
        if spec is not None and spec.tags:
            from pytest_lmeval.plugin.collect.selecting import mark_by_tags

            self.extra_keyword_matches.update(spec.tags)
            mark_by_tags(self, spec.tags)

    @property
    def run_state(self) -> RunState:
        """The state of the run in this process."""
        if self._run_state is None:
            self._run_state = run_state(config_of(self.config, self.label) if self.label else self.config)
        return self._run_state

    @property
    def evals(self) -> EvalSession:
        """The eval functions of this process."""
        return session_of(self.run_state)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """Where reports say the example is; what its function has of it is looked up once."""
        places = self.parent.stash.setdefault(_PLACES, {})
        if self.function_name not in places:
            path, line, shown = super().location
            if not shown.endswith(self.name):
                return path, line, shown
            places[self.function_name] = (path, line, shown.removesuffix(self.name))
        path, line, before = places[self.function_name]
        # As pytest writes it.
        return path, line, (before + self.name).replace(".[", "[")

    def setup(self) -> None:
        """Set its fixtures up, and begin it and what may begin ahead."""
        __tracebackhide__ = True
        # What was begun ahead has its values: of fixtures that other items have set up, and that end with those.
        evals = self.evals
        if self.spec is not None and _IS_UP not in (stash := self.parent.stash):
            stash[_IS_UP] = True
            self.parent.addfinalizer(partial(stash.__delitem__, _IS_UP))
            if not (plugins := self.config.pluginmanager).is_registered(turn):
                plugins.register(turn, turn.NAME)
        if not evals.is_begun_at_turn(self):
            if self.spec is not None and self.spec.data is not None:
                # A fixture that takes the row may change it: the items of its other parameters have the same one.
                parameters = parameters_of(self)
                parameters["row"] = fresh(parameters["row"], lambda _: None)
            super().setup()
        evals.begin(self)

    @property
    def is_set_up(self) -> bool:
        """Whether pytest would set nothing up: its fixtures have values, and no example ahead waits for one."""
        is_up = self.made_path is None and _IS_UP in self.parent.stash
        return is_up and self.evals.is_begun_at_turn(self, sets_up=False)

    def begin_turn(self) -> None:
        """Begin it, and what may begin ahead and needs no fixture that is not there yet."""
        self.evals.begin(self, sets_up=False)

    def runtest(self) -> None:
        """Wait for the function or run it; fail where its result says so."""
        state, evals = self.run_state, self.evals
        run = state.run
        if other := self._other_adapter():
            evals.let_go(self)
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

    def teardown(self) -> None:
        """Let go of a function that was begun and is not wanted, as where the item was skipped."""
        self.evals.let_go(self)
        super().teardown()
        if self.made_path is not None:
            drop_tmp_path(self, self.made_path)

    def attach_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Put the result on the report, with the time that the function itself took."""
        if call.when == "call" and self.ran is not None:
            if self.ran.outcomes:
                report.duration = sum(outcome.seconds for outcome in self.ran.outcomes)
                report.start = report.stop - report.duration
            self.ran = None
        super().attach_result(report, call)

    def _other_adapter(self) -> str:
        if "lm_engine" not in self.funcargs:
            return ""
        given: dict[str, Any] = self.funcargs
        adapter, engine = given["lm_adapter"], given["lm_engine"]
        if self.label:
            adapter, engine = of_model(adapter, self.label), of_model(engine, self.label)
        other = "" if adapter is engine.adapter else other_adapter(adapter, engine)
        # Of several models the others go on.
        return other or (self.run_state.run.stopped if self.label else "")

    def _fail(self, result: ExampleResult, outcomes: Sequence[Outcome] = ()) -> NoReturn:
        from pytest_lmeval.plugin.asking.failure import ExampleFailed

        explained = self._explained(result)
        raised = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        if raised is None or isinstance(raised, LmevalError):
            raise ExampleFailed(explained) from raised
        # pytest shows the exception itself best; what it cannot know is a section of its own.
        self.add_report_section("call", "example", explained)
        raise raised

    def _explained(self, result: ExampleResult) -> str:
        from pytest_lmeval.plugin.asking.failure import explain

        before = self.run_state.baseline_results.get((result.task, result.id))
        return explain(result, self, before)


def session_of(state: RunState) -> EvalSession:
    """Return the eval functions of a run, made when they are first asked for."""
    if state.evals is None:
        from pytest_lmeval.plugin.evals.session import EvalSession

        state.evals = EvalSession(state)
    return state.evals


def control_of(error: BaseException | None) -> BaseException | None:
    """Return the exception by which a test says that it was not one: a skip or an exit; else None.

    An xfail says that it failed: its example scores 0.
    """
    if isinstance(error, BaseExceptionGroup):
        found = [control_of(each) for each in error.exceptions]
        return found[0] if found and all(found) else None
    kinds = (pytest.skip.Exception, unittest.SkipTest, pytest.exit.Exception, KeyboardInterrupt)
    return error if isinstance(error, kinds) else None


def follow(item: pytest.Function, task: FunctionTask, example: Example, name: str) -> pytest.Function:
    """Make an example of an async test that another plugin runs: only its reports are ours."""
    item.add_marker(_MARK)
    item.extra_keyword_matches.add(task.name)
    follower = _Follower(item, task, example, name)
    item.__dict__.update(task=task, example=example, attach_result=follower)
    item.obj = _heeding(follower, item.obj)
    return item


def _heeding(follower: _Follower, function: Any) -> Any:
    """Return an async test that hands what it returns to its example: the plugin that runs it throws that away."""

    @wraps(function)
    async def call(*arguments: Any, **named: Any) -> None:
        returned = await function(*arguments, **named)
        if returned is not None and follower.state is not None:
            follower.state.take(returned)

    return call


class _Follower:
    """Scores an example when the test of another plugin's has ended, from what ``lm`` recorded in ``state`` meanwhile.

    Without a ``state`` the test never got its ``lm``.
    """

    def __init__(self, item: pytest.Function, task: FunctionTask, example: Example, name: str) -> None:
        self._item = item
        self.nodeid = item.nodeid
        self.function_name = name
        self.task = task
        self.example = example
        self.state: ExampleState | None = None

    def __call__(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Put the result on the report that decides it."""
        item: Any = self._item
        raised = call.excinfo.value if call.excinfo is not None else None
        if call.when == "setup" and report.failed:
            self._attach(report, run_state(item.config).run.unscored(self, f"set-up failed: {describe_any(raised)}"))
        if call.when != "call" or control_of(raised) is not None:
            return
        state, self.state = self.state, None
        if state is None:
            self._attach(report, run_state(item.config).run.unscored(self, f"not scored: {describe_any(raised)}"))
            return
        evals = session_of(run_state(item.config))
        evals.ended_by_another(item)
        result = evals.result(self, [Outcome(state, raised, call.duration)])
        if result.is_failed and not report.failed and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            from pytest_lmeval.plugin.asking.failure import explain

            report.longrepr = explain(result, item)
        self._attach(report, result)

    def _attach(self, report: pytest.TestReport, result: ExampleResult) -> None:
        attach(self._item, report, result)


def describe_any(error: BaseException | None) -> str:
    """Return an exception in one line, and "no exception" for None."""
    return "no exception" if error is None else describe(error)
