"""What this project changes about its evals: the smallest useful override of a fixture."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from pytest_lmeval import Example


@pytest.fixture(scope="session")
def lm_render(lm_render: Callable[[Example], str]) -> Callable[[Example], str]:
    """Render as always, without the indentation that an author's editor left in a prompt."""
    return lambda example: textwrap.dedent(lm_render(example))
