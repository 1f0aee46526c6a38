"""Assemble the page from its parts in ``page/``, and from data as inert JSON.

Without scripts, a browser shows the verdict and the scores as plain HTML.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from itertools import repeat
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.report.html.data import ReportData, report_data, sentence
from pytest_lmeval.report.tables import SCORES, Column, Row, score_rows, score_text, text_table
from pytest_lmeval.report.wording import baseline_line, is_off
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

Baseline = Mapping[tuple[str, str], ExampleResult]
Folders = Mapping[str, Sequence[Path]]

_NOTHING: Baseline = MappingProxyType({})
_STYLES = ("frame.css", "views.css", "columns.css")
_SCRIPTS = (
    *("base", "text", "diff", "data", "media", "plots", "tables", "share", "list", "steps", "talks", "scorers"),
    *("answer", "model", "overview", "models", "run", "rows", "summary", "example", "app"),
)


def render_report(
    board: Mapping[str, Any],
    results: Sequence[ExampleResult],
    comparison: Mapping[str, Any] | None = None,
    baseline: Baseline = _NOTHING,
    folder: Path | None = None,
) -> str:
    """Return the report as one ASCII HTML file.

    ``board`` is the JSON of the leaderboard, ``comparison`` is the JSON of its comparison with a baseline, and
    ``baseline`` holds the baseline's results by (task, id). The page of a very large run contains only the most
    informative examples, and shows how many it omits. Links to files are relative to ``folder``, which defaults to the
    working directory.
    """
    data = report_data(board, results, comparison, baseline)
    title = html_text(f"{board.get('adapter', '')} - evaluation report")
    folders = {row["task"]: folders_of(row["path"], board.get("manifest", {})) for row in board.get("tasks", ())}
    return page_text(data, title, summary_html(board, comparison), folders, folder)


def page_text(data: ReportData, title: str, summary: str, folders: Folders, folder: Path | None) -> str:
    """Return an ASCII page with ``data`` and with links relative to ``folder``; ``title`` and ``summary`` are HTML.

    ``folders`` has, for each task, the folders that may contain the images, audio and other files of its prompts.
    """
    style = "\n" + "\n".join(map(part, _STYLES))
    script = "\n".join(part(f"{name}.js") for name in _SCRIPTS)
    script = f'\n"use strict";\n(() => {{\n{script}\n}})();\n'
    return Template(part("page.html")).substitute(
        policy=policy(style, script),
        title=title,
        summary=summary,
        style=style,
        script=script,
        data="\n".join(_blocks(data, folders, folder or Path())),
    )


def write_report(
    path: str | Path,
    board: Mapping[str, Any],
    results: Sequence[ExampleResult],
    comparison: Mapping[str, Any] | None = None,
    baseline: Baseline = _NOTHING,
) -> None:
    """Write the report; if that fails, raise OSError and leave an existing file unchanged."""
    page = Path(path)
    write_atomically(page, render_report(board, results, comparison, baseline, page.parent).encode("ascii"))


def _blocks(data: ReportData, folders: Folders, folder: Path) -> list[str]:
    overview = json.dumps(data.overview, allow_nan=False, separators=(",", ":"))
    texts = [("report-data", overview), *((f"task-{number}", task) for number, task in enumerate(data.tasks))]
    # Only a media record has this key: JSON escapes the quotes in texts.
    if any('"sha256":"' in task for task in data.tasks):
        from pytest_lmeval.report.html.embedded import media_blocks

        names = [tally["task"] for tally in data.overview["examples"]]
        texts += media_blocks([*zip(names, data.tasks, strict=True)], folders, folder)
    return [f'<script type="application/json" id="{id}">{inert(text)}</script>' for id, text in texts]


def folders_of(path: str, manifest: Mapping[str, Any]) -> Sequence[Path]:
    """Return the folders that may contain the task file at ``path``, according to its run's manifest."""
    # The root is relative to the run's working directory; a later command may run in the root.
    return [Path(str(manifest.get("rootdir", "")), path).parent, Path(path).parent]


def inert(ascii_json: str) -> str:
    """Escape JSON so that it cannot end the script element that contains it."""
    # JSON has these characters only in strings. Without them, no value can end its block or open a tag.
    return ascii_json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def policy(style: str, script: str) -> str:
    """Return the content security policy for a page with ``style`` and ``script``."""
    rules = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "media-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('ascii')).digest()).decode('ascii')}'"


def part(name: str) -> str:
    """Return the content of the file ``page/NAME``."""
    return (Path(__file__).with_name("page") / name).read_text(encoding="ascii")


def summary_html(board: Mapping[str, Any], comparison: Mapping[str, Any] | None = None) -> str:
    """Return the headline, the scores, the gate's reasons and the baseline's coverage, as HTML in escaped ASCII."""
    gate = board.get("gate") or {}
    lines = [*gate.get("reasons", ()), *gate.get("warnings", ()), *(comparison or {}).get("coverage", ())]
    lines.append(baseline_line(gate))
    reasons = "".join(f"<li>{html_text(reason)}</li>" for reason in dict.fromkeys(lines) if reason)
    table = html_table(SCORES, [*score_rows(board.get("tasks", ()))])
    said = html_text(sentence(board, comparison))
    return f"<h1>{html_text(_headline(board, gate))}</h1><p>{said}</p>{table}<ul>{reasons}</ul>"


def _headline(board: Mapping[str, Any], gate: Mapping[str, Any]) -> str:
    verdict = gate.get("verdict", "")
    if is_off(gate):
        verdict = "not gated"
    verdict = f"{verdict}: " if verdict else ""
    if not board.get("complete"):
        return f"{verdict}{board.get('adapter', '')}, an incomplete run"
    return f"{verdict}{board.get('adapter', '')}, overall {score_text(board.get('overall_score'))}"


def html_table(columns: Sequence[Column], rows: Sequence[Row], firsts: Sequence[str] = ()) -> str:
    """Return a table as HTML in escaped ASCII; ``firsts`` replaces the first cell of each row with HTML."""
    headings, lines, _ = text_table(columns, rows)
    head = '</th><th scope="col">'.join(headings)
    body = "".join(map(_html_row, lines, firsts or repeat(""))).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return f'<table><thead><tr><th scope="col">{head}</th></tr></thead><tbody>{body}</tbody></table>'


def _html_row(cells: Sequence[str], html: str) -> str:
    first, *others = map(escape, [printable(cell, keep="") for cell in cells])
    return f'<tr><th scope="row">{html or first}</th><td>{"</td><td>".join(others)}</td></tr>'


def html_text(value: object) -> str:
    """Return ``value`` as escaped ASCII text for HTML, with invisible characters made visible."""
    return escape(printable(str(value), keep="")).encode("ascii", "xmlcharrefreplace").decode("ascii")
