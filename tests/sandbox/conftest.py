"""A sandbox of each level, shared by all tests of this folder: a server is started once."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from pytest_lmeval.sandbox import Sandbox, open_sandbox, probe_level

LINUX = sys.platform == "linux"
# Where the level is not to be had, its tests can say nothing; that it is to be had on Linux is a test of its own.
LEVELS = [
    pytest.param("process", marks=[pytest.mark.again] if LINUX else []),
    pytest.param("confined", marks=pytest.mark.skipif(not LINUX, reason="confined needs Linux")),
]


@pytest.fixture(scope="session")
def process() -> Iterator[Sandbox]:
    with open_sandbox("process") as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def confined() -> Iterator[Sandbox]:
    if missing := probe_level("confined"):
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    with open_sandbox("confined") as sandbox:
        yield sandbox


@pytest.fixture(scope="session", params=LEVELS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found: Sandbox = request.getfixturevalue(request.param)
    return found
