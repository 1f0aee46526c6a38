"""Plan this process's run, and hold its files, adapters, answers and upcoming examples."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from pytest_lmeval.arguments import WORTH_A_PROCESS
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
    report_dir,
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
    "no adapter: name the model with --lm-adapter=SPEC (openai:MODEL, anthropic:MODEL, hf:PATH, replay:PATH, "
    "package.module:Object, or toy, which asks none), set lm_adapter in the ini file (lmeval init does), or override "
    "the lm_adapter fixture in a conftest.py"
)


class RunFiles(NamedTuple):
    """The folder and baseline of one model's run, and the earlier results that the run resumes.

    ``asking`` is a fingerprint of all settings that affect the model's answers, but does not cover the requests.
    """

    report_dir: Path
    asking: str
    baseline: RunFile | None
    held: HeldResults | None


def files_of_run(config: pytest.Config, examples: int) -> RunFiles:
    """Read the files that a run of ``examples`` examples needs, before the run overwrites any of them."""
    from pytest_lmeval.arguments import THINK_TAGS
    from pytest_lmeval.run.settings import fingerprint

    adapter, options, _ = resolved_of(config)
    option, baseline = config.option, None
    # Omit defaults, so that the run can resume ledgers from earlier versions.
    tags = {} if option.lm_think_tags == THINK_TAGS else {"--lm-think-tags": option.lm_think_tags}
    asking = fingerprint(adapter, {**options, **tags}, option.lm_repeats or 1)
    if option.lm_baseline:
        from pytest_lmeval.plugin.common.baseline import read_baseline

        baseline = read_baseline(config)
    held = _held(config, examples, asking) if option.lm_resume else None
    return RunFiles(folder_of_run(config, examples), asking, baseline, held)


def _held(config: pytest.Config, examples: int, asking: str) -> HeldResults:
    from pytest_lmeval.records.answers import read_journal
    from pytest_lmeval.records.tool_calls import read_calls
    from pytest_lmeval.run.resume import read_held

    path = held_ledger(config, examples)
    held = with_usage_errors(lambda: read_held(path, asking))
    # A selection that continues the whole run's ledger must not repeat the whole run's calls.
    calls = read_calls((report_dir(config), path.parent), asking)
    return replace(held, journal=read_journal(path.parent, asking), calls=calls)


def make_run(config: pytest.Config, registry: Registry, files: RunFiles) -> Run:
    """Create the run that plans, queries and scores in this process."""
    from pytest_lmeval.records.answers import Journal
    from pytest_lmeval.run.answers import Engines
    from pytest_lmeval.run.run import Run

    # The old baseline does not gate a run that updates the baseline.
    baseline = None if config.option.lm_update_baseline else files.baseline
    settings = run_settings(config, scrubber_of_run(config), baseline)
    spent = 0.0 if files.held is None else files.held.cost
    spares = config.stash.get(SPARES, None)
    start = None if spares is None else spares.take
    # All models share one budget.
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
    """Stop the session for ``reason``, which the board reports."""
    where = "stopped: the reason is under the leaderboard"
    session.shouldstop = where if session.config.getoption("verbose", 0) >= -1 else printable(reason, keep="")


def show_waiting(config: pytest.Config, engine: Any, in_flight: int | None = None) -> None:
    """Update the progress line if an update is due; by default, ``in_flight`` counts the requests of ``engine``."""
    recorder: Any = config.pluginmanager.getplugin("lmeval-recorder")
    if recorder is not None:
        requests = min(len(engine.jobs), engine.policy.concurrency)
        recorder.waiting(requests if in_flight is None else in_flight, engine.wait)


def run_state(config: pytest.Config) -> RunState:
    """Return this process's state for the run, or for the first model's run; without examples, its plan is empty."""
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
    """Return each model's run state by label; a single model has an empty label."""
    if not config.option.lm_models:
        return {"": run_state(config)}
    return {(state := run_state(one)).label: state for one in configs(config)}


class Ahead:
    """Iterates over this process's upcoming examples that belong to the model ``label`` and that ``wanted`` accepts.

    In a worker, the iterator may also return None because the controller has not assigned more items yet.
    """

    def __init__(
        self, config: pytest.Config, label: str, items: Sequence[Any], wanted: Callable[[object], bool]
    ) -> None:
        self._items = items
        self._wanted = (lambda item: getattr(item, "label", "") == label and wanted(item)) if label else wanted
        self._next = 0
        self._upcoming = worker_queue(config) if is_worker(config) else None
        self._given: set[int] = set()

    def skip_to(self, position: int) -> None:
        """Skip all items before ``position``."""
        self._next = max(self._next, position + 1)

    def __call__(self) -> Any:
        """Return the next wanted example, or None."""
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
    """One model's run in this process, with the session's ``items``.

    ``adapter`` and ``judge`` are set if planning needed them. ``ahead`` and ``answers`` are set when requests start,
    and ``evals`` is set when an eval function or the fixture ``lm`` first needs it. ``began_s`` is the CPU time that
    this thread had used by the start.
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
        """The baseline's results by task and id, or an empty dict, read only if a failure needs an explanation."""
        baseline = self.files.baseline
        return {} if baseline is None else {(result.task, result.id): result for result in baseline.results or ()}

    def upcoming(self, wanted: Callable[[object], bool]) -> Ahead:
        """Return an iterator over the ``wanted`` items for this run's model that have not run yet."""
        return Ahead(self.config, self.label, self.items, wanted)

    def ask(self, adapter: Any, judge: Any = None) -> Engine:
        """Return the engine that queries ``adapter`` for this process's examples; ``judge`` may simulate users."""
        self.ahead = self.upcoming(is_record)
        if adapter is None or adapter is not self.adapter:  # an overriding fixture made it
            self._check_given(adapter)
            learn(self.config, adapter)
        self.answers = self.run.ask(self.plan, adapter, self.ahead, judge=judge)
        return self.answers.engine

    def _check_given(self, adapter: Any) -> None:
        """End the run, instead of failing each example, if a conftest provides something other than an adapter."""
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
        """Return the answers from an item's ``engine``, which is the run's engine or an engine from a conftest."""
        if self.answers is None:
            self.answers = self.run.ask(self.plan, adapter, engine=engine, judge=self.judge)
        return self.answers if self.answers.engine is engine else self.answers.through(engine)

    def excuses(self, result: ExampleResult) -> bool:
        """Count the result if it is an error; return True if ``--lm-max-errors`` tolerates the error."""
        self.errors += result.is_error
        return bool(result.is_error and self.errors <= self.config.option.lm_max_errors.of(len(self.plan.units)))


def make_judge(config: pytest.Config, registry: Registry, role: Literal["judge", "user"] = "judge") -> Any:
    """Create the adapter for ``--lm-judge`` or ``--lm-user``; return None without the option."""
    spec, given = {
        "judge": (config.option.lm_judge, config.option.lm_judge_arg),
        "user": (config.option.lm_user, config.option.lm_user_arg),
    }[role]
    if not spec:
        return None
    try:
        made = make(config, registry, spec, dict(given))
    except pytest.UsageError as error:
        raise pytest.UsageError(
            f"--lm-{role}={spec}: {error}; --lm-{role}-arg=NAME=VALUE gives the {role} an option"
        ) from None
    return _as_judge(made)


def _as_judge(adapter: Any) -> Any:
    from pytest_lmeval.adapters.resolve import as_judge

    return with_usage_errors(lambda: as_judge(adapter))


def make(config: pytest.Config, registry: Registry, spec: str, options: Mapping[str, Any]) -> Any:
    """Create an adapter; raise pytest.UsageError for errors that the user can fix."""
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
    """Hide an adapter's secrets from now on."""
    from pytest_lmeval.adapters.facts import secrets_of

    if secrets := secrets_of(adapter):
        from pytest_lmeval.plugin.common.hiding import hide_secrets

        scrubber_of_run(config).learn(secrets)
        hide_secrets(config)


def other_adapter(adapter: Any, engine: Any) -> str:
    """Return an error message if a conftest gives an example a different adapter from the run's, else ""."""
    if adapter is engine.adapter:
        return ""
    from pytest_lmeval.adapters.facts import adapter_name

    first, second = adapter_name(engine.adapter), adapter_name(adapter)
    return f"one run has one adapter: this run has {first}, an lm_adapter override gives {second}"


def begin_spares(config: pytest.Config) -> None:
    """Start the helper processes that query models, once per session, so that they import an HTTP client early.

    Call this function when a task is found, so that a session without tasks starts no helper process. The session's end
    stops unused helper processes.
    """
    option = config.option
    # A worker has only some of the requests in flight. With a cost limit, no helper process sends requests.
    is_alone = is_worker(config) or option.lm_max_cost is not None or option.lm_concurrency < WORTH_A_PROCESS
    if SPARES in config.stash or is_alone or option.collectonly or config.getoption("setuponly", False):
        return
    from pytest_lmeval.adapters.resolve import server_kind

    specs = [spec for _, spec in option.lm_models] or [spec_of(config)]
    try:
        kinds = [kind for spec in specs if (kind := server_kind(spec, config.rootpath))]
    except LmevalError:  # an unreadable profile: reported when the adapter is created
        kinds = []
    from pytest_lmeval.asking.hosting import Spares

    client = "pytest_lmeval.adapters.http.transport"
    spares = config.stash[SPARES] = Spares([(f"pytest_lmeval.adapters.{kind}.adapter", client) for kind in kinds])
    config.add_cleanup(spares.close)


def prepare(tasks: Collected, session: pytest.Session) -> None:
    """Check and plan each model's run, after selection and before any model call."""
    if tasks.bad_files:
        return
    own = configs(session.config)
    for config in own:
        try:
            _prepare(config, tasks, session)
            if config is own[-1] and not config.option.lm_shard:  # other shards may have the rest
                from pytest_lmeval.run.plan import check_left

                check_left(*[config.stash[RUN].plan for config in own if RUN in config.stash])
        except (LmevalError, pytest.UsageError) as error:
            add_to_report(config, usage_error=str(error))
            raise pytest.UsageError(str(error)) from None


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
    """Return the evals if the project provides a model; otherwise skip all evals, or raise UsageError."""
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
    """Count each task's selected examples; raise UsageError for options that match no task, or for a bad baseline."""
    tasks = collected.tasks
    # By id: an item may occur twice.
    ids = {(item.task.name, item.example.id) for item in items}
    for name, selected in Counter(name for name, _ in ids).items():
        tasks[name] = replace(tasks[name], selected=selected)
    from pytest_lmeval.run.plan import check_repeats

    check_repeats(items, config.option.lm_repeats)
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
    """Plan the run of ``items``; raise UsageError if a conftest provides a separate model for each test."""
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
        run.judges.user_adapter = make_judge(config, registry, "user")
    files_of = {item: item.parent for item in records}
    plan = run.plan(
        items, adapter if uses_ours else None, judge, lambda item: not _uses_ours(item, "lm_judge"), files_of.get
    )
    return RunState(config, files, run, plan, label, session.items, adapter, judge)


def _begin(items: Sequence[Any], records: Sequence[Any], state: RunState, collected: Collected) -> None:
    """Prepare the items for the run; in a worker, report the tasks to the controller."""
    config, known = state.config, {*items}
    shared: dict[frozenset[str], set[str]] = {}
    item: Any
    for position, item in enumerate(state.items):
        if item in known:
            item.position = position
            # -k has been applied, so items with equal words can share a set.
            words = item.extra_keyword_matches
            item.extra_keyword_matches = shared.setdefault(frozenset(words), words)
    for file in {item.parent for item in records}:
        # All conftests are loaded, so a file's hooks no longer change.
        file.hooks = file.ihook
    if is_worker(config):
        ids = [item.nodeid for item in state.items if not is_example(item)]
        foreign = [nodeid for nodeid in ids if is_example_id(nodeid, config)]
        add_to_report(config, tasks=[asdict(info) for info in collected.tasks.values()], foreign=foreign)
    # The items live until the end: exclude them from garbage collection.
    gc.freeze()


def _check_scopes(item: Any) -> None:
    """Raise UsageError if a conftest provides a model per test, because the run sends requests before a test starts."""
    for name in ("lm_adapter", "lm_judge"):
        for definition in fixture_definitions(item, name):
            if definition.params is not None:
                raise UsageError(
                    f"{_place(definition)}: the fixture {name} must not be parametrised; name several models with "
                    "--lm-adapter=LABEL=SPEC, once for each"
                )
            if definition.scope != "session":
                raise UsageError(
                    f"{_place(definition)}: the fixture {name} has the scope {definition.scope!r}, but a run has one "
                    "model; write @pytest.fixture(scope='session')"
                )


def _place(definition: Any) -> str:
    code = definition.func.__code__
    return f"{portable_path(code.co_filename)}:{code.co_firstlineno}"


def _uses_ours(item: Any, fixture: str) -> bool:
    # A definition that requests its own name gets the definition that it overrides. Without any definition, assume that
    # the fixture is this plugin's.
    for definition in reversed(fixture_definitions(item, fixture)):
        if fixture not in definition.argnames:
            return bool(definition.func.__module__.startswith("pytest_lmeval."))
    return True
