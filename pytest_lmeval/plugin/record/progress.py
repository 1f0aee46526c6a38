"""What the terminal shows while a run goes on: how far it is, and words for what neither passed nor failed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.plugin.private import kept_reports, uncaptured
from pytest_lmeval.report.wording import amount
from pytest_lmeval.text import printable

_WORDS = "lmeval-words"
_TERMINAL_EVERY_S = 1.0
_PLAIN_EVERY_S = 60.0
_WORTH_SAYING_S = 3.0
# Make sure of a line below the dots (down and up again, the column kept), go there, clear it, write, come back.
_BELOW = "\x1bD\x1bM\x1b7\x1b[1B\r\x1b[2K{}\x1b8"


class Progress:
    """Says what a run waits for: below pytest's own progress on a terminal, else in a plain line a minute at most."""

    def __init__(self, config: pytest.Config, total: int) -> None:
        self._terminal = config.pluginmanager.getplugin("terminalreporter")
        self._config = config
        self._quiet = self._terminal is None or config.option.verbose < -1
        self._on_terminal = not self._quiet and self._terminal.isatty
        self._total = total
        self._started = self._said = time.monotonic()
        self._shown = False
        self._waited_for = ""

    def tick(self, done: int, in_flight: int | None, usage: dict[str, float], wait: Wait | None = None) -> None:
        """Say how far the run is, if it is time to; without a terminal, of a ``wait`` at once, and once."""
        now = time.monotonic()
        waits_for = "" if wait is None or wait.seconds < _WORTH_SAYING_S else wait.what
        every_s = _TERMINAL_EVERY_S if self._on_terminal or waits_for != self._waited_for else _PLAIN_EVERY_S
        if self._quiet or now - self._said < every_s:
            return
        self._said = now
        self._waited_for = waits_for
        text = describe(done, self._total, in_flight, now - self._started, usage)
        if wait is not None and waits_for:
            text += f"; waiting {_duration(wait.seconds)} {waits_for}"
        if self._on_terminal:
            self._shown = True
            self._write(_BELOW.format(text))
        else:
            self._write(f"\n{text}\n")

    def clear(self) -> None:
        """Take the line on the terminal away."""
        if self._shown:
            self._shown = False
            self._write(_BELOW.format(""))

    def _write(self, text: str) -> None:
        # While an item runs its output is captured, and ours would be with it.
        with uncaptured(self._config):
            self._terminal.write(text, flush=True)


def describe(done: int, total: int, in_flight: int | None, elapsed_s: float, usage: dict[str, float]) -> str:
    """Return one line: examples done, requests in flight, rate, tokens, cost, time left.

    >>> describe(50, 200, 16, 10.0, {"completion_tokens": 1200, "cost": 0.5})
    'lmeval: 50 of 200 examples, 16 in flight, 5.0/s, 1,200 tokens, cost 0.5000, about 30 s left'
    """
    parts = [f"{done} of {total} examples"]
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
    """Have reports shown with the words they carry; a run in which none does is not asked about every report."""
    if not config.pluginmanager.hasplugin(_WORDS):
        config.pluginmanager.register(_Words(config), _WORDS)


class _Words:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_sessionfinish(self) -> None:
        # Between the recorder, which has judged the run by now, and the terminal's summary.
        kept = kept_reports(self._config) or {}
        records = getattr(self._config.pluginmanager.getplugin("lmeval-recorder"), "records", None)
        if records is not None and self._config.getoption("verbose", -2) >= -1:  # the board is shown
            from pytest_lmeval.plugin.record.once import say_once

            say_once([*kept.get("failed", ()), *kept.get("error", ())], records)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        word = getattr(report, "lm_gate", None)
        if word is not None:
            return "failed" if report.failed else "", "", word
        word = getattr(report, "lm_word", "")
        if word and report.outcome == "passed":
            return word, word[0], (word.upper(), {"yellow": True})
        return None


def stop_session(session: pytest.Session, reason: str) -> None:
    """Have pytest run no further item; where the board is shown, that says why."""
    where = "stopped: the reason is under the leaderboard"
    session.shouldstop = where if session.config.option.verbose >= -1 else printable(reason, keep="")


def show_waiting(config: pytest.Config, engine: Any, in_flight: int | None = None) -> None:
    """Say, if it is time to, what the run waits for; by default for the requests of ``engine``."""
    recorder: Any = config.pluginmanager.getplugin("lmeval-recorder")
    if recorder is not None:
        requests = min(engine.outstanding, engine.policy.concurrency)
        recorder.waiting(requests if in_flight is None else in_flight, engine.wait)
