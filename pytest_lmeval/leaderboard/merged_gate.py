"""The gate of a run that was joined from its shards: as they recorded it, or as it is asked for now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.against import compare_with
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.compare import Comparison, Criteria
from pytest_lmeval.leaderboard.coverage import NOT_COMPARED
from pytest_lmeval.leaderboard.gate import MODES, OVERALL, GateSettings, decide, let_pass
from pytest_lmeval.leaderboard.merge import judged
from pytest_lmeval.leaderboard.runfile import RunFile, board_of, examples_of, read_run

__all__ = ["exit_code", "gate_settings", "gated", "interruptions"]

_NAMED_ELSEWHERE = ("no result: ", NOT_COMPARED)


def gate_settings(shards: Sequence[RunFile], asked: Mapping[str, Any]) -> GateSettings:
    """Return the settings that the shards recorded, changed by what is ``asked`` for: fields of GateSettings.

    Floors are added to those recorded; a baseline without a mode makes it ``baseline``. Raises UsageError that names a
    floor asked for that is of no task, and a setting on which the shards differ and that is not asked for.
    """
    wanted = dict(asked)
    tasks = {name for shard in shards for name in shard.infos}
    unknown = wanted.get("floors", {}).keys() - tasks - {OVERALL}
    if unknown:
        raise UnknownName("task", min(unknown), [*tasks, OVERALL])
    if "baseline" in wanted:
        wanted.setdefault("mode", "baseline")
    recorded = [_recorded(shard) for shard in shards]
    for name, value in recorded[0].items():
        for shard, settings in zip(shards, recorded, strict=True):
            if name not in wanted and settings[name] != value:
                raise UsageError(
                    f"the gate's {name} is {value!r} in {shards[0].path} and {settings[name]!r} in {shard.path}; say "
                    "which it is to be"
                )
    floors = {**recorded[0]["floors"], **wanted.pop("floors", {})}
    return GateSettings(**{**recorded[0], **wanted, "floors": floors, "update": False})


def gated(run: RunFile, settings: GateSettings, interrupted: Sequence[str], root: Path) -> tuple[RunFile, Leaderboard]:
    """Return the run with every example judged under the settings, and its board with the gate's verdict.

    Raises UsageError where the baseline is missing.
    """
    results = examples_of(run)
    if settings.mode != (run.gate or {}).get("mode"):
        results = judged(results, settings.mode)
    run = replace(run, results=results, facts=replace(run.facts, floors=settings.floors, gate=None))
    board = board_of(run)
    comparison = _comparison(board, settings, root)
    gate = decide(board, settings, incomplete=interrupted, comparison=comparison)
    return run, replace(board, facts=replace(board.facts, gate=gate))


def interruptions(shards: Sequence[RunFile]) -> list[str]:
    """Return why shards did not come to their end, lost examples aside: these are named one by one."""
    return [f"{shard.path}: {reason}" for shard in shards if not shard.facts.finished for reason in _reasons(shard)]


def exit_code(board: Leaderboard) -> int:
    """Return what a run with this board exits with: 3 incomplete, 1 the gate or an example failed, 0 passed."""
    if not board.complete:
        return 3
    failed = any(result.status in ("failed", "error", "timeout") for row in board.tasks for result in row.per_example)
    return int(failed or not let_pass(board.facts.gate or {"verdict": "pass"}))


def _recorded(shard: RunFile) -> dict[str, Any]:
    settings = (shard.gate or {}).get("settings", {})
    defaults = asdict(GateSettings())
    found = {name: settings.get(name, default) for name, default in defaults.items()} if settings else defaults
    for name, default in defaults.items():
        kinds = int | float if isinstance(default, float) else type(default)
        if not isinstance(found[name], kinds):
            raise UsageError(f"{shard.path}: gate.settings.{name}: unexpected {found[name]!r:.80}")
    where = f"{shard.path}: gate.settings"
    if found["mode"] not in MODES:
        raise UsageError(f"{where}.mode: expected one of {', '.join(MODES)}, got {found['mode']!r:.80}")
    for task, floor in found["floors"].items():
        if not isinstance(floor, int | float) or not 0 <= floor <= 1:
            raise UsageError(f"{where}.floors.{task}: expected a number from 0 to 1, got {floor!r:.80}")
    return found


def _reasons(shard: RunFile) -> list[str]:
    reasons = [str(reason) for reason in (shard.gate or {}).get("reasons", ())]
    own = [reason for reason in reasons if not reason.startswith(_NAMED_ELSEWHERE)]
    return own or ["its run was cut short"]


def _comparison(board: Leaderboard, settings: GateSettings, root: Path) -> Comparison | None:
    if not settings.baseline:
        return None
    path = root / settings.baseline
    if not path.exists():
        raise UsageError(f"baseline {path}: not there; name it with --baseline, or judge by another --gate")
    model = board.facts.manifest.get("model")
    exact = isinstance(model, dict) and model.get("exact") is True
    try:
        criteria = Criteria(settings.alpha, settings.tolerance, settings.strict, exact)
    except ValueError as error:
        raise UsageError(f"gate.settings: {error}") from None
    return compare_with(read_run(path), board, criteria, root)
