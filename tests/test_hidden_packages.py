"""The tests are found, and those of projects skipped, on a machine that lacks a package of the extras."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

from tests import needs

ROOT = Path(__file__).parents[1]
# The tests of applications are slow; the same rule skips them.
IMPORTED = {file: names for file, names in needs.PACKAGES.items() if not file.startswith("app_")}
# Python runs this when it starts. Plugins of pytest are found by their distributions.
SITE = """
import os
from importlib.machinery import PathFinder
from importlib.metadata import MetadataPathFinder

hidden = os.environ["HIDDEN"].split()
find_spec, find_distributions = PathFinder.find_spec, MetadataPathFinder.find_distributions

def visible_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find_spec(name, path, target)

def visible_distributions(*context):
    return (each for each in find_distributions(*context) if each.name not in hidden)

PathFinder.find_spec = classmethod(lambda cls, *arguments: visible_spec(*arguments))
MetadataPathFinder.find_distributions = staticmethod(visible_distributions)
"""


def pytest_without(packages: Iterable[str], folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run pytest as if these packages, and those that need them, were not installed."""
    (folder / "sitecustomize.py").write_text(SITE)
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    surroundings |= {"PYTHONPATH": str(folder), "HIDDEN": " ".join(sorted(with_dependents(packages)))}
    surroundings.pop(needs.VARIABLE, None)
    command = [sys.executable, "-m", "pytest", "-pno:cacheprovider", "-qq", *arguments]
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)


def with_dependents(packages: Iterable[str]) -> set[str]:
    """Return the names of these packages and of all that need them, as they are imported and as they are installed."""
    homes = packages_distributions()
    gone = {home for package in packages for home in homes.get(package, ())}
    wants = {
        each.name: {re.split(r"[^\w.-]", line)[0].lower() for line in each.requires or () if "extra ==" not in line}
        for each in distributions()
    }
    while more := {name for name, wanted in wants.items() if wanted & {each.lower() for each in gone}} - gone:
        gone |= more
    return {*packages, *gone, *(name for name, owners in homes.items() if gone.issuperset(owners))}


def test_what_needs_a_package_is_missing_with_it() -> None:
    needs.installed("jsonschema")
    assert {"jsonschema"} <= with_dependents(["rpds"]) & needs.OPTIONAL
    assert not with_dependents(needs.OPTIONAL) & {"pytest", "pytest_lmeval", "hypothesis", "pydantic"}


@pytest.mark.again
def test_without_any_of_the_packages_all_tests_are_found(tmp_path: Path) -> None:
    done = pytest_without(needs.OPTIONAL, tmp_path, "--collect-only", "tests")

    assert 0 == done.returncode, done.stdout[-5000:]
    assert "needs jsonschema" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted(needs.OPTIONAL))
def test_without_one_of_the_packages_all_tests_are_found(package: str, tmp_path: Path) -> None:
    done = pytest_without([package], tmp_path, "--collect-only", "tests")

    assert 0 == done.returncode, done.stdout[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted({each for names in IMPORTED.values() for each in names}))
def test_without_a_package_that_projects_import_their_tests_are_skipped(package: str, tmp_path: Path) -> None:
    projects = {file.split("/")[0] for file, names in IMPORTED.items() if package in names}
    files = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__) and any(f'"{project}' in path.read_text("utf-8") for project in projects)
    ]
    assert files
    done = pytest_without([package], tmp_path, "-n0", "--again", *files)

    assert 0 == done.returncode, done.stdout[-5000:]
    assert needs.LACKS_LIBRARIES in done.stdout or f"needs {package}" in done.stdout
