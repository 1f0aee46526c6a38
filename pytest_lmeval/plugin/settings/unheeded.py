"""Options and ini keys that nothing would heed: refused as mistakes, or named where they only have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from pytest_lmeval.errors import did_you_mean
from pytest_lmeval.plugin.private import ini_keys

UNHEEDED = pytest.StashKey[tuple[str, ...]]()
"""What the reports of a run say of the options that had no effect in it."""
_NAMED = ("lm_thresholds", "lm_min_scores")
_KEYS = (
    *("lm_adapter", "lm_alpha", "lm_baseline", "lm_cache", "lm_gate", "lm_max_errors", "lm_max_line_bytes"),
    *("lm_min_scores", "lm_sandbox_packages", "lm_task_paths", "lm_thresholds", "lm_trusted_paths"),
)


def check_ini_keys(config: pytest.Config) -> None:
    """Raise pytest.UsageError for a misspelt key, a name that a key has twice, and a folder that is not there."""
    for key in ini_keys(config):
        if key.startswith("lm_") and not _is_known(key, config) and (meant := _meant(key, config)):
            raise pytest.UsageError(f"ini {key}: there is no such key;{meant}")
    for key in _NAMED:
        counts = Counter(str(line).rpartition("=")[0].strip() for line in config.getini(key))
        if twice := [name for name, count in counts.items() if count > 1]:
            raise pytest.UsageError(f"ini {key}: {twice[0]} has two values; leave one of them")
    if config.option.lm_adapter or config.getini("lm_adapter"):
        # A folder of lm_trusted_paths that is not there only trusts less.
        for folder in config.getini("lm_task_paths") or ():
            if not (config.rootpath / folder).exists():
                raise pytest.UsageError(f"ini lm_task_paths: {folder}: no such folder below {config.rootpath}")


def note_unheeded(config: pytest.Config) -> None:
    """Note, for the reports, the options that have no effect without another one."""
    config.stash[UNHEEDED] = tuple(_without_effect(config.option))


def _is_known(key: str, config: pytest.Config) -> bool:
    try:
        config.getini(key)
    except ValueError:
        return False
    return True


def _meant(key: str, config: pytest.Config) -> str:
    if hasattr(config.option, key):
        return f" write addopts = --{key.replace('_', '-')}=..."
    return did_you_mean(key, _KEYS)


def _without_effect(option: object) -> Iterator[str]:
    given = vars(option)
    compares = {"--lm-strict": given["lm_strict"], "--lm-tolerance": given["lm_tolerance"]}
    compares["--lm-pair-by"] = given["lm_pair_by"] not in (None, "content")
    names = [name for name, value in compares.items() if value]
    if names and not given["lm_baseline"]:
        yield f"{', '.join(names)}: without effect, nothing is compared without --lm-baseline"
    if given["lm_seed"] and given["lm_sample"] is None:
        yield "--lm-seed: without effect, nothing is drawn without --lm-sample"
