"""Check the options and the ini file before collection, and apply the gate's ini options."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from pytest_lmeval.arguments import MaxErrors, level
from pytest_lmeval.errors import UnknownName, did_you_mean
from pytest_lmeval.plugin.private.reports import ini_keys
from pytest_lmeval.plugin.settings.models import labels_of, picked_by
from pytest_lmeval.plugin.settings.options import GATES, PAIR_BY
from pytest_lmeval.plugin.settings.settings import (
    cache_of,
    configs_of,
    gate_mode,
    ini_floors,
    ini_thresholds,
    max_line_bytes,
    registry_of,
    spec_of,
    with_usage_errors,
)

UNHEEDED = pytest.StashKey[tuple[str, ...]]()
"""Remarks on ineffective options, for the reports."""
_NAMED = ("lm_thresholds", "lm_min_scores")
_KEYS = (
    *("lm_adapter", "lm_alpha", "lm_baseline", "lm_cache", "lm_gate", "lm_max_errors", "lm_max_line_bytes"),
    *("lm_min_scores", "lm_pair_by", "lm_safe_fixtures", "lm_sandbox_packages", "lm_task_paths", "lm_threads"),
    *("lm_thresholds", "lm_trusted_paths"),
)
_HOW_TO_WRITE_ONE = "to write it, run the version to compare with, and add --lm-update-baseline"
_ALPHA = 0.05
_OPEN = ("alpha", "max_errors", "gate", "baseline", "pair_by")
FROM_INI = pytest.StashKey[dict[str, str]]()
"""The gate's settings from the ini file, by option name without ``lm_``."""
SET_ASIDE = pytest.StashKey[str]()
"""The option that selected examples, which disables the ini file's baseline."""


def apply_ini_options(config: pytest.Config) -> None:
    """Fill in gate options that the command line omits, from the ini file or with their defaults.

    Raise pytest.UsageError for an invalid value. The ini file's baseline, and with it the mode ``baseline``, applies
    only to runs of all examples.
    """
    option = config.option
    before = {name: getattr(option, f"lm_{name}") for name in _OPEN}
    option.lm_alpha = _given(config, "alpha", level, _ALPHA)
    option.lm_max_errors = _given(config, "max_errors", MaxErrors, MaxErrors("0"))
    option.lm_gate = _given(config, "gate", partial(_choice, "gate", GATES), None)
    option.lm_pair_by = _given(config, "pair_by", partial(_choice, "pair_by", PAIR_BY), "content")
    option.lm_baseline = _given(config, "baseline", lambda path: _from_ini_folder(config, path), None)
    named = {name: str(config.getini(f"lm_{name}")) for name in _OPEN if before[name] is None}
    named = {name: value for name, value in named.items() if value}
    part = _chosen_part(config)
    if "baseline" in named and part and before["gate"] != "baseline" and not option.lm_update_baseline:
        option.lm_baseline = None
        del named["baseline"]
        config.stash[SET_ASIDE] = part
        if option.lm_gate == "baseline":
            option.lm_gate = None
    config.stash[FROM_INI] = named


def _given(config: pytest.Config, name: str, parse: Callable[[str], Any], default: Any) -> Any:
    asked = getattr(config.option, f"lm_{name}")
    text = config.getini(f"lm_{name}")
    if not text:
        return default if asked is None else asked
    try:
        value = parse(str(text))
    except (argparse.ArgumentTypeError, UnknownName) as error:
        raise pytest.UsageError(f"ini lm_{name}: {error}") from None
    return value if asked is None else asked


def _choice(name: str, choices: Sequence[str], text: str) -> str:
    if text not in choices:
        raise UnknownName(name, text, choices)
    return text


def _from_ini_folder(config: pytest.Config, path: str) -> str:
    folder = config.rootpath if config.inipath is None else config.inipath.parent
    return os.path.relpath(folder / path, config.invocation_params.dir)


def _chosen_part(config: pytest.Config) -> str:
    option = config.option
    of_tasks = {"--lm-limit": option.lm_limit, "--lm-sample": option.lm_sample, "--lm-subject": option.lm_subject}
    return picked_by(config) or next((name for name, value in of_tasks.items() if value), "")


def check_options(config: pytest.Config) -> None:
    """Raise pytest.UsageError for mistakes that are apparent before collection."""
    _check_threads(config)
    _check_ini_keys(config)
    config.stash[UNHEEDED] = tuple(_without_effect(config))
    max_line_bytes(config)
    ini_thresholds(config)
    ini_floors(config)
    _check_gate(config)
    if config.option.lm_sandbox == "isolated":
        raise pytest.UsageError("--lm-sandbox=isolated is not available; the strongest level is confined")
    if config.option.lm_limit is not None and config.option.lm_sample is not None:
        raise pytest.UsageError(
            "--lm-limit and --lm-sample cannot be combined: take the first N examples, or a random N"
        )
    configs_of(config)
    cache_of(config)
    if config.option.lm_judge_arg and not config.option.lm_judge:
        raise pytest.UsageError("--lm-judge-arg needs --lm-judge SPEC, because it sets options of the judge's adapter")
    if config.option.lm_user_arg and not config.option.lm_user:
        raise pytest.UsageError(
            "--lm-user-arg needs --lm-user SPEC, because it sets options of the simulated user's adapter"
        )
    _check_models(config)


def _check_threads(config: pytest.Config) -> None:
    try:
        config.getini("lm_threads")
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"ini lm_threads: expected true or false: {error}") from None


def _check_models(config: pytest.Config) -> None:
    option = config.option
    models = [spec for _, spec in option.lm_models] or [option.lm_adapter]
    for spec in (*models, option.lm_judge, option.lm_user):
        if spec:
            from pytest_lmeval.adapters.resolve import check_spec

            # Conftest files below the task folders, not yet loaded, may register more.
            with_usage_errors(partial(check_spec, spec, registry_of(config), config.rootpath))


def _check_gate(config: pytest.Config) -> None:
    option = config.option
    if option.lm_max:
        from pytest_lmeval.compare.findings import limited_names

        with_usage_errors(lambda: limited_names(dict(option.lm_max)))
    if gate_mode(config) == "baseline" and not option.lm_baseline:
        raise pytest.UsageError("--lm-gate=baseline needs --lm-baseline PATH, an earlier leaderboard to compare with")
    if option.lm_update_baseline and not option.lm_baseline:
        raise pytest.UsageError("--lm-update-baseline needs --lm-baseline PATH, the file to write")
    _check_one_writes(config)
    if "baseline" not in config.stash[FROM_INI]:
        # The ini file's baseline is irrelevant to a run that collects no task.
        check_baseline_exists(config)
    if option.lm_update_baseline and option.lm_shard:
        raise pytest.UsageError("--lm-update-baseline needs a complete run; merge the shards first")


def _check_one_writes(config: pytest.Config) -> None:
    """Raise pytest.UsageError if several models would write to the same baseline file."""
    option, labels = config.option, labels_of(config)
    if not (labels and option.lm_update_baseline):
        return
    from pytest_lmeval.records.folders import names_one_file

    if names_one_file(config.invocation_params.dir / option.lm_baseline):
        raise pytest.UsageError(
            f"--lm-update-baseline: {len(labels)} models would write the same file {option.lm_baseline}: name a "
            "folder, which holds a baseline for each, or run one model"
        )


def check_baseline_exists(config: pytest.Config) -> None:
    """Raise pytest.UsageError if the baseline for the comparison does not exist."""
    option = config.option
    if option.lm_baseline and not option.lm_update_baseline:
        path = config.invocation_params.dir / option.lm_baseline
        if not path.exists():
            where = "ini lm_baseline:" if "baseline" in config.stash[FROM_INI] else "--lm-baseline"
            raise pytest.UsageError(f"{where} {option.lm_baseline}: no such file; {_HOW_TO_WRITE_ONE}")


def _check_ini_keys(config: pytest.Config) -> None:
    """Raise pytest.UsageError for a misspelt key, a duplicate name in a value, or a missing task folder."""
    for key in ini_keys(config):
        if key.startswith("lm_") and not _is_known(key, config) and (meant := _meant(key, config)):
            raise pytest.UsageError(f"ini {key}: no such key;{meant}")
    for key in _NAMED:
        counts = Counter(str(line).rpartition("=")[0].strip() for line in config.getini(key))
        if twice := [name for name, count in counts.items() if count > 1]:
            raise pytest.UsageError(f"ini {key}: {twice[0]} has two values; keep one")
    if spec_of(config):
        # A missing folder in lm_trusted_paths only reduces trust.
        for folder in config.getini("lm_task_paths") or ():
            if not (config.rootpath / folder).exists():
                raise pytest.UsageError(f"ini lm_task_paths: {folder}: no such folder below {config.rootpath}")


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


def _without_effect(config: pytest.Config) -> Iterator[str]:
    given = vars(config.option)
    compares = {"--lm-strict": given["lm_strict"], "--lm-tolerance": given["lm_tolerance"]}
    # The ini file applies to every run, including runs without a baseline.
    compares["--lm-pair-by"] = given["lm_pair_by"] != "content" and "pair_by" not in config.stash[FROM_INI]
    names = [name for name, value in compares.items() if value]
    if names and not given["lm_baseline"]:
        yield f"{', '.join(names)}: no effect without --lm-baseline"
    if given["lm_seed"] and given["lm_sample"] is None:
        yield "--lm-seed: no effect without --lm-sample"
