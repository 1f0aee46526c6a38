"""How one process asks about the examples it collected: the plan, the run, and what an earlier run left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_lmeval.plugin.collect.collected import collected
from pytest_lmeval.plugin.collect.locate import is_example, is_record
from pytest_lmeval.plugin.private import is_worker, worker_queue
from pytest_lmeval.plugin.settings.models import ENVIRONMENT, RUN, configs
from pytest_lmeval.plugin.settings.report_dir import folder_of_run, held_ledger
from pytest_lmeval.plugin.settings.settings import (
    cache_of,
    label_of,
    resolved_of,
    run_settings,
    scrubber_of_run,
    with_usage_errors,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_lmeval.asking.engine import Engine
    from pytest_lmeval.plugin.evals.session import EvalSession
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.answers import ModelAnswers
    from pytest_lmeval.run.plan import RunPlan
    from pytest_lmeval.run.resume import HeldResults
    from pytest_lmeval.run.run import Run
    from pytest_lmeval.types import ExampleResult

_BUDGET = pytest.StashKey[Any]()
NO_ADAPTER = (
    "no adapter: say which model to ask with --lm-adapter=SPEC (toy, replay:PATH, package.module:Object), "
    "set lm_adapter in the ini file, or override the lm_adapter fixture in a conftest.py"
)


def run_state(config: pytest.Config) -> RunState:
    """Return the state of this process, made when it is first asked for; of several models that of the first."""
    if config.option.lm_models:
        config = configs(config)[0]
    if RUN not in config.stash:
        config.stash[RUN] = RunState(config)
    return config.stash[RUN]


def run_states(config: pytest.Config) -> dict[str, RunState]:
    """Return the state of the run of each model by its label; that of a single one has an empty label."""
    states = map(run_state, configs(config) if config.option.lm_models else [config])
    return {state.label: state for state in states}


class Ahead:
    """Gives the examples of this process in the order in which they will run, each once.

    They are those of the state's model that are ``wanted``. A serial run knows them all. A worker knows what it was
    handed; there the answer None means: nothing at present.
    """

    def __init__(self, state: RunState, wanted: Callable[[object], bool]) -> None:
        self._items = state.selected.items
        self._wanted = (lambda item: wanted(item) and state.is_mine(item)) if state.label else wanted
        self._next = 0
        self._upcoming = worker_queue(state.config) if is_worker(state.config) else None
        self._given: set[int] = set()

    def catch_up(self, position: int) -> None:
        """Pass over everything up to ``position`` in the list of items: its turn has come, or gone."""
        self._next = max(self._next, position + 1)

    def __call__(self) -> Any:
        """Return the next example that will be wanted, or None."""
        return self._from_items() if self._upcoming is None else self._from_queue(self._upcoming())

    def _from_items(self) -> Any:
        while self._next < len(self._items):
            item = self._items[self._next]
            self._next += 1
            if self._wanted(item):
                return item
        return None

    def _from_queue(self, upcoming: Sequence[int]) -> Any:
        for index in upcoming:
            if index not in self._given:
                self._given.add(index)
                if self._wanted(self._items[index]):
                    return self._items[index]
        return None


class Selected(NamedTuple):
    """The items of the session, and how many of them are examples of one model."""

    items: Sequence[pytest.Item] = ()
    examples: int = 0


class RunState:
    """One process's part of a run: from the config to the run, what it holds of an earlier one, and the baseline."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.label = label_of(config)
        self.collected = collected(config)
        self.spec: str = config.option.lm_adapter or config.getini("lm_adapter")
        self.selected = Selected()
        self.ahead: Ahead | None = None
        self.answers: ModelAnswers | None = None
        self.skipped_evals = 0
        self._errors = 0
        self._max_errors: float | None = None

    @cached_property
    def report_dir(self) -> Path:
        """Where the run writes; only to be asked once it is known how many examples it has."""
        return folder_of_run(self.config, self.selected.examples)

    @cached_property
    def asking(self) -> str:
        """A fingerprint of what decides the model's answers besides the requests."""
        from pytest_lmeval.arguments import THINK_TAGS
        from pytest_lmeval.run.settings import fingerprint

        adapter, options, _ = resolved_of(self.config)
        tags = self.config.option.lm_think_tags
        # Not of the default, so that the ledgers of earlier versions can be completed.
        read = {} if tags == THINK_TAGS else {"--lm-think-tags": tags}
        return fingerprint(adapter, {**options, **read}, self.config.option.lm_repeats)

    @cached_property
    def baseline(self) -> RunFile | None:
        """The run to compare with; None without one."""
        if not self.config.option.lm_baseline:
            return None
        from pytest_lmeval.plugin.record.baseline import read_baseline

        return read_baseline(self.config)

    @cached_property
    def baseline_results(self) -> Mapping[tuple[str, str], ExampleResult]:
        """What the baseline knows of each example; empty without one. Read when a failure is first explained."""
        results = () if self.baseline is None else self.baseline.results or ()
        return {(result.task, result.id): result for result in results}

    @cached_property
    def held(self) -> HeldResults:
        """What the interrupted run that is to be completed has found out."""
        from pytest_lmeval.run.resume import HeldResults, read_held

        if not self.config.option.lm_resume:
            return HeldResults()
        from pytest_lmeval.records.answers import read_journal

        path = held_ledger(self.config, self.selected.examples)
        held = with_usage_errors(lambda: read_held(path, self.asking))
        return replace(held, journal=read_journal(path.parent, self.asking))

    @cached_property
    def run(self) -> Run:
        """The part of the run that falls to this process."""
        from pytest_lmeval.records.answers import Journal
        from pytest_lmeval.run.run import Run

        option, stash = self.config.option, self.config.stash
        # A run that becomes the baseline is not judged by the one before.
        settings = run_settings(
            self.config, scrubber_of_run(self.config), None if option.lm_update_baseline else self.baseline
        )
        made = Run(
            replace(settings, adapter=self.spec),
            self.collected.registry,
            lambda spec: make(self.config, self.collected.registry, spec, {}),
            self.held if option.lm_resume else None,
            # Where the run writes is known now: a board that is written on the way would change it.
            Journal(self.report_dir, self.asking),
            # What the run may cost is what all models may together.
            stash.get(_BUDGET, None),
        )
        if self.label:
            stash[_BUDGET] = made.budget
        return made

    @cached_property
    def adapter(self) -> Any:
        """The adapter that the options name."""
        return make(self.config, self.collected.registry, self.spec, dict(self.config.option.lm_adapter_arg))

    @cached_property
    def judge(self) -> Any:
        """The adapter that ``--lm-judge`` names; None without the option."""
        from pytest_lmeval.adapters.resolve import as_judge

        spec = self.config.option.lm_judge
        if not spec:
            return None
        made = make(self.config, self.collected.registry, spec, {})
        return with_usage_errors(lambda: as_judge(made))

    @cached_property
    def plan(self) -> RunPlan:
        """What is known of the examples before anything is asked; of none before they are collected."""
        from pytest_lmeval.run.plan import RunPlan

        return RunPlan(self.collected.registry)

    @cached_property
    def evals(self) -> EvalSession:
        """The eval functions of this process."""
        from pytest_lmeval.plugin.evals.session import EvalSession

        return EvalSession(self)

    @property
    def remarks(self) -> list[str]:
        """What the end of the run says of what this process collected."""
        found = [*self.collected.wanted.notes, *(self.evals.notes if "evals" in vars(self) else ())]
        return [*map(scrubber_of_run(self.config).scrub, found)] if found else found

    def upcoming(self, wanted: Callable[[object], bool]) -> Ahead:
        """Return what gives the items of this run's model that are ``wanted``, each ahead of its turn."""
        return Ahead(self, wanted)

    def ask(self, adapter: Any) -> Engine:
        """Return the engine that answers this process's examples from ``adapter``."""
        self.ahead = Ahead(self, is_record)
        learn(self.config, adapter)  # a fixture may have made it
        self.answers = self.run.ask(self.plan, adapter, self.ahead, self.show_waiting)
        return self.answers.engine

    def answers_through(self, engine: Any, adapter: Any) -> ModelAnswers:
        """Return the answers that an item takes from its ``engine``, the run's or one that a conftest gives."""
        if self.answers is None:
            self.answers = self.run.ask(self.plan, adapter, engine=engine)
        return self.answers if self.answers.engine is engine else self.answers.through(engine)

    def show_waiting(self, engine: Engine, in_flight: int | None = None) -> None:
        """Say, if it is time to, what the run waits for; by default for the requests of ``engine``."""
        recorder: Any = self.config.pluginmanager.getplugin("lmeval-recorder")
        if recorder is not None:
            requests = min(engine.outstanding, engine.policy.concurrency)
            recorder.waiting(requests if in_flight is None else in_flight, engine.wait)

    def excuses(self, result: ExampleResult) -> bool:
        """Tell whether ``--lm-max-errors`` keeps the test of an example that was not scored from failing; count it."""
        if not result.is_error:
            return False
        if self._max_errors is None:
            self._max_errors = self.config.option.lm_max_errors.of(sum(map(self.is_mine, self.selected.items)))
        self._errors += 1
        return self._errors <= self._max_errors

    def is_mine(self, item: Any) -> bool:
        """Tell whether an item is an example of this run's model."""
        return is_example(item) and (not self.label or getattr(item, "label", "") == self.label)


def make(config: pytest.Config, registry: Registry, spec: str, options: Mapping[str, Any]) -> Any:
    """Return a new adapter; what the user can mend is a pytest.UsageError."""
    from pytest_lmeval.adapters.resolve import resolve_adapter

    if not spec:
        raise pytest.UsageError(NO_ADAPTER)
    cache = cache_of(config)
    offline = cache is not None and cache.mode == "read-only"
    root, read = config.rootpath, config.stash[ENVIRONMENT]
    made = with_usage_errors(lambda: resolve_adapter(spec, registry, options, root, offline=offline, read=read))
    with_usage_errors(lambda: learn(config, made))
    return made


def learn(config: pytest.Config, adapter: Any) -> None:
    """Hide from now on the secrets that an adapter holds."""
    from pytest_lmeval.adapters.resolve import secrets_of

    if secrets := secrets_of(adapter):
        from pytest_lmeval.plugin.workers.discretion import be_discreet

        scrubber_of_run(config).learn(secrets)
        be_discreet(config)


def other_adapter(adapter: Any, engine: Any) -> str:
    """Return what is wrong where a conftest gives an example another adapter than the run has; else nothing."""
    if adapter is engine.adapter:
        return ""
    from pytest_lmeval.adapters.resolve import adapter_name

    first, second = adapter_name(engine.adapter), adapter_name(adapter)
    return f"one run has one adapter: this run has {first}, an lm_adapter override gives {second}"
