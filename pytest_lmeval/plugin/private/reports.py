"""Access reports, captured output, the plugins that use them, and the ini file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def log_handlers(config: pytest.Config) -> list[Any]:
    """Return the handlers that store the running test's log. Without ``logging-plugin``, return an empty list."""
    plugin = config.pluginmanager.getplugin("logging-plugin")
    found = (getattr(plugin, name, None) for name in ("report_handler", "caplog_handler"))
    return [handler for handler in found if handler is not None]


def shows_logs(config: pytest.Config) -> bool:
    """Return True if live logs are on. Without ``logging-plugin`` or its method ``_log_cli_enabled``, return False."""
    is_enabled = getattr(config.pluginmanager.getplugin("logging-plugin"), "_log_cli_enabled", None)
    return is_enabled is not None and bool(is_enabled())


def is_capturing(config: pytest.Config) -> bool:
    """Return True if pytest captures output. Without the plugin ``capturemanager``, return False."""
    return config.pluginmanager.hasplugin("capturemanager") and config.getoption("capture", "no") != "no"


def wrap_captured(config: pytest.Config, wrap: Callable[[Any, str], Any]) -> Callable[[], None]:
    """Wrap pytest's replacements of stdout and stderr for the whole session; return a function that unwraps them.

    pytest replaces the streams between phases, while other threads may print. Do nothing unless pytest captures by file
    descriptor.
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
    # The attribute is gone after capturing ends.
    if hasattr(holder, place):
        setattr(holder, place, stream)


def is_crash(report: pytest.TestReport) -> bool:
    """Return True for pytest-xdist's report of an item whose worker died, recognized by its phase."""
    return str(report.when) == "???"


def is_rerun(report: pytest.TestReport) -> bool:
    """Return True for an attempt that pytest-rerunfailures (16.7) repeats, recognized by its outcome."""
    return str(report.outcome) == "rerun"


def crash_of(report: pytest.TestReport | pytest.CollectReport) -> Any:
    """Return a failure's location and ``message`` for the short summary. Without ``reprcrash``, return None."""
    return getattr(report.longrepr, "reprcrash", None)


def report_sections(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Return a test's captured output so far, as a list of (phase, kind, text) to modify in place.

    Without ``_report_sections`` (pytest 7 to 9), return an empty list.
    """
    sections = getattr(item, "_report_sections", None)
    return sections if isinstance(sections, list) else []


def show_internal_error(config: pytest.Config) -> None:
    """Show the current exception as a pytest internal error."""
    import pytest

    config.notify_exception(pytest.ExceptionInfo.from_current(), config.option)


def kept_reports(config: pytest.Config) -> dict[str, list[Any]] | None:
    """Return the terminal reporter's reports by category, or None if the plugin terminalreporter is absent."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    return getattr(terminal, "stats", None)


def rerunning_plugins(config: pytest.Config) -> list[Any]:
    """Return the active plugins that record failed items in pytest's cache for a rerun."""
    names = ("lfplugin", "nfplugin", "stepwiseplugin")
    return [plugin for name in names if (plugin := config.pluginmanager.getplugin(name)) is not None]


def suite_properties(config: pytest.Config) -> list[Callable[[str, str], None]]:
    """Return the functions with which plugins, such as the JUnit report, add a property to a suite."""
    plugins = config.pluginmanager.get_plugins()
    adders = (getattr(plugin, "add_global_property", None) for plugin in plugins)
    return [adder for adder in adders if callable(adder)]


def change_suites(config: pytest.Config, change: Callable[[str], str]) -> None:
    """Apply ``change`` to every string in the JUnit report before it is written.

    Without the JUnit plugin's ``node_reporters_ordered`` and ``global_properties``, do nothing.
    """
    for plugin in config.pluginmanager.get_plugins():
        for reporter in getattr(plugin, "node_reporters_ordered", ()):
            for element in reporter.to_xml().iter():
                element.attrib.update({name: change(value) for name, value in element.attrib.items()})
                element.text = element.text and change(element.text)
        properties = getattr(plugin, "global_properties", None)
        if isinstance(properties, list):
            properties[:] = [(name, change(value)) for name, value in properties]


def uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Return a context that suspends capturing. Without the plugin ``capturemanager``, return a null context."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()


def end_capture(config: pytest.Config) -> None:
    """Stop capturing before this process ends. Without the plugin ``capturemanager``, do nothing."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)


def ini_keys(config: pytest.Config) -> Sequence[str]:
    """Return all keys in the ini file. Without ``_inicfg`` or, before pytest 9, ``inicfg``, return no keys."""
    found = vars(config).get("_inicfg")
    return [*(vars(config).get("inicfg", ()) if found is None else found)]
