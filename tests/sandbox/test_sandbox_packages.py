"""Installed packages that programs may import, and all the others, which they may not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.sandbox import Limits, Sandbox, open_sandbox
from pytest_lmeval.sandbox.packages import find
from tests import needs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux")


@pytest.fixture(scope="module")
def with_numpy() -> Iterator[Sandbox]:
    needs.module("numpy")
    with open_sandbox("confined", packages=("numpy",)) as sandbox:
        yield sandbox


def test_numpy_works_with_its_libraries_and_its_metadata(with_numpy: Sandbox) -> None:
    program = (
        "import importlib.metadata\nimport numpy as np\n"
        "def f():\n    a = np.arange(1e4).reshape(100, 100) + np.eye(100)\n"
        "    trace = (a @ np.linalg.inv(a)).trace()\n"
        "    return [int(trace.round()), importlib.metadata.version('numpy') == np.__version__]"
    )

    run = with_numpy.call(program, "f", [[]], Limits())

    assert [100, True] == run.answers[0].value, run


def test_a_package_that_was_not_named_is_not_there(with_numpy: Sandbox) -> None:
    program = "import sys\ndef f():\n    try: import pytest\n    except ImportError as e: return str(e)"

    assert "No module named 'pytest'" == with_numpy.call(program, "f", [[]], Limits()).answers[0].value


def test_a_package_may_be_read_and_not_written_and_what_is_beside_it_neither(with_numpy: Sandbox) -> None:
    program = (
        "import os, numpy\ndef attempt(act):\n    try: act(); return 'done'\n"
        "    except PermissionError: return 'denied'\n"
        "def f():\n    folder = os.path.realpath(os.path.dirname(numpy.__file__))\n"
        "    return [attempt(act) for act in (\n"
        "        lambda: open(f'{folder}/__init__.py'), lambda: open(f'{folder}/__init__.py', 'a'),\n"
        "        lambda: open(f'{folder}/x', 'w'), lambda: os.listdir(f'{folder}/..'),\n"
        f"        lambda: open({pytest.__file__!r}))]"
    )

    answer = with_numpy.call(program, "f", [[]], Limits()).answers[0].value

    assert ["done", "denied", "denied", "denied", "denied"] == answer


def test_the_level_holds_with_packages_too(with_numpy: Sandbox) -> None:
    assert () == with_numpy.probe()


def test_memory_is_still_limited(with_numpy: Sandbox) -> None:
    run = with_numpy.call("import numpy\ndef f(): return numpy.ones(10**10).sum()", "f", [[]], Limits())

    assert "error" == run.status
    assert "MemoryError" in run.reason


def test_a_package_brings_what_it_needs_but_for_extras() -> None:
    # hypothesis needs sortedcontainers, and numpy only as an extra.
    names = {package.name for package in find(["hypothesis"])}

    assert {"hypothesis", "sortedcontainers"} <= names
    assert "numpy" not in names
    assert all(Path(package.path).exists() for package in find(["hypothesis"]))


@pytest.mark.again
def test_a_package_may_be_named_as_it_is_imported() -> None:
    assert find(["_pytest"]) == find(["pytest"])


def test_an_unknown_package_is_a_usage_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"sandbox package 'hypothesys' is not installed; did you mean 'hypothesis'\?"):
        open_sandbox("confined", packages=("hypothesys",))
