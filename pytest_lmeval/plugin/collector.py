"""Task files as pytest modules, their examples as pytest functions."""

from __future__ import annotations

import gc
import random
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import BadTaskFile, LmevalError
from pytest_lmeval.formats.task import Task
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.failure import ExampleFailed, explain
from pytest_lmeval.plugin.locate import has_own_format
from pytest_lmeval.plugin.names import ItemNames, file_node
from pytest_lmeval.plugin.private import fixtures_of
from pytest_lmeval.plugin.run_facts import rerun_facts
from pytest_lmeval.plugin.state import RunState, run_state
from pytest_lmeval.report.rerun import rerun_command
from pytest_lmeval.run.library import info_of
from pytest_lmeval.text import item_name, printable
from pytest_lmeval.types import Example, ExampleResult

__all__ = ["ExampleItem", "TaskFile", "collect_task_file"]

_LATE = "its format was registered after the first task file was found; register it in a conftest.py above both"


def run_example(lm_adapter: Any, lm_judge: Any, lm_engine: Any, lm_render: Any, lm_sandbox: Any) -> None:
    """Name, by its arguments, the fixtures that every example gets; :meth:`ExampleItem.runtest` does the work."""


def collect_task_file(path: Path, root: Path, parent: pytest.Collector) -> TaskFile | None:
    """Return the collector of a task file, or None where no format reads such files."""
    from pytest_lmeval.formats.files import is_task_file, misnamed, task_name

    run = run_state(parent.config)
    is_named = path.suffix in run.registry.formats and parent.session.isinitpath(path)
    if not is_task_file(path, run.registry) and not is_named and not run.has_own_loaders:
        late = path.suffix not in run.registry.formats and has_own_format(path, parent.config)
        run.leave(path, _LATE if late else misnamed(path))
        return None
    file: TaskFile = file_node(TaskFile, parent, path)
    file.task_name = task_name(path, root)
    return file


class TaskFile(pytest.Module):
    """A task file. A module rather than a plain file, so that module-scoped fixtures and conftest overrides work."""

    task_name: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj = types.ModuleType(self.path.stem)
        self.run_state = run_state(self.config)
        self._shared: Mapping[str, object] | None = None
        self._shareable = not self.run_state.shows_fixtures
        self.hooks: Any = None
        self.place = ""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return an item per selected example; bad records are a collection error that names them all."""
        with _paused_gc():
            return list(self._collect())

    def _collect(self) -> Iterator[ExampleItem]:
        try:
            tasks = self._load()
        except LmevalError as error:
            self.run_state.bad_files.append(self.nodeid)
            raise self.CollectError(str(error)) from None
        except Exception:  # of a project's own loader: with its traceback
            self.run_state.bad_files.append(self.nodeid)
            raise
        self.add_marker("lmeval")
        names = ItemNames()
        if len(tasks) == 1:
            self.extra_keyword_matches.update({tasks[0].name, tasks[0].metric})
        for task in tasks:
            # Tasks of one file may well number their examples alike.
            yield from self._items(task, names, f"{task.name}." if len(tasks) > 1 else "")

    def share(self, funcargs: Mapping[str, object]) -> None:
        """Keep the fixture values of the file's first item for the others, until the file is torn down."""
        if self._shareable:
            self._shared = dict(funcargs)
            self.addfinalizer(self._forget)

    def share_no_more(self) -> None:
        """Set every item up by itself from now on: a fixture of narrower scope than the file is in play."""
        self._shareable = False
        self._shared = None

    @property
    def shared(self) -> Mapping[str, object] | None:
        """The fixture values that hold for every item of the file, once there are any."""
        return self._shared

    def _forget(self) -> None:
        self._shared = None

    def _load(self) -> Sequence[Task]:
        loaded = self.run_state.load(self.path, self.task_name, is_named=self.session.isinitpath(self.path))
        shown = self.nodeid
        faults = [error.at(shown) for error in loaded.errors]
        if faults and not (self.run_state.allows_bad_tasks and loaded.tasks):
            hopeless = [f"{shown}: no record is left without these"] if self.run_state.allows_bad_tasks else []
            raise BadTaskFile("\n".join([*faults, *hopeless]))
        if faults:
            listing = "\n".join(faults)
            warnings.warn(pytest.PytestWarning(f"{len(faults)} bad record(s) left out:\n{listing}"), stacklevel=1)
        self.run_state.wanted.look_at(loaded)
        for task in loaded.tasks:
            # Once per file: a board lists them all.
            told = tuple(faults) if task is loaded.tasks[0] else ()
            subjects = loaded.subjects.get(task.name)
            info = replace(
                info_of(task, shown, selected=0),
                available=subjects.available if subjects is not None else len(task.examples),
                bad_records=told,
                whole=bool(self.config.option.lm_subject) and subjects is None,
            )
            self.run_state.add_task(info)
        for name in loaded.subjects.keys() - {task.name for task in loaded.tasks}:
            self.run_state.add_task(TaskInfo(name, shown, available=loaded.subjects[name].available, selected=0))
        return loaded.tasks

    def _items(self, task: Task, names: ItemNames, prefix: str) -> Iterator[ExampleItem]:
        fixtureinfo = None
        for example in _selected(task, self.run_state):
            item: ExampleItem = ExampleItem.from_parent(
                self, name=names.unique(prefix + example.id), callobj=run_example, fixtureinfo=fixtureinfo
            )
            item.assign(task, example)
            if prefix:
                item.extra_keyword_matches.update({task.name, task.metric})
            # Items of a file have the same fixtures.
            fixtureinfo = fixtureinfo or fixtures_of(item)
            yield item


class ExampleItem(pytest.Function):
    """One example: ask, score, compare with its threshold."""

    parent: TaskFile
    task: Task
    example: Example
    result: ExampleResult | None = None
    position: int = 0

    def assign(self, task: Task, example: Example) -> None:
        """Say which example this is."""
        self.task = task
        self.example = example
        # Set here, though there already: an attribute that comes up only after a few dozen items were made costs every
        # item its compact form, 640 bytes.
        self.result = None
        self.position = 0
        words = {example.category, example.metric, *_tags(example)}
        self.extra_keyword_matches.update(word for word in words if word)

    @property
    def ihook(self) -> Any:
        """The hooks in charge of the task file, looked up once per file rather than for every call."""
        return self.parent.hooks or super().ihook

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Where reports say the example is: the path from the project's root, made once per file, line and name."""
        if not self.parent.place:
            self.parent.place = super().location[0]
        return self.parent.place, max(0, self.example.line - 1), self.name

    def setup(self) -> None:
        """Set the fixtures up, once per file where that is the same as once per item."""
        if self.parent.shared is None:
            super().setup()
            self.parent.share(self.funcargs)
        else:
            self.funcargs.update(self.parent.shared)

    def runtest(self) -> None:
        """Score the example; fail where its status says so."""
        state = self.parent.run_state
        engine: Any = self.funcargs["lm_engine"]
        if state.ahead is not None:
            state.ahead.catch_up(self.position)
        if other := state.other_adapter(self.funcargs["lm_adapter"], engine):
            result = state.run.unscored(self, other)
        else:
            given: dict[str, Any] = self.funcargs
            result = state.run.result(
                self, given["lm_render"], engine=engine, judge=given["lm_judge"], sandbox=given["lm_sandbox"]
            )
        if state.run.stopped:
            self.session.shouldstop = printable(state.run.stopped, keep="")
        self._keep(result)
        if result.status not in ("passed", "below", "measured", "excluded"):
            before = state.baseline_results.get((result.task, result.id))
            rerun = rerun_command(rerun_facts(self.config), self.parent.nodeid, self.name)
            raise ExampleFailed(explain(result, rerun, before))

    def teardown(self) -> None:
        """Let go of what was asked for this example; where it was skipped, nobody has taken it."""
        self.parent.run_state.run.forget(self)
        super().teardown()

    def attach_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Put the result on the report of the phase that decided it."""
        if call.when == "setup" and report.failed:
            self._keep(self.parent.run_state.run.unscored(self, f"set-up failed: {report.longreprtext[-500:]}"))
            report.user_properties[:] = self.user_properties
        elif call.when != "call":
            return
        elif report.failed and self.result is None:
            self._keep(
                self.parent.run_state.run.unscored(
                    self, f"not scored: {call.excinfo.exconly() if call.excinfo else report.outcome}"
                )
            )
        if self.result is not None:
            report.user_properties.append(("lmeval", self.result.to_json()))
            if not self.parent.run_state.is_worker:
                # For the recorder of this same process, which takes it off again.
                report.__dict__["lmeval_result"] = self.result
            report.__dict__["lm_word"] = self.result.status if self.result.status in ("below", "measured") else ""
            self.result = None

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the example's line counted from 0, and the item's name."""
        return self.path, max(0, self.example.line - 1), self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> Any:
        """Return the explanation alone for a failed example: the traceback would be all ours."""
        if isinstance(excinfo.value, ExampleFailed | LmevalError | pytest.UsageError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args)

    def _keep(self, result: ExampleResult) -> None:
        if self.name != item_name(result.id):
            result = replace(result, item=self.name)
        self.result = result
        properties = [entry for entry in self.user_properties if not entry[0].startswith("lm_")]
        self.user_properties[:] = [*properties, *_properties(result)]


@contextmanager
def _paused_gc() -> Iterator[None]:
    # What is made meanwhile stays: to look through it again and again as it grows would find nothing.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _properties(result: ExampleResult) -> list[tuple[str, object]]:
    # Builtin types only, and no lone surrogate: anything else breaks the transport between processes.
    return [
        ("lm_task", result.task),
        ("lm_example", result.id),
        ("lm_metric", result.metric),
        ("lm_score", "" if result.score is None else result.score),
        ("lm_threshold", "" if result.status == "measured" else result.threshold),
        ("lm_status", result.status),
    ]


def _selected(task: Task, run: RunState) -> Sequence[Example]:
    examples = task.examples
    if run.sample is not None and run.sample < len(examples):
        chosen = random.Random(f"{run.seed}:{task.name}").sample(range(len(examples)), run.sample)
        return [examples[index] for index in sorted(chosen)]
    return examples[: run.limit]


def _tags(example: Example) -> Sequence[str]:
    tags = example.metadata.get("tags", ())
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()
