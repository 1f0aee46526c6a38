"""What of a command picks some of the tests: pytest's own options, and node ids."""

from __future__ import annotations

import pytest

from pytest_lmeval.plugin.private import reruns_some


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
