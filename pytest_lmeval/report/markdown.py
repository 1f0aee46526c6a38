"""Format the board as Markdown for a pull request: the verdict, the changes, then the table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard, failures_of
from pytest_lmeval.leaderboard.details import is_function, shown_response
from pytest_lmeval.report.tables import (
    AS_JSON,
    CATEGORIES,
    CHANGES,
    METRICS,
    NO_PROMPTS,
    NOTES,
    SCORES,
    Row,
    change_row,
    cut_to,
    flip_prompts,
    head,
    lacks_prompt,
    may_be_line,
    measure_rows,
    score_rows,
    score_text,
    tail,
    text_table,
)
from pytest_lmeval.report.wording import (
    baseline_line,
    ini_line,
    is_off,
    off_line,
    remark_lines,
    resume_line,
    selection_text,
    totals_line,
)
from pytest_lmeval.text import escape_markdown
from pytest_lmeval.types import ExampleResult

COMMENT_BYTES = 60_000
"""The most bytes of a comment: GitHub allows 65,536 characters, and a workflow may add some."""
_FLIPS = 25
_REASONS = 20
_TEXT = 80
_REASON = 300
_REPEATED = re.compile(r"(pass[@^]|maj@)(\d+)")
_VERDICTS = {
    "pass": "passed",
    "new": "new baseline",
    "inconclusive": "passed, but inconclusive",
    "examples": "failed: examples below their threshold",
    "floor": "failed: below the floor",
    "limit": "failed: over a limit",
    "must_pass": "failed: an example that must pass does not",
    "regression": "failed: a regression",
    "stale": "failed: the baseline is stale",
    "incomplete": "failed: the run is incomplete",
}


def markdown(board: Leaderboard) -> str:
    """Return the board as Markdown of at most COMMENT_BYTES bytes."""
    facts = board.facts
    gate = facts.gate or {}
    lines = [f"# {_title(gate)}: {escape_markdown(facts.adapter)}", "", _headline(board), ""]
    lines += listed(gate.get("reasons", ()), _REASONS)
    lines += [f"{escape_markdown(off_line(gate, facts.manifest))}", ""] if is_off(gate) else []
    lines += [escape_markdown(line), ""] if (line := ini_line(gate, facts.manifest)) else []
    lines += [escape_markdown(compared), ""] if (compared := baseline_line(gate)) else []
    lines += listed([f"Doubtful: {warning}" for warning in gate.get("warnings", ())], _REASONS)
    lines += _failed(board)
    lines += _comparison(gate.get("comparison"))
    lines += table(*text_table(SCORES, [*score_rows(map(AS_JSON, board.tasks))]))
    if any(map(NOTES, board.tasks)) and (measures := [*measure_rows(board)]):
        lines += table(*text_table(METRICS, measures))
    lines += listed(remark_lines(board), _REASONS)
    if categories := [{"category": name, **entry} for name, entry in board.categories.items()]:
        lines += table(*text_table(CATEGORIES, categories))
    lines += _repeats(board)
    if facts.bad_records:
        lines += ["Left out as bad records:", "", *listed(facts.bad_records, _REASONS)]
    lines += [line, ""] if (line := escape_markdown(resume_line(board))) else []
    lines += [line, ""] if (line := escape_markdown(totals_line(board))) else []
    lines += [f"digest `{board.digest}` · {escape_markdown(facts.timestamp)}", ""]
    return cut_to("\n".join(lines), COMMENT_BYTES)


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, bold: Collection[tuple[int, int]] = ()
) -> list[str]:
    """Return a Markdown table and an empty line; the first ``texts`` columns contain text, the others numbers.

    ``bold`` has the row and the column of each cell in bold type.
    """
    rules = ["---"] * texts + ["---:"] * (len(headings) - texts)
    shown = [[escape_markdown(cell) for cell in row] for row in rows]
    for row, column in bold:
        shown[row][column] = f"**{shown[row][column]}**"
    return [*(f"| {' | '.join(row)} |" for row in (headings, rules, *shown)), ""]


def _folded(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> list[str]:
    left = [f"... and {more} more", ""] if more > 0 else []
    shown = table(headings, rows, texts=len(headings)) if rows else []
    return [f"<details><summary>{title}</summary>", "", *shown, *left, "</details>", ""]


def _title(gate: Mapping[str, Any]) -> str:
    if is_off(gate):
        return "Evals not gated"
    return f"Evals {_VERDICTS[gate['verdict']]}" if gate else "Leaderboard"


def _headline(board: Leaderboard) -> str:
    scored = f"{board.counts['scored']} of {board.counts['collected']} examples scored"
    left_out = escape_markdown(selection_text(board))
    scored = f"{scored}; {left_out}" if left_out else scored
    if board.complete and "shard" in board.facts.selection:
        shard = escape_markdown(str(board.facts.selection["shard"]))
        return f"**Shard {shard}**: {scored}; the merged shards have an overall score."
    if not board.complete:
        return f"**Incomplete**: {scored}; there is no overall score."
    return f"**Overall {score_text(board.overall_score)}**: {scored}."


def _failed(board: Leaderboard) -> list[str]:
    failed = failures_of(board)
    if not failed:
        return []
    from pytest_lmeval.leaderboard.explained import reasons_of, wanted_text

    failed.sort(key=lambda result: not result.must_pass)
    has_reasons = any(map(reasons_of, failed[:_FLIPS]))
    rows = [
        (
            f"{result.task}: {result.id}",
            result.status,
            head(wanted_text(result, quoted=False), _TEXT),
            _answer(result),
            *((head(reasons_of(result), _REASON),) if has_reasons else ()),
        )
        for result in failed[:_FLIPS]
    ]
    headings = ("example", "status", "wanted", "said", *(("judged",) if has_reasons else ()))
    return _folded(f"Failed: {len(failed)}", headings, rows, len(failed) - _FLIPS)


def _answer(result: ExampleResult) -> str:
    if result.error:
        return head(result.error, _TEXT)
    if is_function(result):
        from pytest_lmeval.leaderboard.explained import explanation_of, shown_output

        said = {"output": shown_output(result), "prediction": explanation_of(result)}
        return _said(said, is_function=True)
    return head(result.predictions[shown_response(result)], _TEXT) if result.predictions else ""


def _comparison(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None:
        return []
    changes = [*comparison["tasks"], comparison["pooled"]]
    lines = table(*text_table(CHANGES, [*map(change_row, changes)]))
    lines += listed([may_be_line(comparison)], 1)
    lines += flip_table("Passed before, and not now", comparison["worse"])
    lines += flip_table("Passes now, and did not before", comparison["better"])
    return lines + listed([f"not compared: {name}: {why}" for name, why in comparison["left_out"].items()], _REASONS)


def flip_table(title: str, flips: Sequence[Row], most: int = _FLIPS) -> list[str]:
    """Return a folded table of examples that changed, as JSON values: the answers of both runs, ``most`` examples."""
    if not flips:
        return []
    has_prompts = any("old_prompt" in flip for flip in flips)
    lacking = any(map(lacks_prompt, flips[:most]))
    has_reasons = any("reason" in flip[side] for flip in flips for side in ("old", "new"))
    rows = [
        (*_flip(flip), *(_reasons(flip) if has_reasons else ()), *(_prompts(flip) if has_prompts else ()))
        for flip in flips[:most]
    ]
    headings = (
        "example",
        "wanted",
        "said before",
        "says now",
        *(("judged before", "judged now") if has_reasons else ()),
        *(("prompt before", "prompt now") if has_prompts else ()),
    )
    lines = _folded(f"{title}: {len(flips)}", headings, rows, len(flips) - most)
    return lines + listed([NO_PROMPTS] if lacking else [], 1)


def _reasons(flip: Row) -> list[str]:
    return [head(str(flip[side].get("reason", "")), _REASON) for side in ("old", "new")]


def _prompts(flip: Row) -> tuple[str, str]:
    if "old_prompt" not in flip:
        return "the same", tail(flip["prompt"], _TEXT)
    before, now = flip_prompts(flip)
    return tail(before, _TEXT), tail(now, _TEXT)


def _flip(flip: Row) -> list[str]:
    said = [_said(flip[side], is_function="function" in flip) for side in ("old", "new")]
    return [f"{flip['task']}: {flip['id']}", head(" | ".join(flip["targets"]), _TEXT), *said]


def _said(answer: Row, *, is_function: bool) -> str:
    if is_function and answer["output"]:
        return f"{head(answer['output'], _TEXT)} ({head(answer['prediction'], _TEXT)})"
    return head(answer["prediction"], _TEXT)


def _repeats(board: Leaderboard) -> list[str]:
    repeated = [row for row in board.tasks if row.repeats]
    kinds = {name: match for row in repeated for name in row.metrics if (match := _REPEATED.fullmatch(name))}
    names = sorted(kinds, key=lambda name: (kinds[name][1], int(kinds[name][2])))
    rows = [
        [row.task, str(row.repeats["count"]), str(row.repeats.get("differ", ""))]
        + [score_text(row.metrics.get(name)) for name in names]
        for row in repeated
    ]
    return table(("task", "asked", "differ", *names), rows, texts=1) if rows else []


def listed(entries: Sequence[str], most: int | None = None) -> list[str]:
    """Return a list in Markdown and an empty line: the first ``most`` entries, and the number of further entries."""
    shown = [f"- {escape_markdown(entry)}" for entry in entries[:most]]
    more = [f"- ... and {len(entries) - len(shown)} more"] if len(entries) > len(shown) else []
    return [*shown, *more, ""] if shown else []
