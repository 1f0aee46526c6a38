"""The gate's options from the ini file, where the command line leaves them open and picks no part of the tests."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import pytest

from pytest_lmeval.arguments import MaxErrors, level
from pytest_lmeval.errors import UnknownName
from pytest_lmeval.plugin.private import reruns_some

GATES = ("examples", "tasks", "baseline", "none")
_ALPHA = 0.05
_FROM_INI = pytest.StashKey[dict[str, str]]()
_SET_ASIDE = pytest.StashKey[str]()


def add_ini_options(parser: pytest.Parser) -> None:
    """Add the ini options ``lm_gate``, ``lm_baseline``, ``lm_alpha`` and ``lm_max_errors``."""
    parser.addini("lm_gate", "what decides about a run, as --lm-gate", default="")
    parser.addini("lm_baseline", "run that whole runs are compared with, from the ini file's folder", default="")
    parser.addini("lm_alpha", "how often a run that is no worse may fail, as --lm-alpha", default="")
    parser.addini("lm_max_errors", "examples that may end in an error, as --lm-max-errors", default="")


def apply_ini_options(config: pytest.Config) -> None:
    """Give the options of the gate that the command line leaves open the values of the ini file, or their defaults.

    Raise pytest.UsageError for a value that none of them takes. A baseline is for whole runs: where the options choose
    a part it is set aside, and with it the mode ``baseline``.
    """
    option = config.option
    before = {name: getattr(option, f"lm_{name}") for name in _OPEN}
    option.lm_alpha = _given(config, "alpha", level, _ALPHA)
    option.lm_max_errors = _given(config, "max_errors", MaxErrors, MaxErrors("0"))
    option.lm_gate = _given(config, "gate", _mode, None)
    option.lm_baseline = _given(config, "baseline", lambda path: _from_ini_folder(config, path), None)
    named = {name: str(config.getini(f"lm_{name}")) for name in _OPEN if before[name] is None}
    named = {name: value for name, value in named.items() if value}
    part = _chosen_part(config)
    if "baseline" in named and part and before["gate"] != "baseline" and not option.lm_update_baseline:
        option.lm_baseline = None
        del named["baseline"]
        config.stash[_SET_ASIDE] = part
        if option.lm_gate == "baseline":
            option.lm_gate = None
    config.stash[_FROM_INI] = named


def from_ini(config: pytest.Config) -> dict[str, str]:
    """Return what the ini file sets of the gate in this run, by the names of the options without ``lm_``."""
    return config.stash.get(_FROM_INI, {})


def baseline_set_aside(config: pytest.Config) -> str:
    """Return which option chose a part of the examples, so that the ini file's baseline is not compared with; or ""."""
    return config.stash.get(_SET_ASIDE, "")


_OPEN = ("alpha", "max_errors", "gate", "baseline")


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


def _mode(text: str) -> str:
    if text not in GATES:
        raise UnknownName("gate", text, GATES)
    return text


def _from_ini_folder(config: pytest.Config, path: str) -> str:
    folder = config.rootpath if config.inipath is None else config.inipath.parent
    return os.path.relpath(folder / path, config.invocation_params.dir)


def _chosen_part(config: pytest.Config) -> str:
    option = config.option
    of_tasks = {"--lm-limit": option.lm_limit, "--lm-sample": option.lm_sample, "--lm-subject": option.lm_subject}
    return picked_by(config) or next((name for name, value in of_tasks.items() if value), "")


def picked_by(config: pytest.Config) -> str:
    """Return the first thing that picks, as the command line has it; "" where nothing does."""
    option = config.option
    chosen = {
        "-k": option.keyword,
        "-m": option.markexpr,
        "--deselect": option.deselect,
        "--lf or --sw": reruns_some(config),
        "a node id": any("::" in str(argument) for argument in config.args),
    }
    return next((name for name, value in chosen.items() if value), "")
