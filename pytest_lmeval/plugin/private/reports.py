"""Reports, captured output, what other plugins make of them, and the ini file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def log_handlers(config: pytest.Config) -> list[Any]:
    """Return the handlers that keep the log of the test whose turn it is; none without the plugin or their names."""
    plugin = config.pluginmanager.getplugin("logging-plugin")
    found = (getattr(plugin, name, None) for name in ("report_handler", "caplog_handler"))
    return [handler for handler in found if handler is not None]


def shows_logs(config: pytest.Config) -> bool:
    """Tell whether log lines are shown as they come. Without ``logging-plugin``, or the private name, they are not."""
    is_enabled = getattr(config.pluginmanager.getplugin("logging-plugin"), "_log_cli_enabled", None)
    return is_enabled is not None and bool(is_enabled())


def is_capturing(config: pytest.Config) -> bool:
    """Tell whether pytest takes what tests print. Without the plugin ``capturemanager`` it does not."""
    return config.pluginmanager.hasplugin("capturemanager") and config.getoption("capture", "no") != "no"


def wrap_captured(config: pytest.Config, wrap: Callable[[Any, str], Any]) -> Callable[[], None]:
    """Wrap what pytest puts in the place of stdout and stderr for the whole session; return what undoes it.

    Between phases it puts them there while other threads may print. Where it captures in another way than by file
    descriptors, nothing is wrapped.
    """
    capturing = getattr(config.pluginmanager.getplugin("capturemanager"), "_global_capturing", None)
    undo = ExitStack()
    for stream in ("out", "err"):
        holder: Any = getattr(getattr(capturing, stream, None), "syscapture", None)
        for place in ("tmpfile", "_old"):
            if hasattr(holder, place):
                undo.callback(_put_back, holder, place, getattr(holder, place))
                setattr(holder, place, wrap(getattr(holder, place), f"std{stream}"))
    return undo.close


def _put_back(holder: Any, place: str, stream: Any) -> None:
    # Gone once the capture has ended.
    if hasattr(holder, place):
        setattr(holder, place, stream)


def is_crash(report: pytest.TestReport) -> bool:
    """Tell the report that pytest-xdist makes of an item whose worker died; one of another phase is taken for none."""
    return str(report.when) == "???"


def is_rerun(report: pytest.TestReport) -> bool:
    """Tell the report of an attempt that pytest-rerunfailures (16.7) will repeat, by its outcome ``rerun``."""
    return str(report.outcome) == "rerun"


def crash_of(report: pytest.TestReport | pytest.CollectReport) -> Any:
    """Return where a failure arose, with the ``message`` that the short summary shows; None of one without it."""
    return getattr(report.longrepr, "reprcrash", None)


def report_sections(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Return the captured output of a test so far: (phase, kind, text), to be changed in place.

    Seen in pytest 7 to 9; an empty list of its own if it is missing.
    """
    sections = getattr(item, "_report_sections", None)
    return sections if isinstance(sections, list) else []


def show_internal_error(config: pytest.Config) -> None:
    """Show the exception that is being handled, as pytest shows its own."""
    import pytest

    config.notify_exception(pytest.ExceptionInfo.from_current(), config.option)


def kept_reports(config: pytest.Config) -> dict[str, list[Any]] | None:
    """Return the reports that the terminal keeps until its summary, by category; None without a terminal."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    return getattr(terminal, "stats", None)


def rerunning_plugins(config: pytest.Config) -> list[Any]:
    """Return those plugins of pytest's cache that note failed items, to run them again; the ones that exist."""
    names = ("lfplugin", "nfplugin", "stepwiseplugin")
    return [plugin for name in names if (plugin := config.pluginmanager.getplugin(name)) is not None]


def suite_properties(config: pytest.Config) -> list[Callable[[str, str], None]]:
    """Return the functions that add a property to a suite, of the JUnit report and whatever else has such a one."""
    plugins = config.pluginmanager.get_plugins()
    adders = (getattr(plugin, "add_global_property", None) for plugin in plugins)
    return [adder for adder in adders if callable(adder)]


def change_suites(config: pytest.Config, change: Callable[[str], str]) -> None:
    """Change every text in the JUnit report that is about to be written; without the names of its parts nothing is."""
    for plugin in config.pluginmanager.get_plugins():
        for reporter in getattr(plugin, "node_reporters_ordered", ()):
            for element in reporter.to_xml().iter():
                element.attrib.update({name: change(value) for name, value in element.attrib.items()})
                element.text = element.text and change(element.text)
        properties = getattr(plugin, "global_properties", None)
        if isinstance(properties, list):
            properties[:] = [(name, change(value)) for name, value in properties]


def uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Return a context in which output is not captured. Without the plugin ``capturemanager`` it never is."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()


def end_capture(config: pytest.Config) -> None:
    """Capture no more, as this process is about to end. Without the plugin ``capturemanager`` nothing is captured."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)


def ini_keys(config: pytest.Config) -> Sequence[str]:
    """Return the keys that the ini file has, known or not.

    Without ``_inicfg`` or, before pytest 9, ``inicfg`` none: pytest warns of those that it does not know.
    """
    found = vars(config).get("_inicfg")
    return [*(vars(config).get("inicfg", ()) if found is None else found)]
