"""Format a difference between two runs for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pytest_lmeval.compare.compare import Comparison, Flip, failing_otherwise, flip_record
from pytest_lmeval.compare.difference import ChangedTask, Difference
from pytest_lmeval.leaderboard.asked import answered
from pytest_lmeval.leaderboard.details import CHECKS, first_details, is_function, shown_response
from pytest_lmeval.leaderboard.explained import (
    answers_in,
    explanation_of,
    prompt_text,
    reasons_of,
    wanted_text,
)
from pytest_lmeval.report.example_tables import flip_table
from pytest_lmeval.report.markdown import COMMENT_BYTES
from pytest_lmeval.report.tables import (
    DIFFERENCE,
    SCORE_CHANGES,
    Column,
    Row,
    change_row,
    cut_to,
    listed,
    may_be_line,
    score_text,
    table,
    text_table,
)
from pytest_lmeval.report.terminal_text import WHOLE, Screen, has_interval
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_PROMPT_TAIL = 400
_TEXT_HEAD = 600
_WORSE, _BETTER = "passed before, and not now", "passes now, and did not before"
_NEITHER = "passes in neither run, with another output"


def difference_lines(difference: Difference, limit: int, screen: Screen = WHOLE) -> list[str]:
    """Return the lines for a terminal, with at most ``limit`` examples for each kind of change."""
    lines = [f"{name}  {printable(shown, keep='')}" for name, shown in _sides(difference)]
    comparison = difference.comparison
    table = screen.table(*_declared(difference))
    lines += ["", *table, *([_legend(comparison)] if comparison and has_interval(table) else []), ""]
    lines += [printable(note, keep="") for note in _remarks(difference)]
    if comparison is not None:
        lines += _flip_lines(_WORSE, comparison.worse, limit) + _flip_lines(_BETTER, comparison.better, limit)
        lines += _flip_lines(_NEITHER, failing_otherwise(comparison), limit)
        assert difference.decision is not None
        lines += [f"verdict: {difference.verdict}"]
        lines += [f"  {printable(reason, keep='')}" for reason in difference.decision.reasons]
        lines += [f"  doubtful: {printable(warning, keep='')}" for warning in difference.decision.warnings]
    return lines


def difference_markdown(difference: Difference, limit: int) -> str:
    """Return the difference as Markdown that starts with the verdict and fits into a GitHub comment."""
    comparison = difference.comparison
    lines = [f"# Comparison: {difference.verdict or 'scores only'}", ""]
    if difference.decision is not None:
        doubts = [f"doubtful: {warning}" for warning in difference.decision.warnings]
        lines += listed([*difference.decision.reasons, *doubts])
    lines += table(*text_table(*_declared(difference)))
    if comparison is not None:
        lines += listed([_legend(comparison)])
        flips = {_WORSE: comparison.worse, _BETTER: comparison.better, _NEITHER: failing_otherwise(comparison)}
        for title, each in flips.items():
            lines += flip_table(title, [*map(flip_record, each)], limit)
    lines += listed(_remarks(difference))
    lines += listed([f"{name}: {shown}" for name, shown in _sides(difference)])
    return cut_to("\n".join(lines), COMMENT_BYTES)


def _sides(difference: Difference) -> list[tuple[str, str]]:
    runs = (("old", difference.old), ("new", difference.new))
    return [(name, f"{run.path}: {run.adapter}, {run.timestamp}") for name, run in runs]


def _declared(difference: Difference) -> tuple[Sequence[Column], Sequence[Row]]:
    if difference.comparison is None:
        return SCORE_CHANGES, _score_rows(difference)
    changes = [*difference.comparison.tasks, difference.comparison.pooled]
    return DIFFERENCE, [change_row(asdict(change)) for change in changes]


def _legend(comparison: Comparison) -> str:
    return may_be_line({"criteria": asdict(comparison.criteria)})


def _score_rows(difference: Difference) -> list[Row]:
    named = [*difference.scores.items(), ("overall", difference.overall)]
    return [
        {"task": name, "old": old, "new": new, "change": None if old is None or new is None else new - old}
        for name, (old, new) in named
    ]


def _remarks(difference: Difference) -> list[str]:
    return [*(f"note: {note}" for note in difference.notes), *map(_changed_file, difference.changed_tasks)]


def _changed_file(task: ChangedTask) -> str:
    old, new = (sha256 and sha256[:12] for sha256 in (task.old, task.new))
    return f"task {task.task}: its file changed, sha256 {old or 'unknown'} to {new or 'unknown'}"


def _flip_lines(title: str, flips: Sequence[Flip], limit: int) -> list[str]:
    if not flips:
        return []
    shown = flips[:limit]
    lines = [f"{title}: {len(flips)}{f' ({len(shown)} shown)' if len(shown) < len(flips) else ''}", ""]
    for flip in shown:
        lines += _one_flip(flip)
    return lines if shown else [*lines[:1], ""]


def _one_flip(flip: Flip) -> list[str]:
    lines = [printable(f"{flip.new.task}: {flip.new.id}", keep="")]
    for name, prompt in _prompts(flip):
        lines += _block(name, prompt if len(prompt) <= _PROMPT_TAIL else f"...{prompt[-_PROMPT_TAIL:]}")
    if wanted := wanted_text(flip.new):
        of = "targets" if flip.new.targets or CHECKS in first_details(flip.new) else "expected calls"
        lines += _block(of, wanted)
    for name, result in (("old", flip.old), ("new", flip.new)):
        lines += _block(f"{name} ({score_text(result.score)})", _output(result))
        if reasons := reasons_of(result):
            lines += _block(f"{name}, judged", reasons)
    return [*lines, ""]


def _prompts(flip: Flip) -> list[tuple[str, str]]:
    if flip.differs_in_prompt:
        return [
            ("old prompt", prompt_text(flip.old) or "(the file of the old run holds no prompts)"),
            ("prompt", prompt_text(flip.new)),
        ]
    return [("prompt", prompt_text(flip.new) or prompt_text(flip.old))]


def _block(name: str, text: str) -> list[str]:
    shown = text if len(text) <= _TEXT_HEAD else f"{text[:_TEXT_HEAD]}... ({len(text):,} characters)"
    return [f"  {name}:", *(f"    {line}" for line in printable(shown).split("\n"))]


def _output(result: ExampleResult) -> str:
    if is_function(result):
        return "\n".join(filter(None, [answered(result), explanation_of(result)])) or "(nothing)"
    output = result.outputs[shown_response(result)] if result.outputs else "(none)"
    return "\n".join(answers_in(output)) if result.exchanges else output
