"""Describe a run and its gate: the verdict, the time and cost, and the next command."""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_lmeval.leaderboard.rows import TaskRow, as_in_data
from pytest_lmeval.redaction import HIDDEN
from pytest_lmeval.report.tables import score_text
from pytest_lmeval.text import node_name
from pytest_lmeval.types import COST_UNKNOWN

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard

_USUAL = "baseline.json"
QUARANTINED = 10
"""The maximum number of quarantined examples that a report names; it counts the remaining examples."""
_NO_FINGERPRINT = "it was made in Python and has no attribute fingerprint, a text that identifies the model"
# Options that affect an item's name, prompt or score, or that pytest needs to find the item and the model.
_WITH_VALUE = {
    *("-c", "-o", "-p", "--confcutdir", "--config-file", "--import-mode", "--override-ini", "--rootdir"),
    *("--lm-adapter", "--lm-adapter-arg", "--lm-config", "--lm-judge", "--lm-judge-arg", "--lm-num-fewshot"),
    *("--lm-repeats", "--lm-sandbox", "--lm-subject", "--lm-think-tags", "--lm-threshold", "--lm-user"),
    "--lm-user-arg",
}
_FLAGS = {"--allow-bad-tasks", "--lm-allow-bad-tasks"}


def is_off(gate: Mapping[str, Any]) -> bool:
    """Return True if no result could fail the run; reports do not call such a run "passed"."""
    return gate.get("verdict") == "pass" and (gate.get("mode") == "none" or gate.get("decided_by") == [])


def off_line(gate: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Say that no result can fail the run; name the ini file unless the command line set the gate."""
    ini = manifest.get("ini_file")
    by_command = any(argument.startswith("--lm-gate") for argument in _argv(manifest))
    by = "" if by_command or not ini else f" (set by {ini} or the environment)"
    return f"gate {gate['mode']}: no result can fail this run{by}"


def ini_line(gate: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return a line with the gate's settings from the ini file, or "": an edit to that file can weaken the gate."""
    named = manifest.get("gate_from_ini")
    if not isinstance(named, Mapping) or not named:
        return ""
    values = ", ".join(f"{str(name).replace('_', '-')} {value}" for name, value in named.items())
    softer = " (the default is examples)" if "gate" in named and gate.get("mode") in ("none", "tasks") else ""
    return f"set by the ini file {manifest.get('ini_file', '')}: {values}{softer}"


def baseline_line(gate: Mapping[str, Any]) -> str:
    """Return a line with the baseline's path, adapter and timestamp, or "" if there is no baseline."""
    baseline = gate.get("baseline")
    if not isinstance(baseline, Mapping):
        return ""
    return "compared with {path}: {adapter}, {timestamp}".format(
        **{"path": "", "adapter": "", "timestamp": "", **baseline}
    )


def verdict_lines(gate: Mapping[str, Any]) -> list[str]:
    """Return lines for a command's output: the verdict, its reasons, the baseline and the gate's warnings."""
    lines = [
        f"gate {gate['mode']}: {'not gated' if is_off(gate) else gate['verdict']}",
        *(f"  {reason}" for reason in gate["reasons"]),
    ]
    lines += [f"  {line}" for line in [baseline_line(gate)] if line]
    return lines + [f"  doubtful: {warning}" for warning in gate.get("warnings", ())]


def totals_line(board: Leaderboard) -> str:
    """Return a line with a run's known totals (wall time, tokens, cost, retries) and means per example, or ""."""
    usage, wall_s = board.usage, board.facts.manifest.get("wall_s")
    parts = [f"took {duration(wall_s)}"] if isinstance(wall_s, int | float) else []
    tokens = []
    for kind in ("prompt", "completion"):
        tokens += [f"{count:,.0f} {kind}"] if (count := usage.get(f"{kind}_tokens")) else []
    parts += [f"{' and '.join(tokens)} tokens"] if tokens else []
    least = "at least " if usage.get(COST_UNKNOWN) or "cost_known" in board.spent else ""
    parts += [f"cost {least}{amount(usage['cost'])}"] if usage.get("cost") else []
    parts += [f"{usage['retries']:.0f} retries"] if usage.get("retries") else []
    return "; ".join(filter(None, (", ".join(parts), _per_example(board))))


def _per_example(board: Leaderboard) -> str:
    spent, harness_ms = board.spent, board.facts.manifest.get("harness_ms")
    if "model_ms" not in spent:
        return ""
    parts = [f"harness {_ms(harness_ms)}"] if isinstance(harness_ms, int | float) else []
    parts += [f"model {_ms(spent['model_ms'])}"]
    parts += [f"cost {amount(spent['cost_per_example'])}"] if spent.get("cost_per_example") else []
    return f"per example: {', '.join(parts)}"


def _ms(ms: float) -> str:
    return f"{ms:,.1f} ms" if ms < 100 else f"{ms:,.0f} ms"


def resume_line(board: Leaderboard) -> str:
    """Return a line that explains how to retry a pytest run's unscored examples, or ""."""
    counts = board.counts
    unanswered = counts["missing"] + counts["errors"] + counts["timeouts"]
    if board.complete or not unanswered or "argv" not in board.facts.manifest:
        return ""
    return f"to retry the {unanswered} unscored examples: the same command with --lm-resume"


def next_step(board: Leaderboard, reports: str, baseline: str, *, is_first: bool) -> str:
    """Return a line that suggests the user's next command, or "" if there is no suggestion.

    ``reports`` is the folder of the leaderboard. ``baseline`` is the run's baseline, or otherwise an existing
    ``baseline.json``. ``is_first`` is True if the folder contained no earlier run.
    """
    gate = board.facts.gate or {}
    mode, verdict = gate.get("mode"), gate.get("verdict")
    if not board.complete or board.facts.selection or "argv" not in board.facts.manifest:
        return ""
    if mode == "baseline":
        return _after_comparing(str(verdict), reports, baseline)
    if not is_first or verdict not in ("pass", "examples"):
        return ""
    options = f"--lm-baseline={baseline or _USUAL}{'' if baseline else ' --lm-update-baseline'}"
    options = f"--lm-gate=baseline {options}" if mode == "none" else options
    wish = "to fail only if a later run is worse" if verdict == "examples" else "to compare later runs with this one"
    return f"{f'to compare with {baseline}' if baseline else wish}: the same command with {options}"


def _after_comparing(verdict: str, reports: str, baseline: str) -> str:
    if verdict == "new":
        return f"to compare with it: commit {baseline}, then the same command without --lm-update-baseline"
    if verdict == "regression":
        return f"to see the answers then and now: lmeval diff {baseline} {reports}/leaderboard.json"
    return ""


def with_item(parts: tuple[str, str], item: str) -> str:
    """Return the command that reruns ``item``; ``parts`` is the result of :func:`rerun_parts` for the item's file."""
    target, options = parts
    # Quote the name: its parameters are in brackets, which some shells interpret as a pattern.
    return f"pytest {shlex.quote(target + node_name(item))} {options}"


def rerun_parts(manifest: Mapping[str, Any], path: str) -> tuple[str, str]:
    """Return the unquoted start of the node ids of the file ``path``, and the quoted options of a rerun command.

    ``manifest`` holds the run's arguments, with secrets hidden, its ``rootdir`` and its ``report_dir``. The options
    omit arguments with a hidden value. The options set another report dir, so that the rerun does not overwrite the
    run's leaderboard and ledger.
    """
    given = [argument for argument in _repeated(_argv(manifest)) if HIDDEN not in argument]
    given.append(f"--lm-report-dir={os.path.join(_text(manifest, 'report_dir', 'reports'), 'rerun')}")
    return f"{os.path.normpath(os.path.join(_text(manifest, 'rootdir', '.'), path))}::", shlex.join(given)


def command(manifest: Mapping[str, Any]) -> str:
    """Return a run's command, quoted for a shell, with secrets hidden, or "" if the command is not known."""
    return shlex.join(_argv(manifest))


def _repeated(argv: Sequence[str]) -> Iterator[str]:
    rest = iter(argv)
    for argument in rest:
        # A long option may have an equals sign before its value; a short option needs no sign.
        long = argument.startswith("--")
        name = argument.partition("=")[0] if long else argument[:2]
        if argument in _FLAGS:
            yield argument
        elif name in _WITH_VALUE:
            is_whole = argument != name
            value = argument.removeprefix(name) if is_whole else next(rest, None)
            if value is not None and not (name == "-p" and value.startswith("no:")):
                yield argument if is_whole else f"{name}{'=' if long else ''}{value}"


def _argv(manifest: Mapping[str, Any]) -> list[str]:
    given = manifest.get("argv")
    return [str(argument) for argument in given] if isinstance(given, list) else []


def _text(manifest: Mapping[str, Any], name: str, default: str) -> str:
    given = manifest.get(name)
    return given if isinstance(given, str) else default


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    >>> [duration(3.14159), duration(123), duration(7200)]
    ['3.1 s', '2 min 3 s', '2 h 0 min']
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def amount(cost: float) -> str:
    """Format a cost with four decimals, or with two significant digits if it is below 0.01.

    >>> [amount(12.3456789), amount(0.0000123)]
    ['12.3457', '1.2e-05']
    """
    return f"{cost:,.4f}" if cost >= 0.01 else f"{cost:.2g}"


def cache_lines(cache: Mapping[str, Any], run_at: str) -> list[str]:
    """Return lines about the cache of a run that began at ``run_at``: answers found, cost saved and problems."""
    lines = [_used(cache, run_at)]
    # Leaderboards from version 0.1.1 contain this list.
    lines += [f"cached by name and options only: {name}" for name in cache.get("by_name_and_options_only", ())]
    lines += [f"not cached: {name}: {_NO_FINGERPRINT}" for name in cache.get("not_cached", ())]
    if "outdated" in cache:
        lines.append(
            f"cache: {cache['outdated']} answer(s) of an earlier version are not used, as their keys do not say for "
            "sure which adapter gave them, and applications' requests were sent with temperature 0 then; `lmeval cache "
            "prune` removes them"
        )
    return lines + ([f"cache: no more answers are kept: {cache['failure']}"] if "failure" in cache else [])


def _used(cache: Mapping[str, Any], run_at: str) -> str:
    saved = f"; cost saved: {cache['saved_cost']:.6g}" if cache["saved_cost"] else ""
    oldest = f"; the oldest is {_age(cache['oldest'], run_at)}" if "oldest" in cache else ""
    draws = f"; cached draws: {cache['draws']}" if cache.get("draws") else ""
    return f"cache: {cache['hits']} of {cache['hits'] + cache['misses']} answer(s) found{draws}{saved}{oldest}"


def _age(asked: Any, run_at: str) -> str:
    with suppress(TypeError, ValueError):
        days = max(0, (datetime.fromisoformat(run_at) - datetime.fromisoformat(str(asked))).days)
        return f"{days} day(s) old ({str(asked)[:10]})"
    return f"of {asked}"


def selection_text(board: Leaderboard) -> str:
    """State how many examples ran; return "" if all of them did."""
    counts = board.facts.selection.get("tasks", {}).values()
    if not counts:
        return ""
    selected, available = (sum(count[key] or 0 for count in counts) for key in ("selected", "available"))
    whole = board.facts.selection.get("without_subjects")
    others = f"; whole, without subjects: {', '.join(map(str, whole))}" if whole else ""
    return f"ran {selected} of {available} examples of the task files{others}"


def remark_lines(board: Leaderboard) -> list[str]:
    """Return the remarks that each report shows about excluded rows, quarantine, thoughts, repeats and the cache."""
    lines = [f"{row.task}: {line}" for row in board.tasks for line in _notes_of(row)]
    lines += [*_quarantine_lines(board), *_thought_lines(board)]
    for row in board.tasks:
        if count := row.repeats.get("differ"):
            lines.append(f"{row.task}: the repeats of {count} example{'' if count == 1 else 's'} have different scores")
    if cache := board.facts.manifest.get("cache"):
        lines += cache_lines(cache, board.facts.timestamp)
    # Remove duplicates: the leaderboard's remarks already contain the lines on the cache, unless it is from an older
    # version.
    return [*dict.fromkeys([*map(str, board.remarks), *lines])]


def _quarantine_lines(board: Leaderboard) -> list[str]:
    results = [result for row in board.tasks for result in row.per_example if result.status == "quarantined"]
    if not results:
        return []
    lines = [
        f"quarantined until {result.quarantine.get('until')}: {result.task}: {result.id} "
        f"({score_text(result.score) if result.score is not None else 'no score'}; {result.quarantine.get('reason')})"
        for result in as_in_data(results)[:QUARANTINED]
    ]
    return lines + [f"... and {more} more quarantined" for more in [len(results) - QUARANTINED] if more > 0]


_LEFT_OUT = ("actions", "without_weight", "neither_answer", "left_out")


def _notes_of(row: TaskRow) -> Iterator[str]:
    # The notes may come from a file, so they may have any type.
    actions, unweighted, unanswered, missing = (
        each if isinstance(each := row.notes.get(name), Mapping) else {} for name in _LEFT_OUT
    )
    if actions:
        yield f"excluded by action {_counted(actions)}"
    for metric, labels in unweighted.items():
        yield f"left out of {metric}, labels without a weight: {_counted(labels)}"
    for scorer, count in unanswered.items():
        yield f"left out of the classes of {scorer}: {count} row(s) with neither answer"
    for metric, reason in missing.items():
        yield f"no {metric}: {reason}"


def _counted(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {count} row(s)" for name, count in counts.items())


def _thought_lines(board: Leaderboard) -> list[str]:
    lines = [
        f"cut off: {row.task}: {row.cut_off} of {row.total} answers ended at the limit of tokens, or in the thoughts"
        for row in board.tasks
        if row.cut_off
    ]
    tokens = board.usage.get("reasoning_tokens", 0)
    return [*lines, *([f"reasoning tokens: {int(tokens):,}"] if tokens else [])]
