"""One process's part of a run: the files that it has to do with, what asks and scores, and what comes next."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.plugin.collect.collected import Collected
from pytest_lmeval.plugin.collect.locate import is_example, is_example_id, is_mine, is_record
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.plugin.private.items import fixture_definitions
from pytest_lmeval.plugin.private.workers import is_worker, worker_queue
from pytest_lmeval.plugin.settings.models import (
    COLLECTED,
    ENVIRONMENT,
    RUN,
    SPARES,
    configs,
    folder_of_run,
    held_ledger,
)
from pytest_lmeval.plugin.settings.settings import (
    label_of,
    registry_of,
    resolved_of,
    run_settings,
    scrubber_of_run,
    spec_of,
    with_usage_errors,
)
from pytest_lmeval.text import portable_path, printable
from pytest_lmeval.types import NO_POLICY

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
    "no adapter: say which model to ask with --lm-adapter=SPEC (openai:MODEL, anthropic:MODEL, hf:PATH, replay:PATH, "
    "package.module:Object, or toy, which asks none), set lm_adapter in the ini file (lmeval init does), or override "
    "the lm_adapter fixture in a conftest.py"
)


class RunFiles(NamedTuple):
    """Where the run of one model writes, the run it is compared with, and the one that it completes, if there are any.

    ``asking`` is a fingerprint of what decides the model's answers besides the requests.
    """

    report_dir: Path
    asking: str
    baseline: RunFile | None
    held: HeldResults | None


def files_of_run(config: pytest.Config, examples: int) -> RunFiles:
    """Return the files of a run of so many ``examples``, read before the run adds to any of them."""
    from pytest_lmeval.arguments import THINK_TAGS
    from pytest_lmeval.run.settings import fingerprint

    adapter, options, _ = resolved_of(config)
    option, baseline = config.option, None
    # Not of the default, so that the ledgers of earlier versions can be completed.
    tags = {} if option.lm_think_tags == THINK_TAGS else {"--lm-think-tags": option.lm_think_tags}
    asking = fingerprint(adapter, {**options, **tags}, option.lm_repeats or 1)
    if option.lm_baseline:
        from pytest_lmeval.plugin.common.baseline import read_baseline

        baseline = read_baseline(config)
    held = _held(config, examples, asking) if option.lm_resume else None
    return RunFiles(folder_of_run(config, examples), asking, baseline, held)


def _held(config: pytest.Config, examples: int, asking: str) -> HeldResults:
    from pytest_lmeval.records.answers import read_journal
    from pytest_lmeval.run.resume import read_held

    path = held_ledger(config, examples)
    held = with_usage_errors(lambda: read_held(path, asking))
    return replace(held, journal=read_journal(path.parent, asking))


def make_run(config: pytest.Config, registry: Registry, files: RunFiles) -> Run:
    """Return what plans, asks and scores the part of a run that falls to this process."""
    from pytest_lmeval.records.answers import Journal
    from pytest_lmeval.run.answers import Engines
    from pytest_lmeval.run.run import Run

    # A run that becomes the baseline is not judged by the one before.
    baseline = None if config.option.lm_update_baseline else files.baseline
    settings = run_settings(config, scrubber_of_run(config), baseline)
    spent = 0.0 if files.held is None else files.held.cost
    # What the run may cost is what all models may together.
    spares = config.stash.get(SPARES, None)
    start = None if spares is None else spares.take
    engines = Engines(settings, spent, config.stash.get(_BUDGET, None), partial(show_waiting, config), start)
    config.stash[_BUDGET] = engines.budget
    return Run(
        settings,
        registry,
        lambda spec: _resolved(config, registry, spec, {}),
        files.held,
        Journal(files.report_dir, files.asking, settings.scrubber),
        engines,
    )


def stop_session(session: pytest.Session, reason: str) -> None:
    """Have pytest run no further item; the board, if it is shown, says why."""
    where = "stopped: the reason is under the leaderboard"
    session.shouldstop = where if session.config.getoption("verbose", 0) >= -1 else printable(reason, keep="")


def show_waiting(config: pytest.Config, engine: Any, in_flight: int | None = None) -> None:
    """Say, if it is time to, what the run waits for; by default for the requests of ``engine``."""
    recorder: Any = config.pluginmanager.getplugin("lmeval-recorder")
    if recorder is not None:
        requests = min(len(engine.jobs), engine.policy.concurrency)
        recorder.waiting(requests if in_flight is None else in_flight, engine.wait)


def run_state(config: pytest.Config) -> RunState:
    """Return the state of this process; of several models that of the first. Without examples it has nothing to ask."""
    if config.option.lm_models:
        config = configs(config)[0]
    if RUN not in config.stash:
        from pytest_lmeval.run.plan import RunPlan

        files, registry = files_of_run(config, 0), registry_of(config)
        config.stash[RUN] = RunState(
            config, files, make_run(config, registry, files), RunPlan(registry), label_of(config)
        )
    return config.stash[RUN]


def run_states(config: pytest.Config) -> dict[str, RunState]:
    """Return the state of the run of each model by its label; that of a single one has an empty label."""
    if not config.option.lm_models:
        return {"": run_state(config)}
    return {(state := run_state(one)).label: state for one in configs(config)}


class Ahead:
    """Gives the examples of this process in the order in which they will run, each once.

    They are those of ``items`` that are ``wanted``, of several models those of the one with the ``label``. A serial
    run knows them all. A worker knows what it was handed; there the answer None means: nothing at present.
    """

    def __init__(
        self, config: pytest.Config, label: str, items: Sequence[Any], wanted: Callable[[object], bool]
    ) -> None:
        self._items = items
        self._wanted = (lambda item: getattr(item, "label", "") == label and wanted(item)) if label else wanted
        self._next = 0
        self._upcoming = worker_queue(config) if is_worker(config) else None
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


@dataclass(eq=False)
class RunState:
    """One process's part of the run of one model, with the ``items`` of its session.

    ``adapter`` and ``judge`` are those that were needed to plan. ``ahead`` and ``answers`` are there once it asks,
    ``evals`` once an eval function or the fixture ``lm`` needs them.
    ``began_s`` is the CPU time of this thread at the start.
    """

    config: pytest.Config
    files: RunFiles
    run: Run
    plan: RunPlan
    label: str = ""
    items: Sequence[pytest.Item] = ()
    adapter: Any = None
    judge: Any = None
    ahead: Ahead | None = None
    answers: ModelAnswers | None = None
    evals: EvalSession | None = None
    errors: int = 0
    began_s: float = field(default_factory=thread_time)

    @cached_property
    def baseline_results(self) -> Mapping[tuple[str, str], ExampleResult]:
        """What the baseline knows of each example; empty without one. Read when a failure is first explained."""
        baseline = self.files.baseline
        return {} if baseline is None else {(result.task, result.id): result for result in baseline.results or ()}

    def upcoming(self, wanted: Callable[[object], bool]) -> Ahead:
        """Return what gives the items of this run's model that are ``wanted``, each ahead of its turn."""
        return Ahead(self.config, self.label, self.items, wanted)

    def ask(self, adapter: Any, judge: Any = None) -> Engine:
        """Return the engine that answers this process's examples from ``adapter``; ``judge`` may play users."""
        self.ahead = self.upcoming(is_record)
        if adapter is None or adapter is not self.adapter:  # a fixture has made it
            self._check_given(adapter)
            learn(self.config, adapter)
        self.answers = self.run.ask(self.plan, adapter, self.ahead, judge=judge)
        return self.answers.engine

    def _check_given(self, adapter: Any) -> None:
        """End the run where a conftest file gives what is no adapter: else each example would fail for it."""
        from pytest_lmeval.adapters.facts import check_adapter
        from pytest_lmeval.plugin.common.report import add_to_report

        try:
            if adapter is None:
                raise UsageError("the fixture lm_adapter returned None; expected an adapter")
            check_adapter(adapter, "fixture lm_adapter")
        except UsageError as error:
            stopped = f"stopped: {error}"
            self.run.stop(stopped)
            stop_session(self.items[0].session, stopped)
            add_to_report(self.config, stopped=stopped)
            raise pytest.UsageError(str(error)) from None

    def answers_through(self, engine: Any, adapter: Any) -> ModelAnswers:
        """Return the answers that an item takes from its ``engine``, the run's or one that a conftest gives."""
        if self.answers is None:
            self.answers = self.run.ask(self.plan, adapter, engine=engine, judge=self.judge)
        return self.answers if self.answers.engine is engine else self.answers.through(engine)

    def excuses(self, result: ExampleResult) -> bool:
        """Tell whether ``--lm-max-errors`` keeps the test of an example that was not scored from failing; count it."""
        self.errors += result.is_error
        return bool(result.is_error and self.errors <= self.config.option.lm_max_errors.of(len(self.plan.units)))


def make_judge(config: pytest.Config, registry: Registry) -> Any:
    """Return a new adapter that ``--lm-judge`` names; None without the option."""
    from pytest_lmeval.adapters.resolve import as_judge

    spec = config.option.lm_judge
    if not spec:
        return None
    try:
        made = make(config, registry, spec, dict(config.option.lm_judge_arg))
    except pytest.UsageError as error:
        raise pytest.UsageError(
            f"--lm-judge={spec}: {error}; --lm-judge-arg=NAME=VALUE gives the judge an option"
        ) from None
    return with_usage_errors(lambda: as_judge(made))


def make_user(config: pytest.Config, registry: Registry) -> Any:
    """Return a new adapter that ``--lm-user`` names."""
    from pytest_lmeval.adapters.resolve import as_judge

    made = make(config, registry, config.option.lm_user, {})
    return with_usage_errors(lambda: as_judge(made))


def make(config: pytest.Config, registry: Registry, spec: str, options: Mapping[str, Any]) -> Any:
    """Return a new adapter; what the user can mend is a pytest.UsageError."""
    if not spec:
        raise pytest.UsageError(NO_ADAPTER)
    return with_usage_errors(lambda: _resolved(config, registry, spec, options))


def _resolved(config: pytest.Config, registry: Registry, spec: str, options: Mapping[str, Any]) -> Any:
    from pytest_lmeval.adapters.resolve import resolve_adapter

    offline = config.option.lm_cache_mode == "read-only"
    root, read = config.rootpath, config.stash[ENVIRONMENT]
    made = resolve_adapter(spec, registry, options, root, offline=offline, read=read)
    learn(config, made)
    return made


def learn(config: pytest.Config, adapter: Any) -> None:
    """Hide from now on the secrets that an adapter holds."""
    from pytest_lmeval.adapters.facts import secrets_of

    if secrets := secrets_of(adapter):
        from pytest_lmeval.plugin.common.discretion import be_discreet

        scrubber_of_run(config).learn(secrets)
        be_discreet(config)


def other_adapter(adapter: Any, engine: Any) -> str:
    """Return what is wrong where a conftest gives an example another adapter than the run has; else nothing."""
    if adapter is engine.adapter:
        return ""
    from pytest_lmeval.adapters.facts import adapter_name

    first, second = adapter_name(engine.adapter), adapter_name(adapter)
    return f"one run has one adapter: this run has {first}, an lm_adapter override gives {second}"


def begin_spares(config: pytest.Config) -> None:
    """Begin a process for each model that needs one by its spec, once in a session; the end of it ends unused ones.

    Call it when a task is found: a session without tasks starts no process.
    """
    option = config.option
    # A worker has only a part of the requests in flight; under a limit on cost no process asks for this one.
    is_alone = is_worker(config) or option.lm_max_cost is not None
    if SPARES in config.stash or is_alone or option.collectonly or config.getoption("setuponly", False):
        return
    from pytest_lmeval.adapters.resolve import server_kind

    specs = [spec for _, spec in option.lm_models] or [spec_of(config)]
    try:
        kinds = [kind for spec in specs if (kind := server_kind(spec, config.rootpath))]
    except LmevalError:  # of a profile that cannot be read: making the adapter says so
        kinds = []
    from pytest_lmeval.asking.hosting import Spares

    client = "pytest_lmeval.adapters.http.transport"
    spares = config.stash[SPARES] = Spares([(f"pytest_lmeval.adapters.{kind}.adapter", client) for kind in kinds])
    config.add_cleanup(spares.close)


def prepare(tasks: Collected, session: pytest.Session) -> None:
    """Check and plan the run of each model, once it is known which examples were selected, before any model call."""
    if tasks.bad_files:
        return
    own = configs(session.config)
    for config in own:
        try:
            _prepare(config, tasks, session)
            if config is own[-1] and not config.option.lm_shard:  # other shards may have what is left
                _check_left(own)
        except (LmevalError, pytest.UsageError) as error:
            add_to_report(config, usage_error=str(error))
            raise pytest.UsageError(str(error)) from None


def _check_left(own: Sequence[pytest.Config]) -> None:
    from pytest_lmeval.run.plan import check_left

    check_left(*[config.stash[RUN].plan for config in own if RUN in config.stash])


def _prepare(config: pytest.Config, tasks: Collected, session: pytest.Session) -> None:
    label, collects = label_of(config), config.option.collectonly
    items = [item for item in session.items if is_mine(item, label)]
    records = [*filter(is_record, items)]
    if items and not (collects or records or spec_of(config)):
        items = _with_model(items, tasks, config, session)
    tasks.wanted.check()
    if collects or not items:
        return
    _check_tasks(items, tasks, config)
    others = [begin for prepare in tasks.preparing if (begin := prepare(items, session)) is not None]
    state = config.stash[RUN] = _planned(items, records, config, session, label)
    for begin in others:
        begin(state)
    _begin(items, records, state, tasks)


def _with_model(items: list[Any], tasks: Collected, config: pytest.Config, session: pytest.Session) -> list[Any]:
    """Return the evals of a project that gives a model itself; none, and all skipped, of one that runs without."""
    if not all(_uses_ours(item, "lm_adapter") for item in items):
        return items
    typed = [str(argument) for argument in config.invocation_params.args]
    if len(items) == len(session.items) or any(argument.startswith("--lm-") for argument in typed):
        raise pytest.UsageError(NO_ADAPTER)
    for item in items:
        item.attach_result = None
        item.add_marker(pytest.mark.skip(reason="no --lm-adapter"))
    tasks.skipped_evals = len(items)
    add_to_report(config, skipped_evals=len(items))
    return []


def _check_tasks(items: Sequence[Any], collected: Collected, config: pytest.Config) -> None:
    """Count the selected examples of each task; raise UsageError for options that name none, and a bad baseline."""
    tasks = collected.tasks
    # Counted by ids: an item may be there twice.
    ids = {(item.task.name, item.example.id) for item in items}
    for name, selected in Counter(name for name, _ in ids).items():
        tasks[name] = replace(tasks[name], selected=selected)
    own = []
    for item in items:
        if item.example.policy is not NO_POLICY:
            own.append(item)
    if own:
        from pytest_lmeval.run.repeats import check_repeats

        check_repeats(own, config.option.lm_repeats)
    known = {item.task.name: item.task for item in items}
    collected.wanted.check_names(tasks, known, collected.registry.metrics)
    if config.option.lm_pair_by == "id" and config.option.lm_baseline:
        from pytest_lmeval.compare.pairing import check_ids

        check_ids(tasks.values(), "--lm-pair-by=id")
    if config.option.lm_update_baseline:
        from pytest_lmeval.plugin.common.baseline import check_update

        check_update(config, list(tasks.values()))


def _planned(
    items: Sequence[Any], records: Sequence[Any], config: pytest.Config, session: pytest.Session, label: str
) -> RunState:
    """Return the planned run of ``items``; raise UsageError where a conftest gives a model for a single test."""
    for item in {item.parent: item for item in items}.values():
        _check_scopes(item)
    registry = config.stash[COLLECTED].registry
    files = files_of_run(config, len(items))
    run = make_run(config, registry, files)
    adapter, spec = None, run.settings.adapter
    uses_ours = any(_uses_ours(item, "lm_adapter") for item in items)
    if not spec and not any(item.task.asks_model for item in items):
        adapter = make(config, registry, "none", {})
    elif uses_ours:
        adapter = make(config, registry, spec, dict(config.option.lm_adapter_arg))
    judge = make_judge(config, registry)
    if config.option.lm_user:
        run.judges.user_adapter = make_user(config, registry)
    files_of = {item: item.parent for item in records}
    plan = run.plan(
        items, adapter if uses_ours else None, judge, lambda item: not _uses_ours(item, "lm_judge"), files_of.get
    )
    return RunState(config, files, run, plan, label, session.items, adapter, judge)


def _begin(items: Sequence[Any], records: Sequence[Any], state: RunState, collected: Collected) -> None:
    """Make the items ready for their turns, and tell the controller of them."""
    config, known = state.config, {*items}
    shared: dict[frozenset[str], set[str]] = {}
    item: Any
    for position, item in enumerate(state.items):
        if item in known:
            item.position = position
            # What -k looked at has been looked at: items of the same words need one set.
            words = item.extra_keyword_matches
            item.extra_keyword_matches = shared.setdefault(frozenset(words), words)
    for file in {item.parent for item in records}:
        # Every conftest is loaded by now: which of them are in charge of a file will not change any more.
        file.hooks = file.ihook
    if is_worker(config):
        ids = [item.nodeid for item in state.items if not is_example(item)]
        foreign = [nodeid for nodeid in ids if is_example_id(nodeid, config)]
        add_to_report(config, tasks=[asdict(info) for info in collected.tasks.values()], foreign=foreign)
    # The items stay until the end: the collector need not look at them again and again.
    gc.freeze()


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
