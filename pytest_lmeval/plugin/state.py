"""What one process of a run knows: its settings, its registry, the tasks it collected and the adapter it asks."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import LmevalError, UnknownName, UsageError
from pytest_lmeval.plugin.ahead import Ahead
from pytest_lmeval.plugin.asking import run_scrubber, run_settings
from pytest_lmeval.plugin.locate import is_below_task_paths, is_example, is_example_id
from pytest_lmeval.plugin.settings import build_registry, ini_floors, load_options, with_usage_errors
from pytest_lmeval.plugin.wanted import Wanted

if TYPE_CHECKING:
    from pytest_lmeval.engine.engine import Engine
    from pytest_lmeval.engine.resume import HeldResults
    from pytest_lmeval.formats.task import LoadedFile, LoadOptions, Task
    from pytest_lmeval.leaderboard.rows import TaskInfo
    from pytest_lmeval.redaction import Scrubber
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.run import Run
    from pytest_lmeval.types import ExampleResult

__all__ = ["RUN", "RunState", "run_state"]


def run_state(config: pytest.Config) -> RunState:
    """Return the state of this process, made when it is first asked for."""
    if RUN not in config.stash:
        config.stash[RUN] = RunState(config)
    return config.stash[RUN]


class RunState:
    """One process's part of a run; lives on the config's stash."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self.config = config
        self.limit: int | None = option.lm_limit
        self.sample: int | None = option.lm_sample
        self.seed: int = option.lm_seed
        self.repeats: int = option.lm_repeats
        self.batch_size: int = option.lm_batch_size
        self.allows_bad_tasks: bool = option.lm_allow_bad_tasks
        self.is_worker = hasattr(config, "workerinput")
        self.shows_fixtures = bool(option.setupshow or option.setuponly or option.setupplan)
        self.spec: str = option.lm_adapter or config.getini("lm_adapter")
        self.tasks: dict[str, TaskInfo] = {}
        self.bad_files: list[str] = []
        self.not_tasks: dict[str, str] = {}
        self.wanted = Wanted(config)
        self._adapter: Any = None
        self.ahead: Ahead | None = None
        self._items: Sequence[pytest.Item] = ()
        self._batches: list[list[Any]] = []

    @cached_property
    def registry(self) -> Registry:
        """Everything known by name: built in, installed, from pyproject.toml and from conftest files."""
        return build_registry(self.config)

    @property
    def has_own_loaders(self) -> bool:
        """Whether a conftest or plugin may read files that no registered format does."""
        return bool(self.registry.loaders or self.config.hook.pytest_lmeval_load_task.get_hookimpls())

    @cached_property
    def asking(self) -> str:
        """A fingerprint of what decides the model's answers besides the requests."""
        from pytest_lmeval.engine.resume import fingerprint

        return fingerprint(*self._resolved, self.repeats)

    @cached_property
    def scrubber(self) -> Scrubber:
        """What hides the secrets among the options of the adapter and the judge."""
        return run_scrubber(self.config, self.spec)

    @property
    def adapter_options(self) -> Mapping[str, Any]:
        """The options that the adapter is made with, those of its profile among them."""
        return self._resolved[1]

    @property
    def _resolved(self) -> tuple[str, Mapping[str, Any]]:
        from pytest_lmeval.adapters.resolve import resolve_profile

        return resolve_profile(self.spec, dict(self.config.option.lm_adapter_arg), self.config.rootpath)

    @cached_property
    def held(self) -> HeldResults:
        """What the interrupted run that is to be completed has found out."""
        from pytest_lmeval.engine.resume import HeldResults, read_held

        option = self.config.option
        if not option.lm_resume:
            return HeldResults()
        return read_held(self.config.invocation_params.dir / option.lm_report_dir / "ledger.jsonl", self.asking)

    @cached_property
    def run(self) -> Run:
        """The part of the run that falls to this process."""
        from pytest_lmeval.run.run import Run

        settings = run_settings(self.config, self.scrubber)
        return Run(settings, self.registry, lambda spec: self.make(spec, {}), self.held, self.spec)

    @cached_property
    def baseline_results(self) -> Mapping[tuple[str, str], ExampleResult]:
        """What the baseline knows of each example; empty without one. Read when a failure is first explained."""
        from pytest_lmeval.plugin.gating import read_baseline

        run = read_baseline(self.config)
        return {(result.task, result.id): result for result in (run.results or ())} if run is not None else {}

    @cached_property
    def load_options(self) -> LoadOptions:
        """What this run asks of every task that it loads."""
        return load_options(self.config)

    def load(self, path: Path, name: str, *, is_named: bool) -> LoadedFile:
        """Return the tasks and bad records of one file; one that is no task file has none unless it was named."""
        from pytest_lmeval.formats.files import is_task_file, load_file
        from pytest_lmeval.formats.task import LoadedFile, complete_file

        loaded: LoadedFile | None = self.config.hook.pytest_lmeval_load_task(path=path)
        if loaded is not None:
            return complete_file(loaded)
        named = is_named and path.suffix in self.registry.formats
        if not is_task_file(path, self.registry) and not named:
            return complete_file(self.registry.load(path) or LoadedFile())
        loaded = load_file(path, name, self.registry, options=self.load_options, is_named=is_named)
        if loaded.is_near_miss or is_below_task_paths(path, self.config):
            self.leave(path, loaded.no_task)
        return loaded

    def leave(self, path: Path, reason: str) -> None:
        """Note a file that lies where tasks do and is none, for the end of the run, if there is a ``reason``."""
        if reason:
            root = self.config.rootpath
            self.not_tasks[(path.relative_to(root) if path.is_relative_to(root) else path).as_posix()] = reason

    def task_again(self, info: TaskInfo) -> Task:
        """Return a task that some process of this run has collected."""
        from pytest_lmeval.formats.files import file_task_name

        path = self.config.rootpath / info.path
        tasks = self.load(path, file_task_name(info.name, path), is_named=True).tasks
        return next(task for task in tasks if task.name == info.name)

    def add_task(self, info: TaskInfo) -> None:
        """Note a collected task; raise UsageError where its name is taken."""
        if info.name in self.tasks:
            taken = self.tasks[info.name].path
            raise UsageError(f"{info.path}: the task name {info.name!r} is taken by {taken}; rename one of the files")
        self.tasks[info.name] = info

    def prepare(self, session: pytest.Session) -> None:
        """Check and plan the run, once it is known which examples were selected and before any model call."""
        items: list[Any] = [item for item in session.items if is_example(item)]
        if self.bad_files:
            return
        try:
            self.wanted.check()
        except UsageError as error:
            self._usage_error(str(error))
        if self.config.option.collectonly or not items:
            return
        for name, selected in Counter(item.task.name for item in items).items():
            self.tasks[name] = replace(self.tasks[name], selected=selected)
        try:
            self._check_thresholds({item.task.name: item.task for item in items})
            self._check_update()
            self._prepare_adapter(items)
        except (LmevalError, pytest.UsageError) as error:
            self._usage_error(str(error))
        self._items = session.items
        # Read before the controller of this very run adds to the ledger.
        _ = self.held
        self._plan(items)
        for file in {item.parent for item in items}:
            # Every conftest is loaded by now: which of them are in charge of a file will not change any more.
            file.hooks = file.ihook
        self._tell_controller()
        # The items stay until the end: the collector need not look at them again and again.
        gc.freeze()

    def adapter(self) -> Any:
        """Return the adapter that the options name, made once per process."""
        if self._adapter is None:
            self._adapter = self.make(self.spec, dict(self.config.option.lm_adapter_arg))
        return self._adapter

    def make(self, spec: str, options: Mapping[str, Any]) -> Any:
        """Return a new adapter; what the user can mend is a pytest.UsageError."""
        from pytest_lmeval.adapters.resolve import resolve_adapter

        if not spec:
            raise pytest.UsageError(_NO_ADAPTER)
        return with_usage_errors(lambda: resolve_adapter(spec, self.registry, options, self.config.rootpath))

    def make_engine(self, adapter: Any) -> Engine:
        """Return the engine that answers this process's examples from ``adapter``."""
        self.ahead = Ahead(self.config, self._items)
        items: list[Any] = [item for item in self._items if is_example(item)]
        engine = self.run.open(adapter, items, self._batches, self.ahead)
        recorder: Any = self.config.pluginmanager.getplugin("lmeval-recorder")
        if recorder is not None:
            engine.on_wait = lambda: recorder.waiting(min(engine.outstanding, engine.policy.own_concurrency))
        return engine

    def other_adapter(self, adapter: Any, engine: Engine) -> str:
        """Return what is wrong where a conftest gives an example another adapter than the run has; else nothing."""
        if adapter is engine.adapter:
            return ""
        from pytest_lmeval.adapters.resolve import adapter_name

        first, second = adapter_name(engine.adapter), adapter_name(adapter)
        return f"one run has one adapter: this run has {first}, an lm_adapter override gives {second}"

    def _check_thresholds(self, tasks: Mapping[str, Task]) -> None:
        # Of the ini file's tasks a run may have only some.
        for name, _ in () if self.wanted.picks_items else self.config.option.lm_threshold:
            if name not in self.tasks and name not in self.registry.metrics:
                raise UnknownName("task or metric in --lm-threshold", name, [*self.tasks, *self.registry.metrics])
        from pytest_lmeval.compare.gate import OVERALL
        from pytest_lmeval.compare.measured import no_score_for_floor

        for name, _ in self.config.option.lm_min_score:
            if name not in self.tasks and name != OVERALL:
                raise UnknownName("task in --lm-min-score", name, [*self.tasks, OVERALL])
        floors = [*dict(self.config.option.lm_min_score), *ini_floors(self.config)]
        scores = {name: task.has_score for name, task in tasks.items()}
        if refusal := no_score_for_floor(floors, scores):
            raise UsageError(refusal)

    def _check_update(self) -> None:
        if self.config.option.lm_update_baseline:
            from pytest_lmeval.plugin.gating import check_update

            check_update(self.config, list(self.tasks.values()))

    def _prepare_adapter(self, items: Sequence[Any]) -> None:
        self.run.prepare(items, self.adapter() if any(_uses_own_adapter(item) for item in items) else None)

    def _plan(self, items: Sequence[Any]) -> None:
        from pytest_lmeval.engine.batches import plan_batches

        for position, item in enumerate(self._items):
            if is_example(item):
                item.__dict__["position"] = position
        self._batches = plan_batches(((item.parent, item) for item in items), self.batch_size)

    def _tell_controller(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["lmeval_tasks"] = json.dumps([asdict(info) for info in self.tasks.values()])
            ids = [item.nodeid for item in self._items if not is_example(item)]
            output["lmeval_foreign"] = json.dumps([nodeid for nodeid in ids if is_example_id(nodeid, self.config)])

    def _usage_error(self, message: str) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["lmeval_usage_error"] = message
        raise pytest.UsageError(message)


RUN = pytest.StashKey[RunState]()

_NO_ADAPTER = (
    "no adapter: say which model to ask with --lm-adapter=SPEC (toy, replay:PATH, package.module:Object), "
    "set lm_adapter in the ini file, or override the lm_adapter fixture in a conftest.py"
)


def _uses_own_adapter(item: Any) -> bool:
    # Which definition of a fixture an item gets is not public; where it cannot be read, ours is assumed. The last
    # definition wins, and one that asks for ``lm_adapter`` itself gets the one before it.
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get("lm_adapter", ())
    for definition in reversed(definitions):
        if "lm_adapter" not in definition.argnames:
            return bool(definition.func.__module__.startswith("pytest_lmeval."))
    return True
