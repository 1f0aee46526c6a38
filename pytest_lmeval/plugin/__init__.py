"""The pytest plugin, which collects task files as items, runs the items, and produces a leaderboard.

This module only defines hooks and fixtures; the subpackages do the work. Every pytest run in the environment imports
this module, so its imports must be cheap. A conftest.py may override any fixture in this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import pytest_lmeval.own_modules
from pytest_lmeval.plugin.collect.locate import is_plain_python
from pytest_lmeval.plugin.collect.selecting import note_ini_marks
from pytest_lmeval.plugin.private.reports import report_sections
from pytest_lmeval.plugin.private.workers import is_worker
from pytest_lmeval.plugin.settings.checks import apply_ini_options
from pytest_lmeval.plugin.settings.models import COLLECTED, RUN, ByModel, keep_environment, of_model
from pytest_lmeval.plugin.settings.options import add_options
from pytest_lmeval.plugin.settings.settings import apply_ini_limits, spec_of

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator
    from pathlib import Path

    from pytest_lmeval.plugin.asking.state import RunState

_WRONG = pytest.StashKey[pytest.UsageError]()
"""A settings error found while collecting a file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_lmeval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    # Repeat this: a second run in the same process puts pytest's finder first.
    pytest_lmeval.own_modules.find_first()
    outcome = yield
    # All plugins and conftest files have added their options by now.
    if any(argument.startswith("--lm-") for argument in args):
        from pytest_lmeval.plugin.settings.options import check_spelling

        check_spelling(parser, args)
    return outcome


def pytest_configure(config: pytest.Config) -> None:
    keep_environment(config)
    vars(config.option).setdefault("lm_models", [])  # (label, spec) of each of several models
    if config.option.lm_adapter is not None:
        from pytest_lmeval.plugin.settings.models import name_models

        name_models(config)
    config.addinivalue_line("markers", "lmeval: an example of a language-model task (set by pytest-lmeval)")
    apply_ini_options(config)
    apply_ini_limits(config)
    if spec_of(config) or config.option.lm_judge:
        from pytest_lmeval.plugin.common.hiding import hide_secrets

        hide_secrets(config)
    if config.option.lm_changed is not None:
        from pytest_lmeval.plugin.collect.changed import ChangedOnly

        config.pluginmanager.register(ChangedOnly(config), "lmeval-changed")
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

        # The messages name files and quote their content, and pytest prints messages unescaped.
        error.args = tuple(printable(str(argument)) for argument in (*error.args, *_on_named_files(config)))
        raise


def _on_named_files(config: pytest.Config) -> list[str]:
    if not spec_of(config):
        return []
    from pytest_lmeval.plugin.collect.locate import remarks_on_named

    return remarks_on_named(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    if not spec_of(config):
        return None
    from pytest_lmeval.plugin.record.run_facts import header

    return header(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not collection_path.is_symlink():
        return None
    from pytest_lmeval.plugin.collect.locate import places

    if not places(config).is_below(collection_path):
        return None
    from pytest_lmeval.formats.files import leads_back

    # pytest would follow the loop until the system refuses the path, and find each task again and again.
    return leads_back(collection_path) or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    others = yield
    ours = _task_file(file_path, parent)
    if ours is None:
        return others
    # pytest collects a Python file as a test module if it is named or matches python_files.
    return [ours] if file_path.suffix == ".py" else [*others, ours]


def _task_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if is_plain_python(file_path):
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
        # The settings are wrong, not the file. A worker cannot end the run on its own.
        if is_worker(parent.config):
            raise parent.CollectError(str(error)) from None
        parent.config.stash.setdefault(_WRONG, error)
        return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> Generator[None, Any, Any]:
    # eval_task marks the function; a project without evals pays for one attribute lookup per name.
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
    is_used = "pytest_lmeval.functions.declare" in sys.modules  # otherwise no method can be marked
    return is_used and unittest is not None and issubclass(kind, unittest.TestCase)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.sections or report.longrepr is not None:
        from pytest_lmeval.plugin.common.hiding import clean_collected

        clean_collected(report, collector)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    from pytest_lmeval.plugin.common.hiding import escape_warning

    escape_warning(warning_message)


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
            from pytest_lmeval.plugin.workers.sending import send_contents

            send_contents(session, tasks)


def pytest_report_collectionfinish(config: pytest.Config) -> str | None:
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
        # Before any model call, and even with --continue-on-collection-errors.
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
        from pytest_lmeval.plugin.common.hiding import hide_in_output

        # Before pytest creates reports: plugins read the output from the item.
        hide_in_output(item)
    report = yield
    attach = getattr(item, "attach_result", None)
    if attach is not None:
        attach(report, call)
    shows = report.sections or report.longrepr is not None or hasattr(report, "wasxfail")
    if shows or (attach is None and report.user_properties):
        from pytest_lmeval.plugin.common.hiding import clean

        clean(report, item)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "load":
        return None
    from pytest_lmeval.plugin.workers.scheduling import SCHEDULER, BatchScheduling

    config.stash[SCHEDULER] = BatchScheduling(config)
    return config.stash[SCHEDULER]


_TWO_WAYS = (
    "several models: --lm-adapter names them, and a conftest.py overrides the lm_adapter fixture; use one of the two"
)
_NO_JUDGE = "the lm_judge fixture needs --lm-judge SPEC, or an override in a conftest"


@pytest.fixture(scope="session")
def lm_adapter(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the model under test, from --lm-adapter; override this fixture to configure a model in Python."""
    yield from _opened(pytestconfig, _adapter)


@pytest.fixture(scope="session")
def lm_judge(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the adapter that judges answers, from --lm-judge; without the option, the fixture's value is falsy."""
    yield from _opened(pytestconfig, _judge)


@pytest.fixture(scope="session")
def lm_engine(lm_adapter: Any, lm_judge: Any, pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the engine, which sends requests to the adapter ahead of scoring."""
    from pytest_lmeval.plugin.asking.state import run_states

    states = run_states(pytestconfig)
    if "" not in states and not isinstance(lm_adapter, ByModel):
        raise pytest.UsageError(_TWO_WAYS)
    with ExitStack() as stack:
        engines = {}
        for label, state in states.items():
            engines[label] = state.ask(of_model(lm_adapter, label), of_model(lm_judge, label))
            stack.callback(state.run.close)
        yield _provided(engines)


@pytest.fixture(scope="session")
def lm_render() -> Callable[[Any], Any]:
    """Provide the function that renders an example as its prompt: text or a sequence of messages."""
    from pytest_lmeval.task import render

    return render


@pytest.fixture(scope="session")
def lm_sandbox(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the sandbox, set by --lm-sandbox, that runs code written by the model."""
    from pytest_lmeval.plugin.asking.state import run_states

    states = run_states(pytestconfig)
    with ExitStack() as stack:
        yield _provided({label: stack.enter_context(each.run.sandbox(each.plan)) for label, each in states.items()})


@pytest.fixture
def lm(request: pytest.FixtureRequest, lm_engine: Any, lm_judge: Any) -> Iterator[Any]:
    """Provide the object with which eval functions query models, score answers and record steps."""
    from pytest_lmeval.plugin.asking.state import run_state
    from pytest_lmeval.plugin.evals.item import session_of
    from pytest_lmeval.plugin.evals.process import provide

    yield from provide(request, session_of(run_state(request.config)), lm_engine, lm_judge)


@pytest.fixture(scope="session")
def lm_base_url(lm_engine: Any, lm_judge: Any, pytestconfig: pytest.Config) -> str:
    """Provide a base URL for requests outside examples; lm.token or lm.headers assigns a request to an example."""
    from pytest_lmeval.plugin.asking.state import run_state
    from pytest_lmeval.plugin.evals.item import session_of
    from pytest_lmeval.plugin.evals.process import serve

    state = run_state(pytestconfig)
    return serve(state, session_of(state).shared, lm_engine, lm_judge)


@pytest.fixture
def lm_env(lm: Any) -> Iterator[None]:
    """Set the environment variables of OpenAI's, Azure's and Anthropic's clients, so that they find the endpoint."""
    from pytest_lmeval.functions.environment import pointed

    with pointed(lm):
        yield


@pytest.fixture
def lm_example(request: pytest.FixtureRequest) -> Any:
    """Provide the example of the running item, or None in an ordinary test."""
    return getattr(request.node, "example", None)


def _adapter(state: RunState) -> Any:
    from pytest_lmeval.plugin.asking.state import make

    # No example needed the adapter, but another test may.
    if state.adapter is None:
        config = state.config
        return make(config, state.plan.registry, spec_of(config), dict(config.option.lm_adapter_arg))
    return state.adapter


def _judge(state: RunState) -> Any:
    from pytest_lmeval.plugin.asking.state import make_judge

    if state.judge is None and state.config.option.lm_judge:
        return make_judge(state.config, state.plan.registry)
    return state.judge or _NoJudge()


def _opened(config: pytest.Config, make: Callable[[RunState], Any]) -> Iterator[Any]:
    """Yield the objects that ``make`` returns for all models' states, and close the objects afterwards."""
    from pytest_lmeval.adapters.facts import method
    from pytest_lmeval.plugin.asking.state import run_states

    # If one fails to open or close, still close the others.
    with ExitStack() as stack:
        made = {}
        for label, state in run_states(config).items():
            made[label] = each = make(state)
            close = None if isinstance(each, _NoJudge) else method(each, "close")
            if close is not None:
                stack.callback(close)
        yield _provided(made)


def _provided(values: Mapping[str, Any]) -> Any:
    """Return a single model's value, or the ``values`` of several models by label."""
    return values[""] if "" in values else ByModel(values)


class _NoJudge:
    """Replaces the judge in a run without --lm-judge; the object is falsy, and any use of it raises UsageError."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise pytest.UsageError(_NO_JUDGE)
