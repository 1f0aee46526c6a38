"""Which plugins and editors runs are tried beside: each in an environment of its own, and the table of the docs.

    python -m tests.works_with                  try all, and write docs/works-with.md
    python -m tests.works_with pytest-cov ...   try these, and write nothing

Each run is of ``tests/projects/beside_plugins``: examples of a task file, of eval functions and plain tests. Beside
each plugin its board has to have the digest, and the run the exit code, that they have alone; once with a model that
is right, once with one that is wrong in three examples.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/works-with.md"
PROJECT = ROOT / "tests/projects/beside_plugins"
MARKS = ("<!-- the table: python -m tests.works_with -->", "<!-- end of the table -->")
SOCKETS = "every event loop has a pair of Unix sockets; a model behind a server needs `--allow-hosts`, too"
_LIMIT_S = 300


class Beside(NamedTuple):
    """What a run is tried beside: packages of the index, options of pytest, and what a user has to know."""

    packages: str
    options: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """The package, and the options that tell it from others of the same package."""
        return " ".join([self.packages, *self.options])


ROWS = (
    Beside("allure-pytest", ("--alluredir=allure",)),
    Beside("anyio"),
    Beside("deepeval"),
    Beside("hypothesis"),
    Beside("langsmith"),
    Beside("pytest-agent-eval"),
    Beside("pytest-asyncio", ("--asyncio-mode=auto",)),
    Beside("pytest-bdd"),
    Beside("pytest-benchmark"),
    Beside("pytest-check"),
    Beside("pytest-clarity"),
    Beside("pytest-cov", ("--cov=.",)),
    Beside("pytest-django"),
    Beside("pytest-env"),
    Beside("pytest-evals"),
    Beside("pytest-flask"),
    Beside("pytest-forked"),
    Beside("pytest-github-actions-annotate-failures"),
    Beside("pytest-html", ("--html=tests.html",)),
    Beside("pytest-httpserver"),
    Beside("pytest-httpx"),
    Beside("pytest-instafail", ("--instafail",)),
    Beside("pytest-json-report", ("--json-report",)),
    Beside("pytest-md-report", ("--md-report",)),
    Beside("pytest-metadata"),
    Beside("pytest-mock"),
    Beside("pytest-order"),
    Beside("pytest-picked"),
    Beside("pytest-playwright"),
    Beside("pytest-random-order", ("--random-order",)),
    Beside("pytest-randomly"),
    Beside("pytest-recording"),
    Beside("pytest-reportlog", ("--report-log=log.jsonl",)),
    Beside("pytest-rerunfailures", ("--reruns=1",)),
    Beside("pytest-socket", ("--disable-socket", "--allow-unix-socket"), SOCKETS),
    Beside("pytest-split", ("--splits=1", "--group=1")),
    Beside("pytest-subtests"),
    Beside("pytest-sugar"),
    Beside("pytest-timeout", ("--timeout=60",)),
    Beside("pytest-xdist", ("-n2",)),
    Beside("pytest-xdist", ("-n2", "--dist=loadfile")),
    Beside("pytest-xdist", ("-n2", "--dist=loadscope")),
    Beside("pytest-xdist", ("-n2", "--dist=loadgroup")),
    Beside("pytest-xdist", ("-n2", "--dist=worksteal")),
    Beside("syrupy"),
    Beside("teamcity-messages", ("--teamcity",), "what PyCharm and TeamCity read"),
)


class Run(NamedTuple):
    """What came of a run: its exit code, the digest of its board, and the end of what it printed."""

    code: int
    digest: str
    said: str = ""

    def is_like(self, other: Run) -> bool:
        """Tell whether both came to the same."""
        return self[:2] == other[:2]


class Environment:
    """An environment with this package and ``packages`` in ``folder``."""

    def __init__(self, folder: Path, packages: Sequence[str]) -> None:
        self._folder = folder
        _uv("venv", "--quiet", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--quiet", "--python", str(self.python), "-e", str(ROOT), *packages)

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self._folder / "bin/python"

    def version(self, package: str) -> str:
        """Return the version of ``package`` that is installed."""
        code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
        return subprocess.run([self.python, "-c", code], text=True, capture_output=True, check=True).stdout.strip()

    def project(self, name: str) -> Path:
        """Return a copy of the project beside the environment."""
        project = self._folder.with_name(f"{self._folder.name}-{name}")
        shutil.rmtree(project, ignore_errors=True)
        return Path(shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__", ".*", "reports")))

    def run(self, model: str, options: Sequence[str]) -> Run:
        """Run the project in a folder of its own."""
        project = self.project(model)
        command: list[str | Path] = [self.python, "-m", "pytest", f"--lm-adapter=scripted:{model}", *options]
        ended = subprocess.run(command, cwd=project, text=True, capture_output=True, check=False, timeout=_LIMIT_S)
        board = project / "reports/leaderboard.json"
        digest = json.loads(board.read_text("utf-8"))["digest"] if board.is_file() else ""
        return Run(ended.returncode, digest, f"{ended.stdout}{ended.stderr}"[-3000:])


def _uv(*arguments: str) -> None:
    subprocess.run([shutil.which("uv") or str(Path(sys.executable).with_name("uv")), *arguments], check=True)


def tried(rows: Iterable[Beside], folder: Path) -> Iterator[tuple[Beside, str, str]]:
    """Yield each row with the version that it was tried with, and what differed; nothing, where all was the same."""
    plain = Environment(folder / "plain", [])
    alone = {model: plain.run(model, ["-p", "no:xdist"]) for model in ("Model", "Worse")}
    assert (0, 1) == (alone["Model"].code, alone["Worse"].code), alone

    @cache
    def environment(packages: str) -> Environment:
        return Environment(folder / packages, [packages])

    for row in rows:
        try:
            beside = environment(row.packages)
            runs = {model: beside.run(model, row.options) for model in alone}
            other = [f"{model}: exit code {run.code}" for model, run in runs.items() if not run.is_like(alone[model])]
            print(*(run.said for model, run in runs.items() if not run.is_like(alone[model])), sep="\n")
            yield row, beside.version(row.packages), "; ".join(other)
        except (subprocess.SubprocessError, OSError) as error:
            yield row, "", f"{type(error).__name__}: {error}"


def table(found: Iterable[tuple[Beside, str]]) -> str:
    """Return the table of the page: what was tried, in which version."""
    python = ".".join(map(str, sys.version_info[:2]))
    head = [
        f"Tried on {date.today()} with pytest {version('pytest')} and Python {python}:",
        "",
        "| beside | version | options | |",
        "| --- | --- | --- | --- |",
    ]
    rows = [
        f"| {row.packages} | {number} | {' '.join(f'`{option}`' for option in row.options)} | {row.note} |"
        for row, number in found
    ]
    return "\n".join([*head, *rows])


def main(names: Sequence[str]) -> int:
    """Try the rows of these names, or all; return 1 if any of them differs."""
    if unknown := {*names} - {row.packages for row in ROWS}:
        raise SystemExit(f"not among the rows: {', '.join(sorted(unknown))}")
    found, other = [], []
    with tempfile.TemporaryDirectory() as folder:
        for row, number, differs in tried([row for row in ROWS if not names or row.packages in names], Path(folder)):
            print(f"{row.name}: {differs or f'{number}, the same'}", flush=True)
            found.append((row, number))
            if differs:
                other.append(row.name)
    print(f"{len(found) - len(other)} of {len(found)} the same{'; not: ' if other else ''}{', '.join(other)}")
    if not names and not other:
        before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        PAGE.write_text(f"{before}{MARKS[0]}\n{table(found)}\n{MARKS[1]}{after}", "utf-8")
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
