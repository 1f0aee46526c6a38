"""Show progress and status words in the terminal, and shorten repeated failure messages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.plugin.asking.item import REFUSED
from pytest_lmeval.plugin.private.reports import kept_reports, uncaptured
from pytest_lmeval.plugin.private.workers import call_when_idle
from pytest_lmeval.report.wording import amount
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.plugin.record.received import Received
    from pytest_lmeval.plugin.record.records import Records

_WORDS = "lmeval-words"
_TERMINAL_EVERY_S = 1.0
_PLAIN_EVERY_S = 60.0
_WORTH_SAYING_S = 3.0
# Ensure a line below the dots (down and up, keeping the column), go there, clear it, write, return.
_BELOW = "\x1bD\x1bM\x1b7\x1b[1B\r\x1b[2K{}\x1b8"


class LongestTest(NamedTuple):
    """The workers' longest-running test, and its start time on the monotonic clock."""

    nodeid: str
    began: float


class Progress:
    """Shows progress below pytest's on a terminal; elsewhere, prints a line at most once a minute, or at a new wait."""

    def __init__(self, config: pytest.Config, received: Received) -> None:
        self._terminal = config.pluginmanager.getplugin("terminalreporter")
        self._config = config
        self._quiet = self._terminal is None or config.option.verbose < -1
        self._on_terminal = not self._quiet and self._terminal.isatty
        self._received = received
        self._started = self._said = time.monotonic()
        self._shown = False
        self._waited_for = ""

    def tick(self, in_flight: int | None, wait: Wait | LongestTest | None = None) -> None:
        """Update the progress if an update is due; without a terminal, report each new wait within about a second.

        ``in_flight`` is None if only the workers know the number.
        """
        now = time.monotonic()
        waits_for = wait.what if isinstance(wait, Wait) and wait.seconds >= _WORTH_SAYING_S else ""
        every_s = _TERMINAL_EVERY_S if self._on_terminal or waits_for != self._waited_for else _PLAIN_EVERY_S
        if self._quiet or now - self._said < every_s:
            return
        self._said = now
        self._waited_for = waits_for
        results, total = self._received.results, len(self._received.expected)
        errors = sum(result.is_error for result in results.values())
        text = describe(len(results), total, errors, in_flight, now - self._started, self._received.usage)
        if isinstance(wait, Wait) and waits_for:
            text += f"; waiting {_duration(wait.seconds)} {waits_for}"
        elif isinstance(wait, LongestTest) and now - wait.began >= _WORTH_SAYING_S:
            text += f"; for {_duration(now - wait.began)} in {printable(wait.nodeid, keep='')}"
        if self._on_terminal:
            self._shown = True
            self._write(_BELOW.format(text))
        else:
            self._write(f"\n{text}\n")

    def clear(self) -> None:
        """Clear the progress line on the terminal."""
        if self._shown:
            self._shown = False
            self._write(_BELOW.format(""))

    def _write(self, text: str) -> None:
        # pytest captures output while an item runs.
        with uncaptured(self._config):
            self._terminal.write(text, flush=True)


def describe(
    done: int, total: int, errors: int, in_flight: int | None, elapsed_s: float, usage: dict[str, float]
) -> str:
    """Describe the progress in one line: examples done, errors, requests in flight, rate, tokens, cost, time left.

    >>> describe(50, 200, 2, 16, 10.0, {"completion_tokens": 1200, "cost": 0.5})
    'lmeval: 50 of 200 examples, 2 errors, 16 in flight, 5.0/s, 1,200 tokens, cost 0.5000, about 30 s left'
    """
    parts = [f"{done} of {total} examples"]
    if errors:
        parts.append(f"{errors} error{'s' if errors > 1 else ''}")
    if in_flight is not None:
        parts.append(f"{in_flight} in flight")
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    parts.append(f"{rate:.1f}/s")
    tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    if tokens:
        parts.append(f"{tokens:,.0f} tokens")
    if usage.get("cost"):
        parts.append(f"cost {amount(usage['cost'])}")
    if rate:
        parts.append(f"about {_duration((total - done) / rate)} left")
    return f"lmeval: {', '.join(parts)}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def show_words(config: pytest.Config) -> None:
    """Register the hooks that show status words on reports, unless they are already registered."""
    if not config.pluginmanager.hasplugin(_WORDS):
        config.pluginmanager.register(_Words(config), _WORDS)


class _Words:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_sessionfinish(self) -> None:
        # After the recorder's verdict, but before the terminal's summary.
        kept = kept_reports(self._config) or {}
        records = getattr(self._config.pluginmanager.getplugin("lmeval-recorder"), "records", None)
        if records is not None and self._config.getoption("verbose", -2) >= -1:  # the board is shown
            say_once([*kept.get("failed", ()), *kept.get("error", ())], records)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        word = getattr(report, "lm_gate", None)
        if word is not None:
            return "failed" if report.failed else "", "", word
        word = getattr(report, "lm_word", "")
        # The board already names a refused task.
        is_said = word == REFUSED and self._config.getoption("verbose") >= -1
        if word and (report.outcome == "passed" or is_said):
            return word, word[0], (word.upper(), {"yellow": True})
        return None


def watch_workers(config: pytest.Config, show: Callable[[int | None, LongestTest | None], None]) -> None:
    """Call ``show`` with the longest-running test whenever a test ends or the workers are silent."""
    config.pluginmanager.register(_Workers(config, show), "lmeval-workers")


class _Workers:
    def __init__(self, config: pytest.Config, show: Callable[[int | None, LongestTest | None], None]) -> None:
        from pytest_lmeval.plugin.workers.scheduling import SCHEDULER

        self._show = show
        scheduler = config.stash.get(SCHEDULER, None)
        # xdist's own schedulers announce every test.
        self._longest = self._first if scheduler is None else scheduler.longest
        # Start times by node id, oldest first.
        self._running: dict[str, float] = {}
        call_when_idle(config, self._tick)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._tick()

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        self._running.pop(crashitem, None)

    def _first(self) -> tuple[str, float] | None:
        return next(iter(self._running.items()), None)

    def _tick(self) -> None:
        longest = self._longest()
        self._show(None, None if longest is None else LongestTest(*longest))


_ATTEMPTS = re.compile(r" \(\d+ attempts?\)$")


def say_once(reports: Iterable[Any], records: Records) -> None:
    """Shorten failed ``reports`` whose reasons also appear under the leaderboard or in an earlier failure."""
    first: dict[str, str] = {}
    for report in reports:
        if hasattr(report, "lm_gate"):
            first_line = str(report.longrepr).partition("\n")[0]
            report.longrepr = f"{first_line}\n  the reasons are under the leaderboard"
        elif cause := _cause(report.nodeid, records):
            instead = "the reason is under the leaderboard" if _is_reason(cause, records) else ""
            if not instead and (earlier := first.setdefault(cause, report.nodeid)) != report.nodeid:
                instead = f"as {earlier}"
            if instead and isinstance(report.longrepr, str):
                report.longrepr = "\n".join(_shortened(report.longrepr, instead))


def _cause(nodeid: str, records: Records) -> str:
    record = records.of(nodeid)
    result = record.received.results.get(nodeid) if record is not None else None
    return _ATTEMPTS.sub("", result.error) if result is not None and result.is_error else ""


def _is_reason(cause: str, records: Records) -> bool:
    return any(cause in reason for record in records.all for reason in record.gate.get("reasons", ()))


def _shortened(text: str, instead: str) -> Iterator[str]:
    """Yield the first line of ``text``, with ``instead`` as the reason, and the command that reruns the example."""
    lines = text.split("\n")
    head, colon, _ = lines[0].partition("could not be scored (")
    status = lines[0][len(head) + len(colon) :].partition(")")[0]
    yield f"{head}{colon}{status}): {printable(instead, keep='')}" if colon else lines[0]
    yield from (line for line in lines[1:] if line.startswith("  rerun: "))
