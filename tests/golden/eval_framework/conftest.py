"""What the records of eval-framework need to be scored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_lmeval.sandbox import Sandbox, open_sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Provide what runs the programs of the records, all of which are ours."""
    with open_sandbox() as opened:
        yield opened
