"""Define an example's pytest item, which sets up fixtures, runs the example, and reports the result."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.asking.state import other_adapter, stop_session
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.plugin.private.workers import is_worker
from pytest_lmeval.plugin.settings.models import RUN, config_of, of_model
from pytest_lmeval.task import Task
from pytest_lmeval.text import own_name
from pytest_lmeval.types import Example, ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.collector import TaskFile
    from pytest_lmeval.plugin.asking.state import RunState


def run_example(lm_adapter: Any, lm_judge: Any, lm_engine: Any, lm_render: Any, lm_sandbox: Any) -> None:
    """Declare the fixtures that every example requests; :meth:`ExampleItem.runtest` uses them."""


REFUSED = "refused"
"""The status word for an example whose task needs something that the run lacks; the summary names the task once."""
_FIXTURES = ("lm_adapter", "lm_judge", "lm_engine", "lm_render", "lm_sandbox")


class ScoredItem(pytest.Function):
    """The base class of items that attach a result to their report; pytest's metaclass forbids abstract classes."""

    parent: Any
    task: Task
    example: Example
    position: int = 0
    result: ExampleResult | None = None

    @property
    def run_state(self) -> RunState:
        """The run's state in this process."""
        raise NotImplementedError

    @property
    def is_set_up(self) -> bool:
        """True if the item's fixtures are already set up, so that its set-up and tear-down would do nothing."""
        raise NotImplementedError

    def begin_turn(self) -> None:
        """Prepare to run an item whose fixtures are already set up."""
        raise NotImplementedError

    def attach_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Attach the result to the report of the phase that decided it."""
        if call.when == "setup" and report.failed:
            if call.excinfo is not None and isinstance(call.excinfo.value, LmevalError | pytest.UsageError):
                report.longrepr = str(call.excinfo.value)
            self.keep(self.run_state.run.unscored(self, f"set-up failed: {_why(report, call)}"))
            report.user_properties[:] = self.user_properties
        elif call.when != "call":
            return
        elif report.failed and self.result is None:
            why = call.excinfo.exconly() if call.excinfo else report.outcome
            self.keep(self.run_state.run.unscored(self, f"not scored: {why}"))
        if self.result is not None:
            attach(self, report, self.result)
            if report.failed and self.result.is_error and self.task.name in self.run_state.run.lacking:
                report.__dict__["lm_word"] = REFUSED
            self.result = None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> Any:
        """Explain a failed example without a traceback, which would only show this plugin."""
        from pytest_lmeval.plugin.asking.failure import ExampleFailed

        if isinstance(excinfo.value, ExampleFailed | LmevalError | pytest.UsageError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args)

    def keep(self, result: ExampleResult) -> None:
        """Keep the result until pytest creates the report."""
        self.result = result
        properties = [entry for entry in self.user_properties if not entry[0].startswith("lm_")]
        asked, came = result.question, result.outcome
        task, *others = _properties(asked.task, asked.metric, came.status, came.score, came.threshold)
        self.user_properties = [*properties, task, ("lm_example", asked.id), *others]


class ExampleItem(ScoredItem):
    """An item that queries the model, scores the answer, and compares the score with the threshold."""

    parent: TaskFile
    label: str = ""

    @property
    def run_state(self) -> RunState:
        """The run state of the item's model in this process."""
        states = self.parent.states
        if (state := states.get(self.label)) is None:
            state = states[self.label] = (config_of(self.config, self.label) if self.label else self.config).stash[RUN]
        return state

    def assign(self, task: Task, example: Example) -> None:
        """Assign the example to the item."""
        self.task = task
        self.example = example
        # Set on every instance: a later attribute would cost each item its compact dict, 640 bytes.
        self.result = None
        self.position = 0
        tags = example.policy.tags
        self.extra_keyword_matches.update({example.category, example.metric, *tags} - {""})
        if tags:
            from pytest_lmeval.plugin.collect.selecting import mark_by_tags

            mark_by_tags(self, tags)

    @property
    def ihook(self) -> Any:
        """The hooks for the task file, looked up once per file."""
        return self.parent.hooks or super().ihook

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The example's path relative to the project's root, its line and its name; the path is cached per file."""
        if not self.parent.place:
            self.parent.place = super().location[0]
        return self.parent.place, (self.example.line or 1) - 1, self.name

    @property
    def is_set_up(self) -> bool:
        """True if the file's first item has set up the fixtures."""
        return self.parent.shared is not None

    def begin_turn(self) -> None:
        """Copy the file's shared fixture values to the item."""
        self.funcargs.update(self.parent.shared or ())

    def setup(self) -> None:
        """Set up the fixtures, once per file if their scopes allow it."""
        __tracebackhide__ = True
        if self.parent.shared is not None:
            self.begin_turn()
            return
        super().setup()
        self.parent.share(self)

    def runtest(self) -> None:
        """Score the example; fail if its status counts as a failure."""
        state = self.run_state
        if state.ahead is not None:
            state.ahead.skip_to(self.position)
        given: list[Any] = [self.funcargs[name] for name in _FIXTURES]
        if self.label:
            given = [of_model(value, self.label) for value in given]
        adapter, judge, engine, render, sandbox = given
        run = state.run
        if other := other_adapter(adapter, engine) or (self.label and run.stopped):
            # Other models continue.
            result = run.unscored(self, other)
        else:
            answers = state.answers_through(engine, adapter)
            # With several models, the name does not follow from the id.
            name = self.name if self.label else ""
            result = run.score(self, answers, render, judge, sandbox, name)
        if (stopped := run.stopped) and not self.label:
            stop_session(self.session, stopped)
            add_to_report(self.config, stopped=stopped)
        self.keep(result)
        if result.is_failed and not state.excuses(result):
            from pytest_lmeval.plugin.asking.failure import ExampleFailed, explain

            before = state.baseline_results.get((result.task, result.id))
            raise ExampleFailed(explain(result, self, before))

    def teardown(self) -> None:
        """Drop the example's answers, which remain unused if the example was skipped."""
        if (answers := self.run_state.answers) is not None:
            answers.forget(self)
        super().teardown()

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the example's line (counted from 0) and the item's name."""
        return self.path, max(0, self.example.line - 1), self.name


def attach(item: pytest.Item, report: pytest.TestReport, result: ExampleResult) -> None:
    """Attach an example's result to its report, with the item's name unless the name follows from the id."""
    # Eval functions' results have a name already.
    held = result.question.item
    is_named = held and item.nodeid.partition("::")[2] == held
    if not is_named and (name := own_name(item.nodeid, result.id)) != held:
        result = replace(result, item=name)
    report.user_properties.append(("lmeval", result.to_json()))
    if not is_worker(item.config):
        # The recorder in this process removes it.
        report.__dict__["lmeval_result"] = result
    word = "unscored" if result.is_error else result.status
    report.__dict__["lm_word"] = word if word in ("below", "measured", "quarantined", "unscored") else ""


def _why(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    """Return why a set-up failed: the exception, and the line in the project's code that raised it."""
    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, pytest.FixtureLookupError):
        return f"fixture {error.argname!r} not found"
    if error is None or isinstance(report.longrepr, str):
        return report.longreprtext[-500:]
    from pytest_lmeval.functions.lost import describe

    return describe(error)


@lru_cache(maxsize=512, typed=True)
def _properties(
    task: str, metric: str, status: str, score: object, threshold: object
) -> tuple[tuple[str, object], ...]:
    # Cached, because most examples share these properties until the end. xdist can send only builtin types.
    return (
        ("lm_task", task),
        ("lm_metric", metric),
        ("lm_score", "" if score is None else score),
        ("lm_threshold", "" if status == "measured" else threshold),
        ("lm_status", status),
    )
