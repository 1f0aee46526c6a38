"""Write the step summary of GitHub Actions, and annotations at the lines of task files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_lmeval.leaderboard.details import details_of, is_function, shown_response
from pytest_lmeval.leaderboard.explained import shown_output, wanted_text
from pytest_lmeval.leaderboard.passing import missed_lines
from pytest_lmeval.numbers import beside
from pytest_lmeval.report.tables import cut_to
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

ANNOTATIONS = 10
"""The most annotations of a kind that GitHub shows per step; it drops further ones."""
_SUMMARY_BYTES = 1 << 20
_MESSAGE = 400


def add_step_summary(markdown: str, path: Path) -> None:
    """Add ``markdown`` to the step summary at ``path``, cut so that the file has at most 1 MiB, GitHub's limit."""
    left = _SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)
    with path.open("ab") as file:
        file.write(cut_to(markdown, left - 1).encode("utf-8", "backslashreplace") + b"\n" if left > 1 else b"")


def commands(
    results: Iterable[ExampleResult],
    paths: Mapping[str, str],
    root: Path,
    environment: Mapping[str, str],
    level: str = "error",
) -> list[str]:
    """Return workflow commands that annotate the lines of the first examples in ``results``.

    ``paths`` maps tasks to their files, relative to ``root``; ``level`` is ``error`` or ``warning``.
    """
    workspace = environment.get("GITHUB_WORKSPACE") or str(root)
    shown = [result for result in results if result.line][:ANNOTATIONS]
    return [
        annotation(result, os.path.relpath(root / paths.get(result.task, ""), workspace), level) for result in shown
    ]


def annotation(result: ExampleResult, path: str, level: str = "error") -> str:
    """Return the workflow command that shows a result next to its line of the file ``path``."""
    title = f"{result.task}: {result.id} {result.status}"
    where = f"file={_property(path)},line={result.line},title={_property(title)}"
    return f"::{level} {where}::{_data(_message(result))}"


def _message(result: ExampleResult) -> str:
    if result.score is None:
        return result.error[:_MESSAGE]
    least = ", ".join(missed_lines(result)) or f"threshold {result.threshold:.4g}"
    score = beside(result.score, result.threshold, ".4g")
    others = _of_function(result) if is_function(result) else [_said(result)]
    return "; ".join([f"scored {score}, {least}", *others])[:_MESSAGE]


def _said(result: ExampleResult) -> str:
    said = result.predictions[shown_response(result)] if result.predictions else ""
    # A conversation has targets per turn.
    wanted = f", wanted {text}" if (text := wanted_text(result)) else ""
    return f"said {said!r}{wanted}"


def _of_function(result: ExampleResult) -> list[str]:
    reason = next((str(each["reason"]) for each in details_of(result) if each.get("reason")), "")
    return [reason] * bool(reason) + ([f"said {output!r}"] if (output := shown_output(result)) else [])


def _data(text: str) -> str:
    # Text of a model must not end the command and start another.
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
