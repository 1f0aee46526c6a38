"""How editors discover and run evals: their own plugins find each example, run one alone, and get all results.

    python -m tests.editors VSCODE_PYTHON      try both, and write the table of docs/works-with.md

VSCODE_PYTHON is a checkout of https://github.com/microsoft/vscode-python: its plugin for pytest is in no package.
PyCharm calls pytest with teamcity-messages, which is one. Both run ``tests/projects/beside_plugins`` with a model that
is wrong in three examples. Nothing of the editors' code is in this repository.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tests.works_with import PAGE, Environment

MARKS = ("<!-- the editors: python -m tests.editors VSCODE_PYTHON -->", "<!-- end of the editors -->")
WRONG = {"tasks/sums.jsonl::sum-7", "test_evals.py::test_drinks[tea]", "test_evals.py::test_blocking[tea]"}
ALONE = ("tasks/sums.jsonl::sum-7", "test_evals.py::test_drinks[water]", "test_plain.py::test_number")
_HEADER = re.compile(rb"content-length: (\d+)\r\ncontent-type: application/json\r\n\r\n")
_SERVICE = re.compile(r"##teamcity\[(testStarted|testFailed|testFinished) .*?\bname='((?:[^'|]|\|.)*)'")


class Tried(NamedTuple):
    """An editor, the version of what it calls pytest with, and what was seen."""

    editor: str
    version: str
    seen: str


def messages(sent: bytes) -> Iterator[dict[str, Any]]:
    """Yield what a plugin of VS Code sent over its pipe."""
    while sent:
        head = _HEADER.match(sent)
        assert head, sent[:200]
        end = head.end() + int(head[1])
        yield json.loads(sent[head.end() : end])["params"]
        sent = sent[end:]


def leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tests of a tree that VS Code shows."""
    if node["type_"] == "test":
        yield node
    for child in node.get("children", ()):
        yield from leaves(child)


class VSCode:
    """What VS Code's extension for Python calls, with the files of a checkout."""

    def __init__(self, checkout: Path, environment: Environment, project: Path) -> None:
        self._files = checkout / "python_files"
        self._python = environment.python
        self._project = project
        self.version = json.loads((checkout / "package.json").read_text("utf-8"))["version"]

    def _called(self, command: Sequence[str | Path], **more: str) -> list[dict[str, Any]]:
        with tempfile.NamedTemporaryFile() as pipe:
            environment = {**os.environ, "PYTHONPATH": str(self._files), "TEST_RUN_PIPE": pipe.name, **more}
            subprocess.run(
                [self._python, *command], cwd=self._project, env=environment, capture_output=True, check=False
            )
            return [*messages(Path(pipe.name).read_bytes())]

    def discover(self) -> dict[str, Mapping[str, Any]]:
        """Return the tests that the Testing view shows, by their node ids."""
        root = f"--rootdir={self._project}"
        [found] = self._called(["-m", "pytest", "-p", "vscode_pytest", "--collect-only", root, "."])
        assert ("success", []) == (found["status"], found["error"]), found
        return {leaf["runID"]: leaf for leaf in leaves(found["tests"])}

    def run(self, nodeids: Sequence[str]) -> dict[str, str]:
        """Return the outcome of each test that was run, as the Testing view has it, by node id."""
        ids = self._project / "ids.txt"
        ids.write_text("\n".join(f"{self._project}/{each}" for each in nodeids))
        script = self._files / "vscode_pytest/run_pytest_script.py"
        sent = self._called([script, f"--rootdir={self._project}"], RUN_TEST_IDS_PIPE=str(ids))
        results = {name: each["outcome"] for message in sent for name, each in (message["result"] or {}).items()}
        return {name.removeprefix(f"{self._project}/"): outcome for name, outcome in results.items()}


def try_vscode(editor: VSCode, nodeids: Sequence[str]) -> Tried:
    """Discover all, run three alone, then all."""
    found = editor.discover()
    assert {*nodeids} == {*found}
    lines = {name: int(leaf["lineno"]) for name, leaf in found.items()}
    assert {f"tasks/sums.jsonl::sum-{number}": number + 1 for number in range(10)}.items() <= lines.items()
    for name in ALONE:
        assert {name: "failure" if name in WRONG else "success"} == editor.run([name])
    outcomes = editor.run(nodeids)
    assert {name: "failure" if name in WRONG else "success" for name in nodeids} == outcomes
    seen = (
        f"found {len(found)} tests with their lines, ran three of them alone, then all: the same outcomes as pytest's"
    )
    return Tried("VS Code, extension Python", editor.version, seen)


def try_pycharm(environment: Environment, project: Path, nodeids: Sequence[str]) -> Tried:
    """Run a task file, three tests alone and all, as PyCharm's runner calls pytest, and read its messages."""

    def run(*targets: str) -> tuple[set[str], set[str]]:
        paths = [f"{project}/{target}" for target in targets]
        command: list[str | Path] = [environment.python, "-m", "pytest", *paths, "--no-header", "--no-summary", "-q"]
        variables = {**os.environ, "TEAMCITY_VERSION": "LOCAL"}
        done = subprocess.run(command, cwd=project, env=variables, text=True, capture_output=True, check=False)
        said = [(kind, _node(name)) for kind, name in _SERVICE.findall(done.stdout)]
        started, failed, finished = (
            {name for each, name in said if each == kind} for kind in ("testStarted", "testFailed", "testFinished")
        )
        assert started == finished, done.stdout
        return started, failed

    def expected(names: Sequence[str]) -> tuple[set[str], set[str]]:
        return {*map(_named, names)}, {_named(name) for name in names if name in WRONG}

    assert expected([name for name in nodeids if name.startswith("tasks/")]) == run("tasks/sums.jsonl")
    for name in ALONE:
        assert expected([name]) == run(name)
    assert expected(nodeids) == run(".")
    seen = f"a task file, three tests alone, then all {len(nodeids)}: each was reported from start to end, as pytest's"
    return Tried("PyCharm, by teamcity-messages", environment.version("teamcity-messages"), seen)


def _node(name: str) -> str:
    return re.sub(r"\|(.)", r"\1", name)


def _named(nodeid: str) -> str:
    """Return the name of a test in TeamCity's messages: dots between folders, and parameters in round brackets."""
    path, _, test = nodeid.partition("::")
    folders = path.removesuffix(".py").replace(".", "_").replace("/", ".")
    return f"{folders}.{test.replace('[', '(').replace(']', ')')}"


def table(rows: Sequence[Tried]) -> str:
    """Return the table of the page."""
    python = ".".join(map(str, sys.version_info[:2]))
    head = [f"Tried on {date.today()} with pytest {version('pytest')} and Python {python}:", ""]
    head += ["| editor | version | |", "| --- | --- | --- |"]
    return "\n".join([*head, *(f"| {row.editor} | {row.version} | {row.seen} |" for row in rows)])


def main(checkout: str) -> None:
    """Try both editors, and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder, "environment"), ["teamcity-messages"])
        project = environment.project("Worse")
        (project / "pytest.ini").write_text("[pytest]\nlm_adapter = scripted:Worse\n")
        listed: list[str | Path] = [environment.python, "-m", "pytest", "--collect-only", "-q"]
        lines = subprocess.run(listed, cwd=project, text=True, capture_output=True, check=True).stdout.splitlines()
        nodeids = [line for line in lines if "::" in line]
        rows = [
            try_vscode(VSCode(Path(checkout), environment, project), nodeids),
            try_pycharm(environment, project, nodeids),
        ]
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n{table(rows)}\n{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
