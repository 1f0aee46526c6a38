"""Before the first item: the model, the options that name tasks, the plan, and the items' places."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.plugin.asking.state import (
    NO_ADAPTER,
    RunState,
    files_of_run,
    make,
    make_judge,
    make_run,
    make_user,
)
from pytest_lmeval.plugin.collect.collected import Collected
from pytest_lmeval.plugin.collect.locate import is_example, is_example_id, is_mine, is_record
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.plugin.private.items import fixture_definitions
from pytest_lmeval.plugin.private.workers import is_worker
from pytest_lmeval.plugin.settings.models import COLLECTED, RUN, configs
from pytest_lmeval.plugin.settings.settings import label_of, spec_of
from pytest_lmeval.text import portable_path
from pytest_lmeval.types import NO_POLICY


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
