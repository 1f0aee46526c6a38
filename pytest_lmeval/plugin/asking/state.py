"""How one process asks about the examples it collected: the adapter, the plan, and what an earlier run left."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.plugin.asking.ahead import Ahead
from pytest_lmeval.plugin.collect.collected import collected
from pytest_lmeval.plugin.collect.locate import is_example, is_example_id, is_function, is_record
from pytest_lmeval.plugin.private import fixture_definitions, is_worker
from pytest_lmeval.plugin.settings.models import ENVIRONMENT, RUN, configs, label_of
from pytest_lmeval.plugin.settings.report_dir import folder_of_run, held_ledger
from pytest_lmeval.plugin.settings.settings import (
    cache_of,
    max_errors,
    resolved_of,
    run_settings,
    scrubber_of_run,
    with_usage_errors,
)
from pytest_lmeval.plugin.workers.report import add_to_report
from pytest_lmeval.text import portable_path

if TYPE_CHECKING:
    from pytest_lmeval.asking.engine import Engine
    from pytest_lmeval.plugin.evals.session import EvalSession
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.redaction import Scrubber
    from pytest_lmeval.run.resume import HeldResults
    from pytest_lmeval.run.run import Run
    from pytest_lmeval.types import ExampleResult


def run_state(config: pytest.Config) -> RunState:
    """Return the state of this process, made when it is first asked for; of several models that of the first."""
    config = configs(config)[0]
    if RUN not in config.stash:
        config.stash[RUN] = RunState(config)
    return config.stash[RUN]


class RunState:
    """One process's part of a run; lives on the config's stash."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.label = label_of(config)
        self.collected = collected(config)
        self.spec: str = config.option.lm_adapter or config.getini("lm_adapter")
        self._adapter: Any = None
        self._judge: Any = None
        self.ahead: Ahead | None = None
        self._items: Sequence[pytest.Item] = ()
        self._records: Sequence[Any] = ()
        self._examples = 0
        self._batches: list[list[Any]] = []
        self._errors = 0
        self.skipped_evals = 0

    @cached_property
    def asking(self) -> str:
        """A fingerprint of what decides the model's answers besides the requests."""
        from pytest_lmeval.arguments import THINK_TAGS
        from pytest_lmeval.run.resume import fingerprint

        adapter, options, _ = resolved_of(self.config)
        tags = self.config.option.lm_think_tags
        # Not of the default, so that the ledgers of earlier versions can be completed.
        read = {} if tags == THINK_TAGS else {"--lm-think-tags": tags}
        return fingerprint(adapter, {**options, **read}, self.config.option.lm_repeats)

    @cached_property
    def scrubber(self) -> Scrubber:
        """What hides the secrets that the run knows."""
        return scrubber_of_run(self.config)

    @property
    def remarks(self) -> list[str]:
        """What the end of the run says of what this process collected."""
        found = [*self.collected.wanted.said, *(self.evals.notes if "evals" in vars(self) else ())]
        return [*map(self.scrubber.scrub, found)] if found else found

    @property
    def adapter_options(self) -> Mapping[str, Any]:
        """The options that the adapter is made with, those of its profile among them."""
        return resolved_of(self.config).options

    @cached_property
    def held(self) -> HeldResults:
        """What the interrupted run that is to be completed has found out."""
        from pytest_lmeval.records.answers import read_underway
        from pytest_lmeval.run.resume import HeldResults, read_held

        option = self.config.option
        if not option.lm_resume:
            return HeldResults()
        path = held_ledger(self.config, self._examples)
        held = with_usage_errors(lambda: read_held(path, self.asking))
        return replace(held, underway=read_underway(path.parent, self.asking))

    @cached_property
    def run(self) -> Run:
        """The part of the run that falls to this process."""
        from pytest_lmeval.records.answers import Underway
        from pytest_lmeval.run.run import Run

        # A run that becomes the baseline is not judged by the one before.
        renews = self.config.option.lm_update_baseline
        settings = run_settings(self.config, self.scrubber, None if renews else self.baseline)
        made = Run(settings, self.collected.registry, lambda spec: self.make(spec, {}), self.held, self.spec)
        # What the run may cost is what all models may together.
        made.underway = Underway(folder_of_run(self.config, self._examples), self.asking)
        made.shared_budget = self.config.stash.setdefault(_SHARED_BUDGET, []) if self.label else []
        return made

    @cached_property
    def baseline(self) -> RunFile | None:
        """The run to compare with; None without one."""
        if not self.config.option.lm_baseline:
            return None
        from pytest_lmeval.plugin.record.baseline import read_baseline

        return read_baseline(self.config)

    @cached_property
    def evals(self) -> EvalSession:
        """The eval functions of this process."""
        from pytest_lmeval.plugin.evals.session import EvalSession

        return EvalSession(self)

    @property
    def items(self) -> Sequence[pytest.Item]:
        """All items of this process, in the order in which they run."""
        return self._items

    def show_waiting(self, in_flight: int, engine: Engine) -> None:
        """Say, if it is time to, what the run waits for."""
        recorder: Any = self.config.pluginmanager.getplugin("lmeval-recorder")
        if recorder is not None:
            recorder.waiting(in_flight, engine.wait)

    @cached_property
    def baseline_results(self) -> Mapping[tuple[str, str], ExampleResult]:
        """What the baseline knows of each example; empty without one. Read when a failure is first explained."""
        results = () if self.baseline is None else self.baseline.results or ()
        return {(result.task, result.id): result for result in results}

    def prepare(self, session: pytest.Session) -> None:
        """Check and plan the run, once it is known which examples were selected and before any model call."""
        items = self._mine(session.items)
        if self.collected.bad_files:
            return
        if items and not self.config.option.collectonly:
            items = self._with_adapter(items, session)
        self._check_wanted()
        if self.config.option.collectonly or not items:
            return
        # Counted by ids: an item that is there twice does not stand for another.
        ids = {(item.task.name, item.example.id) for item in items}
        for name, selected in Counter(name for name, _ in ids).items():
            self.collected.tasks[name] = replace(self.collected.tasks[name], selected=selected)
        try:
            tasks = {item.task.name: item.task for item in items}
            self.collected.wanted.check_names(self.collected.tasks, tasks, self.collected.registry.metrics)
            if self.config.option.lm_update_baseline:
                from pytest_lmeval.plugin.record.baseline import check_update

                check_update(self.config, list(self.collected.tasks.values()))
            self._examples = len(items)
            self._prepare_adapter(items)
            # Read before the controller of this very run adds to the ledger.
            _ = self.held
        except (LmevalError, pytest.UsageError) as error:
            self._usage_error(str(error))
        self._items = session.items
        records = self._records = [item for item in items if is_record(item)]
        self._plan(records)
        if len(records) < len(items) and any(is_function(item) for item in items):
            from pytest_lmeval.plugin.evals.hooks import EvalHooks

            self.config.pluginmanager.register(EvalHooks(self.evals), f"lmeval-evals-{self.label}")
        for file in {item.parent for item in records}:
            # Every conftest is loaded by now: which of them are in charge of a file will not change any more.
            file.hooks = file.ihook
        self._tell_controller()
        # The items stay until the end: the collector need not look at them again and again.
        gc.freeze()

    def _check_wanted(self) -> None:
        try:
            self.collected.wanted.check()
        except UsageError as error:
            self._usage_error(str(error))

    def _mine(self, items: Sequence[pytest.Item]) -> list[Any]:
        mine = [item for item in items if is_example(item)]
        return [item for item in mine if self._is_mine(item)] if self.label else mine

    def _is_mine(self, item: Any) -> bool:
        return not self.label or getattr(item, "label", "") == self.label

    def adapter(self) -> Any:
        """Return the adapter that the options name, made once per process."""
        if self._adapter is None:
            self._adapter = self.make(self.spec, dict(self.config.option.lm_adapter_arg))
        return self._adapter

    def judge(self) -> Any:
        """Return the adapter that ``--lm-judge`` names, made once per process; None without the option."""
        spec = self.config.option.lm_judge
        if self._judge is None and spec:
            from pytest_lmeval.adapters.resolve import as_judge

            made = self.make(spec, {})
            self._judge = with_usage_errors(lambda: as_judge(made))
        return self._judge

    def make(self, spec: str, options: Mapping[str, Any]) -> Any:
        """Return a new adapter; what the user can mend is a pytest.UsageError."""
        from pytest_lmeval.adapters.resolve import resolve_adapter

        if not spec:
            raise pytest.UsageError(_NO_ADAPTER)
        cache = cache_of(self.config)
        offline = cache is not None and cache.mode == "read-only"
        registry, root, read = self.collected.registry, self.config.rootpath, self.config.stash[ENVIRONMENT]
        made = with_usage_errors(lambda: resolve_adapter(spec, registry, options, root, offline=offline, read=read))
        with_usage_errors(lambda: _learn(self.config, made))
        return made

    def excuses(self, result: ExampleResult) -> bool:
        """Tell whether ``--lm-max-errors`` keeps the test of an example that was not scored from failing; count it."""
        if not result.is_error:
            return False
        self._errors += 1
        return self._errors <= self._max_errors

    @cached_property
    def _max_errors(self) -> float:
        return max_errors(self.config).of(sum(is_example(item) and self._is_mine(item) for item in self._items))

    def make_engine(self, adapter: Any) -> Engine:
        """Return the engine that answers this process's examples from ``adapter``."""
        wanted = (lambda item: is_record(item) and self._is_mine(item)) if self.label else is_record
        self.ahead = Ahead(self.config, self._items, wanted)
        _learn(self.config, adapter)  # a fixture may have made it
        return self.run.open(
            adapter,
            self._records,
            self._batches,
            self.ahead,
            lambda asked: self.show_waiting(min(asked.outstanding, asked.policy.own_concurrency), asked),
        )

    def other_adapter(self, adapter: Any, engine: Engine) -> str:
        """Return what is wrong where a conftest gives an example another adapter than the run has; else nothing."""
        if adapter is engine.adapter:
            return ""
        from pytest_lmeval.adapters.resolve import adapter_name

        first, second = adapter_name(engine.adapter), adapter_name(adapter)
        return f"one run has one adapter: this run has {first}, an lm_adapter override gives {second}"

    def _with_adapter(self, items: list[Any], session: pytest.Session) -> list[Any]:
        """Return ``items``; none, and all skipped, where they are evals of a project that runs without a model."""
        if self.spec:
            return items
        without = [item for item in items if not is_record(item)]
        if len(without) < len(items) or not all(_uses_ours(item, "lm_adapter") for item in items):
            return items
        typed = [str(argument) for argument in self.config.invocation_params.args]
        if len(items) == len(session.items) or any(argument.startswith("--lm-") for argument in typed):
            self._usage_error(_NO_ADAPTER)
        for item in items:
            item.attach_result = None
            item.add_marker(pytest.mark.skip(reason="no --lm-adapter"))
        self.skipped_evals = len(items)
        add_to_report(self.config, skipped_evals=len(items))
        return []

    def _prepare_adapter(self, items: Sequence[Any]) -> None:
        for item in {item.parent: item for item in items}.values():
            _check_scopes(item)
        if not self.spec and not any(item.task.asks_model for item in items):
            self._adapter = self.make("none", {})
        adapter = self.adapter() if any(_uses_ours(item, "lm_adapter") for item in items) else None
        self.run.prepare(items, adapter, self.judge(), lambda item: not _uses_ours(item, "lm_judge"))

    def _plan(self, records: Sequence[Any]) -> None:
        from pytest_lmeval.asking.policy import plan_batches

        for position, item in enumerate(self._items):
            if is_example(item):
                item.__dict__["position"] = position
        self._batches = plan_batches(((item.parent, item) for item in records), self.config.option.lm_batch_size)

    def _tell_controller(self) -> None:
        if is_worker(self.config):
            ids = [item.nodeid for item in self._items if not is_example(item)]
            foreign = [nodeid for nodeid in ids if is_example_id(nodeid, self.config)]
            add_to_report(self.config, tasks=[asdict(info) for info in self.collected.tasks.values()], foreign=foreign)

    def _usage_error(self, message: str) -> None:
        add_to_report(self.config, usage_error=message)
        raise pytest.UsageError(message)


_SHARED_BUDGET = pytest.StashKey[list[Any]]()

_NO_ADAPTER = (
    "no adapter: say which model to ask with --lm-adapter=SPEC (toy, replay:PATH, package.module:Object), "
    "set lm_adapter in the ini file, or override the lm_adapter fixture in a conftest.py"
)


def _learn(config: pytest.Config, adapter: Any) -> None:
    """Hide from now on the secrets that an adapter holds."""
    from pytest_lmeval.adapters.resolve import secrets_of

    if secrets := secrets_of(adapter):
        from pytest_lmeval.plugin.workers.discretion import be_discreet

        scrubber_of_run(config).learn(secrets)
        be_discreet(config)


def _check_scopes(item: Any) -> None:
    """Raise UsageError where a conftest file gives a model for one test at a time: the run asks ahead of its tests."""
    for name in ("lm_adapter", "lm_judge"):
        for definition in fixture_definitions(item, name):
            if definition.params is not None:
                raise UsageError(
                    f"{_place(definition)}: the fixture {name} is parametrised, and a run asks each model by itself; "
                    "name the models with --lm-adapter=LABEL=SPEC, once for each"
                )
            if definition.scope != "session":
                raise UsageError(
                    f"{_place(definition)}: the fixture {name} has the scope {definition.scope!r}, and one run has one "
                    "model; write @pytest.fixture(scope='session')"
                )


def _place(definition: Any) -> str:
    code = definition.func.__code__
    return f"{portable_path(code.co_filename)}:{code.co_firstlineno}"


def _uses_ours(item: Any, fixture: str) -> bool:
    # A definition that asks for the fixture itself gets the one before it. Where none can be read, ours is assumed.
    for definition in reversed(fixture_definitions(item, fixture)):
        if fixture not in definition.argnames:
            return bool(definition.func.__module__.startswith("pytest_lmeval."))
    return True
