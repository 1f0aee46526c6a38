"""Read and check the baseline, and decide whether this run may replace it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.plugin.settings.checks import check_baseline_exists
from pytest_lmeval.plugin.settings.models import report_dir, selection_of, whole
from pytest_lmeval.plugin.settings.settings import label_of, resolved_of, spec_of, with_usage_errors
from pytest_lmeval.records.boardfile import PREVIOUS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_lmeval.leaderboard.rows import TaskInfo
    from pytest_lmeval.records.runfile import RunFile

_SELECTING = {
    "limit": "--lm-limit",
    "sample": "--lm-sample",
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "changed": "--lm-changed",
}


def baseline_path(config: pytest.Config) -> Path:
    """Return the path to the baseline, which the options must name."""
    return config.invocation_params.dir / str(config.option.lm_baseline)


def read_baseline(config: pytest.Config) -> RunFile | None:
    """Read the baseline that the options name; return None before the first baseline is written.

    Raise pytest.UsageError if the baseline is missing or unreadable, or lacks per-example records. Also refuse a
    baseline that this run writes, because a regression would fail once and then become the next baseline.
    """
    option = config.option
    path = baseline_path(config)
    if _is_replaced(path, config):
        raise pytest.UsageError(
            f"--lm-baseline {option.lm_baseline}: this run writes that file itself, or moves it; keep a copy of the "
            "baseline elsewhere, or choose another --lm-report-dir"
        )
    if option.lm_update_baseline and not path.exists():
        return None
    check_baseline_exists(config)
    from pytest_lmeval.compare.baseline import check_baseline, check_unchanged
    from pytest_lmeval.compare.pairing import check_pairing
    from pytest_lmeval.records.runfile import examples_of, read_run

    def read() -> RunFile:
        run = read_run(path)
        if not option.lm_update_baseline:
            check_baseline(run)
            check_unchanged(run)
            check_pairing(run, option.lm_pair_by, f"--lm-baseline {option.lm_baseline}")
        examples_of(run)
        return run

    return with_usage_errors(read)


def check_update(config: pytest.Config, infos: Sequence[TaskInfo]) -> None:
    """Raise UsageError if the run cannot become the baseline because it lacks examples, or tasks of the old baseline.

    ``infos`` lists the collected tasks, each with its number of selected examples.
    """
    option = config.option
    if selection := selection_of(option, infos):
        counts = selection.pop("tasks").values()
        selected, available = (sum(count[key] or 0 for count in counts) for key in ("selected", "available"))
        how = [name for key, name in _SELECTING.items() if key in selection] or ["node ids, --lf, --sw or a plugin"]
        raise UsageError(
            f"--lm-update-baseline needs a run of all examples; {selected} of {available} are selected "
            f"({', '.join(how)}): run all of them, or leave --lm-update-baseline out"
        )
    if missing := tasks_not_run(config, read_baseline(config), [info.name for info in infos]):
        raise UsageError(
            f"--lm-update-baseline needs a run of all tasks in {option.lm_baseline}; not collected: "
            f"{', '.join(missing)}: name their files too, or delete {option.lm_baseline} to start a new baseline"
        )


def tasks_not_run(config: pytest.Config, baseline: RunFile | None, run: Collection[str]) -> list[str]:
    """Return the baseline's tasks that are missing from ``run`` although their files exist."""
    infos = baseline.infos.values() if baseline is not None else ()
    return [info.name for info in infos if info.name not in run and (config.rootpath / info.path).is_file()]


def check_recording(config: pytest.Config) -> None:
    """Raise pytest.UsageError if workers replay a file that this run might replace before they read it."""
    kind, _, path = resolved_of(config).adapter.partition(":")
    if kind == "replay" and _is_replaced(Path(path), config):
        raise pytest.UsageError(
            f"--lm-adapter={spec_of(config)}: this run replaces that file while its workers read it; choose another "
            "--lm-report-dir, or run without -n"
        )


def _is_replaced(path: Path, config: pytest.Config) -> bool:
    folder, label = report_dir(whole(config)), label_of(config)
    names = ("leaderboard.json", "ledger.jsonl")
    # leaderboard.json in the folder shared by all models comes from an older single-model run.
    own = [f"{label}/{name}" for name in names] + ["leaderboard.json"] if label else names
    replaced = [*own, *(f"{PREVIOUS}/{name}" for name in own)]
    return path.resolve() in [(folder / each).resolve() for each in replaced]
