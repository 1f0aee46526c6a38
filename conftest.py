"""What this project changes about its evals: the smallest useful override of a fixture."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from pytest_lmeval import Example
from pytest_lmeval.task import Prompt


@pytest.fixture(scope="session")
def lm_render(lm_render: Callable[[Example], Prompt]) -> Callable[[Example], Prompt]:
    """Render as always, without the indentation that an author's editor left in a prompt."""

    def render(example: Example) -> Prompt:
        rendered = lm_render(example)
        return textwrap.dedent(rendered) if isinstance(rendered, str) else rendered

    return render
