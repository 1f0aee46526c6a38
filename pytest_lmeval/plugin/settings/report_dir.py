"""Where a run writes: the report dir, or a folder in it where it holds the board of a whole run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_lmeval.leaderboard.rows import TaskInfo

SELECTION = "selection"
"""The folder, in the report dir, of a run of some examples that leaves the board of a whole run where it is."""


def report_dir(config: pytest.Config) -> Path:
    """Return the folder that ``--lm-report-dir`` names; ``reports`` below the project's root where it is not given."""
    given: str | None = config.option.lm_report_dir
    here = config.invocation_params.dir
    if given is not None:
        return here / given
    # An ini file in a folder of tasks makes that the root of the run: no place for reports.
    return (config.rootpath if here.is_relative_to(config.rootpath) else here) / "reports"


def shown_report_dir(config: pytest.Config) -> str:
    """Return the report dir as people read it: as it was given, or from the folder in which the command was."""
    if config.option.lm_report_dir is not None:
        return str(config.option.lm_report_dir)
    folder, here = report_dir(config), config.invocation_params.dir
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def rerun_facts(config: pytest.Config) -> dict[str, Any]:
    """Return the part of the manifest that the command to run an example again is made of."""
    from pytest_lmeval.redaction import redact_arguments

    return {
        "argv": redact_arguments(["pytest", *map(str, config.invocation_params.args)]),
        "rootdir": Path(os.path.relpath(config.rootpath, config.invocation_params.dir)).as_posix(),
        "report_dir": shown_report_dir(config),
    }


def picked_by(config: pytest.Config) -> str:
    """Return the first thing that picks, as the command line has it; "" where nothing does."""
    option = config.option
    chosen = {
        "-k": option.keyword,
        "-m": option.markexpr,
        "--deselect": option.deselect,
        "--lf or --sw": any(config.getoption(each, False) for each in ("--lf", "--sw", "--sw-skip")),
        "a node id": any("::" in str(argument) for argument in config.args),
    }
    return next((name for name, value in chosen.items() if value), "")


def selection_of(option: Any, infos: Sequence[TaskInfo]) -> dict[str, Any]:
    """Return which options left which tasks how many of their examples; empty if nothing was left out."""
    if all(info.selected == info.available for info in infos) and option.lm_shard is None:
        return {}
    named = {
        "limit": option.lm_limit,
        "sample": option.lm_sample,
        "seed": None if option.lm_sample is None else option.lm_seed,
        "keyword": option.keyword or None,
        "markexpr": option.markexpr or None,
        "deselect": option.deselect or None,
        "subjects": option.lm_subject or None,
        "without_subjects": sorted(info.name for info in infos if info.whole) or None,
        "shard": "{}/{}".format(*option.lm_shard) if option.lm_shard else None,
    }
    counts = {info.name: {"available": info.available, "selected": info.selected} for info in infos}
    return {**{name: value for name, value in named.items() if value is not None}, "tasks": counts}


def folder_of_run(config: pytest.Config, examples: int) -> Path:
    """Return where a run of so many ``examples`` writes.

    One whose command picks examples leaves the board of a run of more of them alone.
    """
    folder = report_dir(config)
    return folder / SELECTION if picked_by(config) and examples < _whole(folder) else folder


def held_ledger(config: pytest.Config, examples: int) -> Path:
    """Return the ledger whose answers a run of so many ``examples`` uses again: its own, or the whole run's."""
    own = folder_of_run(config, examples) / "ledger.jsonl"
    return own if own.exists() else report_dir(config) / "ledger.jsonl"


def _whole(folder: Path) -> int:
    """Return how many examples the board in a folder is of, or each of several models that are compared there.

    0 where that is of a selection, or does not exist.
    """
    models = _read(folder / "comparison.json").get("models")
    boards = [_read(folder / "leaderboard.json"), *(models if isinstance(models, list) else ())]
    return max(map(_collected, boards))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _collected(board: Any) -> int:
    counts = board.get("counts") if isinstance(board, dict) else None
    count = counts.get("collected") if isinstance(counts, dict) else None
    return count if isinstance(count, int) and not board.get("selection") else 0
