"""Apply the gate to a run merged from shards, with recorded or new settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.compare.baseline import check_baseline, check_unchanged
from pytest_lmeval.compare.findings import limited_names
from pytest_lmeval.compare.gate import GateSettings, decide
from pytest_lmeval.compare.remarks import floor_without_score, quarantine_of
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.quarantine import judged
from pytest_lmeval.leaderboard.scores import is_score_of
from pytest_lmeval.records.runfile import RunFile, board_of, examples_of, read_run
from pytest_lmeval.types import OVERALL


def gate_settings(shards: Sequence[RunFile], asked: Mapping[str, Any]) -> GateSettings:
    """Return the settings that the shards recorded, overridden by ``asked``, which has fields of GateSettings.

    Add the floors and limits in ``asked`` to the recorded floors and limits. If ``asked`` has a baseline but no mode,
    the mode is ``baseline``. Raise UsageError if a new floor or limit names an unknown task, or if the shards disagree
    on a setting that ``asked`` lacks.
    """
    wanted = dict(asked)
    tasks = {name for shard in shards for name in shard.infos}
    keys = {info.key for shard in shards for info in shard.infos.values()}
    named = {*wanted.get("floors", {}), *limited_names(wanted.get("limits", {}))}
    infos = {name: info for shard in shards for name, info in shard.infos.items()}
    unknown = {name for name in named - tasks - keys - {OVERALL} if not is_score_of(name, infos)}
    if unknown:
        raise UnknownName("task", min(unknown), [*tasks, OVERALL])
    if "baseline" in wanted:
        wanted.setdefault("mode", "baseline")
    recorded = [recorded_settings(shard) for shard in shards]
    for name, value in recorded[0].items():
        for shard, settings in zip(shards, recorded, strict=True):
            if name not in wanted and settings[name] != value:
                raise UsageError(
                    f"the gate's {name} is {value!r} in {shards[0].path} and {settings[name]!r} in {shard.path}; "
                    "choose one by its option"
                )
    added = {name: {**recorded[0][name], **wanted.pop(name, {})} for name in ("floors", "limits")}
    return GateSettings(**{**recorded[0], **wanted, **added, "update": False})


def gated(run: RunFile, settings: GateSettings, root: Path) -> tuple[RunFile, Leaderboard, int]:
    """Apply the gate to a run; return the run, its board with the verdict, and the exit code.

    Raise UsageError if the baseline does not exist or cannot be used, or if a floor names a task without a score.
    """
    baseline = _baseline(settings, root)
    results = examples_of(run)
    if baseline is not None:
        results = quarantine_of(run, baseline).judged(results, settings.mode)
    if settings.mode != (run.facts.gate or {}).get("mode"):
        results = judged(results, settings.mode, (run.facts.gate or {}).get("mode", ""))
    facts = replace(run.facts, floors=settings.floors, limits=settings.limits, gate=None, mode=settings.mode)
    run = replace(run, results=results, facts=facts)
    board = board_of(run)
    if refusal := floor_without_score(board, settings.floors):
        raise UsageError(refusal)
    decision = decide(board, baseline, settings, root=root)
    return run, replace(board, facts=replace(board.facts, gate=decision.to_json())), decision.exit_code


def recorded_settings(shard: RunFile) -> dict[str, Any]:
    """Return a run's recorded fields of GateSettings, or defaults; raise UsageError for an invalid value."""
    settings = (shard.facts.gate or {}).get("settings", {})
    defaults = asdict(GateSettings())
    found = {name: settings.get(name, default) for name, default in defaults.items()} if settings else defaults
    for name, default in defaults.items():
        kinds = int | float if isinstance(default, float) else type(default)
        if not isinstance(found[name], kinds):
            raise UsageError(f"{shard.path}: gate.settings.{name}: unexpected {found[name]!r:.80}")
    try:
        GateSettings(**found)
    except UsageError as error:
        raise UsageError(f"{shard.path}: {error}") from None
    return found


def _baseline(settings: GateSettings, root: Path) -> RunFile | None:
    if not settings.baseline:
        return None
    path = root / settings.baseline
    if not path.exists():
        raise UsageError(f"baseline {path}: no such file")
    baseline = read_run(path)
    check_baseline(baseline)
    check_unchanged(baseline)
    return baseline
