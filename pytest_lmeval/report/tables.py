"""The board for people at a terminal: a table, and the words that other reports use for the same things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.rows import SCORES, TaskRow, as_in_data
from pytest_lmeval.report.wording import cache_lines
from pytest_lmeval.text import printable

HEADINGS = ("task", "metric", "score", "95 % interval", "correct", "errors", "unparsed", "ms")
"""The columns of the board; the first two are text."""
NO_PROMPTS = "the baseline has no prompts; one that is written with --lm-pair-by=id (ini: lm_pair_by) has them"
CHANGE_HEADINGS = (
    "against the baseline",
    "verdict",
    "was",
    "is",
    "change",
    "interval",
    "p adjusted",
    "worse",
    "better",
)
_REPEATS = attrgetter("numbers.repeats")
NOTES = attrgetter("notes")
_WORDS = {"threshold": "threshold", "min_score": "floor"}
QUARANTINED = 10
"""A report names so many examples in quarantine, and counts the others."""
_FLIPS = 10
_PROMPT = 160
_CUT = "\n\n(cut here; the rest is in the report's files)\n"


def terminal_table(board: Leaderboard) -> list[str]:
    """Return the lines of a table with one row a task and the overall score last."""
    interval = interval_text(board.overall_ci95) if board.overall_ci95 else ""
    overall = ("overall", "", score_text(board.overall_score), interval, _correct(board.tasks))
    empty = ("",) * (len(HEADINGS) - len(overall))
    shown = score_cells if any(map(SCORES, board.tasks)) else partial(map, cells)
    return columns(HEADINGS, [*shown(board.tasks), overall + empty], texts=2)


def score_cells(rows: Iterable[TaskRow]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, with those of the scores beneath it."""
    for row in rows:
        yield cells(row)
        for name, score in row.scores.items():
            yield _score_cells(f"{row.task}.{name}", score)


def score_facts(score: Mapping[str, Any]) -> str:
    """Return what is said of a task's score by name besides its value: who has it, and what it has to reach."""
    own = () if score.get("decides") else ("threshold", "min_score")
    named = [f"{_WORDS[name]} {score[name]:.4g}" for name in own if score.get(name) is not None]
    missing = [f"{score['missing']} missing"] if score["missing"] else []
    decides = ["decides"] if score.get("decides") else []
    return ", ".join([*decides, f"n {score['n']}", *missing, *named])


def _score_cells(name: str, score: Mapping[str, Any]) -> tuple[str, ...]:
    shown = (f"  {printable(name, keep='', folds=False)}", score_facts(score), score_text(score["score"]))
    return (*shown, interval_text(score["ci95"])) + ("",) * (len(HEADINGS) - 4)


def comparison_lines(comparison: Mapping[str, Any] | None) -> list[str]:
    """Return a table of what changed against the baseline and the first examples that got worse; empty without one."""
    if comparison is None:
        return []
    changes = [*comparison["tasks"], comparison["pooled"]]
    lines = [*columns(CHANGE_HEADINGS, [change_cells(change) for change in changes], texts=2), may_be_line(comparison)]
    worse = comparison["worse"]
    for flip in worse[:_FLIPS]:
        lines += [f"  worse: {flip['task']}: {flip['id']}", *_prompt_lines(flip)]
    lines += [f"  ... and {len(worse) - _FLIPS} more"] if len(worse) > _FLIPS else []
    lines += [f"  {NO_PROMPTS}"] if any(map(lacks_prompt, worse[:_FLIPS])) else []
    return lines + [f"  not compared: {task}: {why}" for task, why in comparison["left_out"].items()]


def may_be_line(comparison: Mapping[str, Any]) -> str:
    """Return what the column "interval" of a comparison means."""
    criteria = {"alpha": 0.05, **comparison.get("criteria", {})}
    models = criteria.get("models", 1)
    shared = f" of the run, shared by {models} models" if models > 1 else ""
    return (
        "interval: confidence interval of the change; it excludes 0 exactly where the test finds a regression or an "
        f"improvement (alpha {100 * criteria['alpha']:g} %{shared})"
    )


def _prompt_lines(flip: Mapping[str, Any]) -> list[str]:
    if "old_prompt" not in flip:
        return []
    old = [] if lacks_prompt(flip) else [f"    prompt before: {tail(flip['old_prompt'], _PROMPT)}"]
    return [*old, f"    prompt now: {tail(flip['prompt'], _PROMPT)}"]


def lacks_prompt(flip: Mapping[str, Any]) -> bool:
    """Tell whether an example is asked with another prompt than the one of before, which is not known."""
    return flip.get("old_prompt") == ""


def head(text: str | None, most: int) -> str:
    """Return the beginning of a text on one line, at most ``most`` characters."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= most else f"{flat[:most]}..."


def tail(text: str, most: int) -> str:
    """Return the end of a text on one line, at most ``most`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"...{flat[-most:]}"


def change_cells(change: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a table shows of one task against the baseline, in the order of CHANGE_HEADINGS."""
    if change["verdict"] == "uncompared":
        return (printable(change["task"], keep=""), change["verdict"], *[""] * (len(CHANGE_HEADINGS) - 2))
    return (
        printable(change["task"], keep=""),
        change["verdict"],
        score_text(change["old"]),
        score_text(change["new"]),
        f"{change['change']:+.4f}",
        interval_text(change.get("interval"), sign=True),
        f"{change['p_adjusted']:.3g}",
        str(change["worse"]),
        str(change["better"]),
    )


def selection_text(board: Leaderboard) -> str:
    """Return how many of the tasks' examples were selected, where it was not all of them."""
    counts = board.facts.selection.get("tasks", {}).values()
    if not counts:
        return ""
    selected, available = (sum(count[key] or 0 for count in counts) for key in ("selected", "available"))
    whole = board.facts.selection.get("without_subjects")
    others = f"; without subjects, and so whole: {', '.join(map(str, whole))}" if whole else ""
    return f"a selection: {selected} of {available} examples of the task files{others}"


def remark_lines(board: Leaderboard) -> list[str]:
    """Return what every report says of a board besides its rows: remarks, what was left out, quarantined, cached."""
    lines = [*note_lines(board), *quarantine_lines(board), *thought_lines(board)]
    if any(map(_REPEATS, board.tasks)):
        lines += repeat_lines(board)
    if cache := board.facts.manifest.get("cache"):
        lines += cache_lines(cache, board.facts.timestamp)
    # What is said of the cache is among the remarks, too, but for boards of earlier versions.
    return [*dict.fromkeys([*map(str, board.remarks), *lines])]


def quarantine_lines(board: Leaderboard) -> list[str]:
    """Return a line for each of the first ten examples in quarantine, with what came of it, and how many more are."""
    results = [result for row in board.tasks for result in row.per_example if result.status == "quarantined"]
    if not results:
        return []
    lines = [
        f"quarantined until {result.quarantine.get('until')}: {result.task}: {result.id} "
        f"({score_text(result.score) if result.score is not None else 'no score'}; {result.quarantine.get('reason')})"
        for result in as_in_data(results)[:QUARANTINED]
    ]
    return lines + [f"... and {more} more quarantined" for more in [len(results) - QUARANTINED] if more > 0]


def note_lines(board: Leaderboard) -> list[str]:
    """Return what aggregations left out: a line for every task with actions, none among their rows, and for the rest.

    The rest: labels without a weight, rows with another label than the two of a binary classification, and metrics
    that no row was there for.
    """
    return [f"{row.task}: {line}" for row in board.tasks for line in _notes_of(row)]


def repeat_lines(board: Leaderboard) -> list[str]:
    """Return for each task that was asked several times how many examples have repeats of different scores."""
    found = [(row.task, row.repeats["differ"]) for row in board.tasks if row.repeats.get("differ")]
    return [
        f"{task}: the repeats of {count} example{'' if count == 1 else 's'} have different scores"
        for task, count in found
    ]


_LEFT_OUT = ("actions", "without_weight", "neither_answer", "left_out")


def _notes_of(row: TaskRow) -> Iterator[str]:
    # Notes of a board that was read from a file are what that file holds.
    notes: dict[str, Mapping[str, Any]] = {
        name: each if isinstance(each := row.notes.get(name), Mapping) else {} for name in _LEFT_OUT
    }
    if notes["actions"]:
        yield f"excluded by action {_counted(notes['actions'])}"
    for metric, labels in notes["without_weight"].items():
        yield f"left out of {metric}, labels without a weight: {_counted(labels)}"
    for scorer, count in notes["neither_answer"].items():
        yield f"left out of the classes of {scorer}: {count} row(s) with neither answer"
    for metric, reason in notes["left_out"].items():
        yield f"no {metric}: {reason}"


def _counted(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {count} row(s)" for name, count in counts.items())


def thought_lines(board: Leaderboard) -> list[str]:
    """Return how many examples of each task are cut off, and how many tokens were spent on thoughts."""
    lines = [
        f"cut off: {row.task}: {row.cut_off} of {row.total} answers ended at the limit of tokens, or in the thoughts"
        for row in board.tasks
        if row.cut_off
    ]
    tokens = board.usage.get("reasoning_tokens", 0)
    return [*lines, *([f"reasoning tokens: {int(tokens):,}"] if tokens else [])]


def score_text(score: float | int | None) -> str:
    """Return a score with four digits; a dash for None."""
    return "-" if score is None else f"{score:.4f}"


def cells(row: TaskRow) -> tuple[str, ...]:
    """Return the values of the columns for one task."""
    return (
        row.task,
        row.metric,
        score_text(row.score),
        interval_text(row.ci95),
        f"-/{row.total}" if row.measured else f"{row.correct}/{row.total - row.quarantined}",
        _unscored(row),
        str(row.unparsed) if row.unparsed else "",
        "" if row.latency_ms is None else f"{row.latency_ms:.1f}",
    )


def _unscored(row: TaskRow) -> str:
    late = f"{row.timeouts} timed out" if row.timeouts else ""
    return " + ".join(filter(None, (str(row.errors) if row.errors else "", late)))


def _correct(rows: Sequence[TaskRow]) -> str:
    judged = [row for row in rows if not row.measured]
    if rows and not judged:
        return "-"
    return f"{sum(row.correct for row in judged)}/{sum(row.total - row.quarantined for row in judged)}"


def cut_to(text: str, size: int) -> str:
    """Return as many whole lines of ``text`` as fit into ``size`` bytes of UTF-8, and say that others were left out."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= size:
        return text
    if size < len(_CUT):
        return ""
    kept = data[: size - len(_CUT)].rpartition(b"\n")[0]
    return kept.decode("utf-8", "ignore") + _CUT


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> list[str]:
    """Return the lines of a table; the first ``texts`` columns are text, the others numbers on the right."""
    shown = [headings, *[[printable(cell, keep="", folds=False) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(headings))]
    return [_line(row, widths, texts) for row in shown]


def interval_text(interval: Sequence[float] | None, *, sign: bool = False) -> str:
    """Return ``low to high`` with three digits, or a dash where there is no interval."""
    if interval is None:
        return "-"
    low, high = (f"{end:+.3f}" if sign else f"{end:.3f}" for end in interval)
    return f"{low} to {high}"


def percent(share: float | None) -> str:
    """Return a share in percent with one digit; a dash for None."""
    return "-" if share is None else f"{100 * share:.1f} %"


def signed(change: float | None) -> str:
    """Return a change with its sign and four digits; a dash for None."""
    return "-" if change is None else f"{change:+.4f}"


def _line(cells: Sequence[str], widths: Sequence[int], texts: int) -> str:
    padded = [
        cell.ljust(width) if column < texts else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
