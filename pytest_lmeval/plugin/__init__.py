"""The pytest plugin: task files become items, and a run of them becomes a leaderboard.

This module is imported by every pytest run of the environment it is installed in. It holds the hooks and hands on;
what it imports at the top is what a run without a task pays for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import pytest_lmeval.own_modules
from pytest_lmeval.plugin.collect.selecting import note_ini_marks
from pytest_lmeval.plugin.fixtures import (
    lm,
    lm_adapter,
    lm_base_url,
    lm_engine,
    lm_env,
    lm_example,
    lm_judge,
    lm_render,
    lm_sandbox,
)
from pytest_lmeval.plugin.private.reports import report_sections
from pytest_lmeval.plugin.private.workers import is_worker
from pytest_lmeval.plugin.settings.checks import apply_ini_options
from pytest_lmeval.plugin.settings.models import COLLECTED, RUN, keep_environment
from pytest_lmeval.plugin.settings.options import add_options

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator
    from pathlib import Path

__all__ = [
    "lm",
    "lm_adapter",
    "lm_base_url",
    "lm_engine",
    "lm_env",
    "lm_example",
    "lm_judge",
    "lm_render",
    "lm_sandbox",
]

_WRONG = pytest.StashKey[pytest.UsageError]()
"""What is wrong with the settings, where that was found out while files were collected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_lmeval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    # Once more: in its second run in a process pytest is ahead of what was put ahead in the first one.
    pytest_lmeval.own_modules.find_first()
    outcome = yield
    # By now every plugin and conftest file has added its options.
    if any(argument.startswith("--lm-") for argument in args):
        from pytest_lmeval.plugin.settings.options import check_spelling

        check_spelling(parser, args)
    return outcome


def pytest_configure(config: pytest.Config) -> None:
    keep_environment(config)
    # Of several models the labels and specs: none where no option names any.
    vars(config.option).setdefault("lm_models", [])
    if config.option.lm_adapter is not None:
        from pytest_lmeval.plugin.settings.models import name_models

        name_models(config)
    config.addinivalue_line("markers", "lmeval: an example of a language-model task (set by pytest-lmeval)")
    apply_ini_options(config)
    if config.getini("lm_max_data_bytes"):
        from pytest_lmeval.plugin.settings.settings import apply_max_data_bytes

        apply_max_data_bytes(config)
    if config.getini("lm_forward_paths"):
        from pytest_lmeval.plugin.settings.settings import check_forward_paths

        check_forward_paths(config)
    if config.option.lm_adapter or config.getini("lm_adapter") or config.option.lm_judge:
        from pytest_lmeval.plugin.settings.settings import scrubber_of_run

        if scrubber_of_run(config):
            from pytest_lmeval.plugin.common.discretion import be_discreet

            be_discreet(config)
    if not is_worker(config) and not config.option.lm_check_formatting:
        from pytest_lmeval.plugin.record.recorder import Recorder
        from pytest_lmeval.plugin.settings.checks import check_options

        check_options(config)
        config.pluginmanager.register(Recorder(config), "lmeval-recorder")


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    note_ini_marks(config)
    try:
        return (yield)
    except pytest.UsageError as error:
        from pytest_lmeval.text import printable

        # These name files and quote their content; pytest prints them as they are.
        error.args = tuple(printable(str(argument)) for argument in (*error.args, *_on_named_files(config)))
        raise


def _on_named_files(config: pytest.Config) -> list[str]:
    if not (config.getoption("lm_adapter") or config.getini("lm_adapter")):
        return []
    from pytest_lmeval.plugin.collect.locate import remarks_on_named

    return remarks_on_named(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    spec = config.getoption("lm_adapter") or config.getini("lm_adapter")
    if not spec:
        return None
    from pytest_lmeval.plugin.record.run_facts import header

    return header(config, spec)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not collection_path.is_symlink():
        return None
    from pytest_lmeval.plugin.collect.locate import places

    if not places(config).is_below(collection_path):
        return None
    from pytest_lmeval.formats.files import leads_back

    # pytest would go round until the system refuses the path, and find each task as often.
    return leads_back(collection_path) or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    others = yield
    ours = _task_file(file_path, parent)
    if ours is None:
        return others
    # pytest takes a Python file that is named, or fits python_files, for a module of tests.
    return [ours] if file_path.suffix == ".py" else [*others, ours]


def _task_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".py" and not file_path.name.startswith("task_"):
        return None
    from pytest_lmeval.plugin.collect.locate import locate

    root = locate(file_path, parent)
    if root is None:
        return None
    if parent.config.option.lm_check_formatting:
        from pytest_lmeval.plugin.collect.formatting import collect_formatting_file

        return collect_formatting_file(file_path, root, parent)
    from pytest_lmeval.plugin.asking.collector import collect_task_file

    try:
        return collect_task_file(file_path, root, parent)
    except pytest.UsageError as error:
        # What is wrong with the settings is no fault of a file. A worker cannot end the run by itself.
        if is_worker(parent.config):
            raise parent.CollectError(str(error)) from None
        parent.config.stash.setdefault(_WRONG, error)
        return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> Generator[None, Any, Any]:
    # What eval_task marks says so itself; a project that does not use it pays one look at each name.
    if hasattr(getattr(obj, "__func__", obj), "__lm_eval__") and not isinstance(obj, type):
        from pytest_lmeval.plugin.evals.collecting import examples_of, parametrize

        parametrize(collector, obj)
        return examples_of(collector, obj, (yield) or [])
    items = yield
    if items is None and name.startswith("pytest_lmeval_"):
        from pytest_lmeval.plugin.evals.collecting import warn_of_hook

        warn_of_hook(collector, name)
    if isinstance(obj, type) and _is_of_unittest(obj):
        from pytest_lmeval.plugin.evals.collecting import refuse_unittest

        refuse_unittest(collector, obj)
    if isinstance(items, list) and any("lm" in getattr(item, "fixturenames", ()) for item in items):
        from pytest_lmeval.plugin.evals.collecting import examples_of

        return examples_of(collector, obj, items)
    return items


def _is_of_unittest(kind: type) -> bool:
    unittest = sys.modules.get("unittest")
    # Where nothing has imported ours, no method is marked.
    is_used = "pytest_lmeval.functions.declare" in sys.modules
    return is_used and unittest is not None and issubclass(kind, unittest.TestCase)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.sections or report.longrepr is not None:
        from pytest_lmeval.plugin.common.discretion import clean_collected

        clean_collected(report, collector)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    from pytest_lmeval.plugin.common.discretion import make_warning_harmless

    make_warning_harmless(warning_message)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    if (wrong := config.stash.get(_WRONG, None)) is not None:
        raise wrong
    outcome = yield
    if config.option.lm_shard:
        from pytest_lmeval.plugin.collect.selecting import keep_shard

        keep_shard(config, items)
    return outcome


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    tasks = session.config.stash.get(COLLECTED, None)
    if tasks is not None:
        from pytest_lmeval.plugin.asking.state import prepare

        prepare(tasks, session)
        if is_worker(session.config):
            from pytest_lmeval.plugin.workers.sending import pack_reports, send_contents

            send_contents(session, tasks)
            pack_reports(session.config)


def pytest_report_collectionfinish(config: pytest.Config) -> str | None:
    # Where examples are only collected there is nothing yet that would run a program.
    run = None if config.option.collectonly else config.stash.get(RUN, None)
    if run is None or not run.plan.runs_programs:
        return None
    from pytest_lmeval.run.plan import programs_line

    return programs_line(run.plan, run.run.settings)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if is_worker(session.config):
        from pytest_lmeval.plugin.workers.sending import report_runs

        report_runs(session.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    tasks = session.config.stash.get(COLLECTED, None)
    if tasks is None:
        return (yield)
    if tasks.bad_files and not session.config.option.collectonly:
        # Before any model call, and whatever --continue-on-collection-errors says.
        raise session.Interrupted(f"{len(tasks.bad_files)} bad task file(s)")
    try:
        return (yield)
    except (KeyboardInterrupt, Warning) as error:
        from pytest_lmeval.plugin.common.report import add_to_report
        from pytest_lmeval.plugin.record.recorder import ctrl_c_in

        ctrl_c = ctrl_c_in(error)
        if ctrl_c is None:
            raise
        add_to_report(session.config, interrupted=True)
        raise ctrl_c from None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if report_sections(item):
        from pytest_lmeval.plugin.common.discretion import hide_in_output

        # Before any report is made of it: plugins read it from the item.
        hide_in_output(item)
    report = yield
    attach = getattr(item, "attach_result", None)
    if attach is not None:
        attach(report, call)
    shows = report.sections or report.longrepr is not None or hasattr(report, "wasxfail")
    if shows or (attach is None and report.user_properties):
        from pytest_lmeval.plugin.common.discretion import clean

        clean(report, item)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "load":
        return None
    from pytest_lmeval.plugin.workers.scheduling import SCHEDULER, BatchScheduling

    config.stash[SCHEDULER] = BatchScheduling(config)
    return config.stash[SCHEDULER]
