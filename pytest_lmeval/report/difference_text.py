"""Format a difference between two runs for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher

from pytest_lmeval.compare.compare import Comparison, Flip, failing_otherwise
from pytest_lmeval.compare.difference import ChangedTask, Difference
from pytest_lmeval.leaderboard.details import (
    CHECKS,
    first_details,
    is_function,
    shown_response,
)
from pytest_lmeval.leaderboard.explained import answers_in, explanation_of, reasons_of, shown_output, wanted_text
from pytest_lmeval.report.markdown import COMMENT_BYTES, folded, listed, table
from pytest_lmeval.report.tables import (
    DIFFERENCE,
    SCORE_CHANGES,
    Row,
    TextTable,
    change_row,
    columns,
    cut_to,
    head,
    may_be_line,
    score_text,
    tail,
    text_table,
)
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 2000
_LEAST_SHARED = 0.3
_FLIP_HEADINGS = ("example", "prompt", "targets", "old output", "new output")
_PROMPT_TAIL = 400
_TEXT_HEAD = 600
_CELL = 160
_REASON = 300
_WORSE, _BETTER = "passed before, and not now", "passes now, and did not before"
_NEITHER = "passes in neither run, with another output"


def difference_lines(difference: Difference, limit: int) -> list[str]:
    """Return the lines for a terminal, with at most ``limit`` flipped examples of either kind."""
    lines = [f"{name}  {printable(shown, keep='')}" for name, shown in _sides(difference)]
    comparison = difference.comparison
    lines += ["", *columns(*_table(difference)), *([_legend(comparison)] if comparison else []), ""]
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
    """Return Markdown that fits a comment, the verdict first."""
    comparison = difference.comparison
    lines = [f"# Comparison: {difference.verdict or 'scores only'}", ""]
    if difference.decision is not None:
        doubts = [f"doubtful: {warning}" for warning in difference.decision.warnings]
        lines += listed([*difference.decision.reasons, *doubts])
    lines += table(*_table(difference))
    if comparison is not None:
        lines += listed([_legend(comparison)])
        lines += _flip_table(_WORSE, comparison.worse, limit) + _flip_table(_BETTER, comparison.better, limit)
        lines += _flip_table(_NEITHER, failing_otherwise(comparison), limit)
    lines += listed(_remarks(difference))
    lines += listed([f"{name}: {shown}" for name, shown in _sides(difference)])
    return cut_to("\n".join(lines), COMMENT_BYTES)


def _sides(difference: Difference) -> list[tuple[str, str]]:
    runs = (("old", difference.old), ("new", difference.new))
    return [(name, f"{run.path}: {run.adapter}, {run.timestamp}") for name, run in runs]


def _table(difference: Difference) -> TextTable:
    if difference.comparison is None:
        return text_table(SCORE_CHANGES, _score_rows(difference))
    changes = [*difference.comparison.tasks, difference.comparison.pooled]
    return text_table(DIFFERENCE, [change_row(asdict(change)) for change in changes])


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
    if is_function(flip.new) and (marked := word_diff(shown_output(flip.old), shown_output(flip.new))):
        lines += _block("difference", marked)
    return [*lines, ""]


def _prompts(flip: Flip) -> list[tuple[str, str]]:
    if flip.differs_in_prompt:
        return [
            ("old prompt", flip.old.prompt or "(the file of the old run holds no prompts)"),
            ("prompt", flip.new.prompt),
        ]
    return [("prompt", flip.new.prompt or flip.old.prompt)]


def _block(name: str, text: str) -> list[str]:
    shown = text if len(text) <= _TEXT_HEAD else f"{text[:_TEXT_HEAD]}... ({len(text):,} characters)"
    return [f"  {name}:", *(f"    {line}" for line in printable(shown).split("\n"))]


def _output(result: ExampleResult) -> str:
    if is_function(result):
        return "\n".join(filter(None, [shown_output(result), explanation_of(result)])) or "(nothing)"
    output = result.outputs[shown_response(result)] if result.outputs else "(none)"
    return "\n".join(answers_in(output)) if result.exchanges else output


def _flip_table(title: str, flips: Sequence[Flip], limit: int) -> list[str]:
    if not flips:
        return []
    has_reasons = any(reasons_of(result) for flip in flips[:limit] for result in (flip.old, flip.new))
    rows = [row for flip in flips[:limit] for row in _flip_rows(flip, has_reasons=has_reasons)]
    headings = (*_FLIP_HEADINGS, *(("old, judged", "new, judged") if has_reasons else ()))
    return folded(f"{title}: {len(flips)}", headings, rows, len(flips) - limit)


def _flip_rows(flip: Flip, *, has_reasons: bool) -> list[tuple[str, ...]]:
    """Return the row of a flip; two rows, each with its answer, if the prompts differ."""
    old_reason, new_reason = ([head(reasons_of(side), _REASON)] if has_reasons else [] for side in (flip.old, flip.new))
    nothing = [""] * len(old_reason)
    name, targets = f"{flip.new.task}: {flip.new.id}", head(wanted_text(flip.new, quoted=False), _CELL)
    old, new = head(_output(flip.old), _CELL), head(_output(flip.new), _CELL)
    prompts = [tail(prompt, _CELL) for _, prompt in _prompts(flip)]
    if len(prompts) == 1:
        return [(name, prompts[0], targets, old, new, *old_reason, *new_reason)]
    return [
        (f"{name}, before", prompts[0], targets, old, "", *old_reason, *nothing),
        (f"{name}, now", prompts[1], targets, "", new, *nothing, *new_reason),
    ]


def word_diff(before: str, after: str) -> str:
    """Return a text with ``[-removed-]`` and ``{+added+}`` words; "" if two texts are equal or have little in common.

    >>> word_diff("It is on its way.", "It is lost.")
    'It is [-on its way-]{+lost+}.'
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if before == after or not old or not new or len(old) + len(new) > _MOST_WORDS:
        return ""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return "".join(_marked(matcher, old, new)) if matcher.ratio() >= _LEAST_SHARED else ""


def _marked(matcher: SequenceMatcher[str], old: list[str], new: list[str]) -> Iterator[str]:
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            yield "".join(old[start:end])
            continue
        if start < end:
            yield f"[-{''.join(old[start:end])}-]"
        if first < last:
            yield f"{{+{''.join(new[first:last])}+}}"
