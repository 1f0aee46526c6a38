"""The built wheel and sdist are the whole product: complete, described for an index page, usable elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from tests import needs
from tests.conftest import NEEDLESS, MadeOnce

ROOT = Path(__file__).parents[1]
HOME = "https://github.com/pytest-lmeval/pytest-lmeval"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def dist(made_once: MadeOnce) -> Path:
    """Provide a folder with the wheel and the sdist."""
    needs.installed("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d"]
    return made_once("dist", lambda folder: subprocess.run([*build, str(folder)], cwd=ROOT, check=True))


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (built,) = dist.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    files = zipfile.ZipFile(wheel)
    (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(files.read(name).decode())


def _source_files() -> set[str]:
    paths = (ROOT / "pytest_lmeval").rglob("*")
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_file() and path.suffix != ".pyc"}


# What is inside


def test_the_wheel_holds_every_module_data_file_and_the_type_marker(wheel: Path) -> None:
    packaged = set(zipfile.ZipFile(wheel).namelist())

    assert "pytest_lmeval/py.typed" in packaged
    assert set() == _source_files() - packaged


def test_the_sdist_has_no_more_than_a_packager_needs_and_makes_the_same_wheel(
    dist: Path, wheel: Path, tmp_path: Path
) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True)

    folders = {"benchmarks", "docs", "examples", "pytest_lmeval", "tasks", "tests"}
    assert folders == {path.name for path in root.iterdir() if path.is_dir()}
    assert set() == {"LICENSE", "README.md", "conftest.py", "pyproject.toml"} - {path.name for path in root.iterdir()}
    assert [] == [*root.rglob("*.png")]
    assert (root / "tests" / "conftest.py").exists()
    # The tests of applications, task folders and media took 240 kB.
    assert sdist.stat().st_size < 2_600_000
    assert zipfile.ZipFile(wheel).namelist() == zipfile.ZipFile(tmp_path / wheel.name).namelist()


# What an index page shows


def test_the_metadata_names_licence_authors_and_addresses(metadata: Message) -> None:
    addresses = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))

    assert "Apache-2.0" == metadata["License-Expression"]
    assert ["LICENSE"] == metadata.get_all("License-File")
    assert "pytest-lmeval contributors" == metadata["Author"]
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} == addresses.keys()
    assert {url for url in addresses.values() if not url.startswith(HOME)} == set()


def test_every_link_of_the_long_description_is_absolute_and_leads_to_a_file_of_this_version(metadata: Message) -> None:
    # The parser keeps the description's bytes as they are; only its links matter here.
    targets = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    prefix = f"{HOME}/blob/v{PROJECT['version']}/"

    assert "text/markdown" == metadata["Description-Content-Type"]
    assert len(targets) > 20
    assert [] == [target for target in targets if not target.startswith("https://")]
    files = [target.removeprefix(prefix).partition("#")[0] for target in targets if target.startswith(HOME)]
    assert [] == [name for name in files if not (ROOT / name).is_file()]


def test_every_page_names_the_same_address() -> None:
    pages = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml"), ROOT / "pyproject.toml"]
    named = {
        (page.name, address)
        for page in pages
        for address in re.findall(r"https://github\.com/[\w-]+/pytest[\w-]*", page.read_text("utf-8"))
    }

    assert {HOME} == {address for _, address in named}


def test_every_extra_that_a_message_or_page_names_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "pytest_lmeval").rglob("*.py")]
    named = {
        extra
        for page in pages
        for extras in re.findall(r"pytest-lmeval\[([\w,]+)\]", page.read_text("utf-8"))
        for extra in extras.split(",")
    }

    assert named
    assert named <= PROJECT["optional-dependencies"].keys()


# What it needs


def test_every_dependency_has_a_lower_bound_and_ci_installs_the_lowest() -> None:
    ci = [(ROOT / ".ci" / "run").read_text("utf-8"), (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")]
    every = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]

    assert [] == [each for each in every if not re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?>=\d+(\.\d+)*", each)]
    for script in ci:
        assert "--resolution lowest-direct -e .\n" in script
        # The README's first command, in two processes, on these versions.
        assert re.search(r"readme\.py 1\).*\$\{first##\*/bin/\} -n 2", script, re.DOTALL)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_actions_of_a_workflow_are_pinned_by_hash(path: Path) -> None:
    used = re.findall(r"\buses: (?!\./)(.+)", path.read_text("utf-8"))

    assert used
    assert [] == [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)]


def test_what_is_published_is_built_by_a_job_that_runs_nothing_else_with_tools_by_their_hashes() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    uploads = [
        name for name, job in jobs.items() if any("dist" == each.get("with", {}).get("name") for each in job["steps"])
    ]
    commands = [line for each in jobs["build"]["steps"] for line in each.get("run", "").splitlines()]
    tools = (ROOT / ".github/tools/requirements.txt").read_text("utf-8").replace("\\\n", "").splitlines()

    assert ["build", "distributions"] == uploads
    assert ["pip", "python", "sha256sum", "echo"] == [line.split()[0] for line in commands]
    assert {"build", "hatchling", "hatch-fancy-pypi-readme"} <= {line.partition("==")[0] for line in tools}
    assert [] == [line for line in tools if "--hash=sha256:" not in line]


def test_the_site_is_built_by_a_job_that_runs_nothing_else_and_published_by_one_that_builds_nothing() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/docs.yml").read_text("utf-8"))["jobs"]
    commands = [line for each in jobs["site"]["steps"] for line in each.get("run", "").splitlines()]
    tools = (ROOT / ".github/tools/docs.txt").read_text("utf-8").replace("\\\n", "").splitlines()

    assert [
        "pip install --require-hashes --only-binary=:all: -r .github/tools/docs.txt",
        "python website/build.py",
    ] == commands
    assert {"contents": "read"} == jobs["site"]["permissions"]
    assert ["actions/deploy-pages"] == [each["uses"].partition("@")[0] for each in jobs["publish"]["steps"]]
    assert {re.split(r"\W*>=", each)[0] for each in PROJECT["optional-dependencies"]["docs"]} <= {
        line.partition("==")[0] for line in tools
    }
    assert [] == [line for line in tools if "--hash=sha256:" not in line]


def test_the_workflow_tests_the_versions_of_python_that_the_metadata_names(metadata: Message) -> None:
    (matrix,) = re.findall(r"\bpython: \[(.+)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(metadata.get_all("Classifier", [])))

    assert named
    assert set(named) <= set(re.findall(r"3\.\d+", matrix))


def test_the_installed_wheel_runs_a_starter_outside_of_the_repository(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    # What an installation without dependencies does, in an environment that may have no pip.
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    project = tmp_path / "project"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *command], cwd=project, env=environment, capture_output=True, text=True, check=False
        )

    project.mkdir()
    started = run("pytest_lmeval.cli", "init")
    evaluated = run("pytest", "tasks", "--lm-adapter=toy", "--trace-config", *[f"-pno:{name}" for name in NEEDLESS])

    assert (0, "") == (started.returncode, started.stderr)
    assert evaluated.returncode == 0, evaluated.stdout
    assert str(site / "pytest_lmeval" / "plugin") in evaluated.stdout
    assert "overall" in evaluated.stdout
    assert (project / "reports" / "leaderboard.json").exists()
