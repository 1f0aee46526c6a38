"""Settings that are checked before anything else happens, and the registry they are checked against."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.options import named_number

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry

__all__ = ["build_registry", "check_options", "ini_thresholds", "max_line_bytes", "with_usage_errors"]

_Result = TypeVar("_Result")


def check_options(config: pytest.Config) -> None:
    """Raise pytest.UsageError at once for what can be seen to be wrong without any task."""
    max_line_bytes(config)
    ini_thresholds(config)
    if config.option.lm_limit is not None and config.option.lm_sample is not None:
        raise pytest.UsageError("--lm-limit and --lm-sample exclude each other: the first N, or a random N")
    spec = config.getoption("lm_adapter")
    if spec:
        from pytest_lmeval.adapters.resolve import check_spec

        # With a registry that is thrown away: conftest files below the task folders are not loaded yet.
        with_usage_errors(lambda: check_spec(spec, build_registry(config), config.rootpath))


def with_usage_errors(action: Callable[[], _Result]) -> _Result:
    """Call ``action``; what the user can mend becomes pytest's own usage error."""
    try:
        return action()
    except LmevalError as error:
        raise pytest.UsageError(str(error)) from None


def ini_thresholds(config: pytest.Config) -> dict[str, float]:
    """Return the thresholds of the ini file, by task or metric name."""
    try:
        return dict(named_number(line) for line in config.getini("lm_thresholds"))
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini lm_thresholds: {error}") from None


def max_line_bytes(config: pytest.Config) -> int:
    """Return how long a line of a task file may be."""
    given = config.getini("lm_max_line_bytes")
    if not str(given).isdecimal() or int(given) < 1:
        raise pytest.UsageError(f"ini lm_max_line_bytes: expected a whole number >= 1, got {given!r}")
    return int(given)


def build_registry(config: pytest.Config) -> Registry:
    """Return a registry of all that is built in, installed, in pyproject.toml and in the conftests loaded so far."""
    from pytest_lmeval.project import register_project_plugins
    from pytest_lmeval.registry import default_registry

    def build() -> Registry:
        registry = default_registry()
        register_project_plugins(registry, config.rootpath)
        config.hook.pytest_lmeval_register(registry=registry)
        return registry

    return with_usage_errors(build)
