"""The applications ``app_*`` of ``tests/projects``, each with a model behind HTTP that obeys its prompt."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import ScriptedServer, Step, hangs, serving
from tests.applications.server import obeys
from tests.conftest import MadeOnce, Project

APPS = ("desk", "pages", "talk", "mono")
JUDGED = ("pages", "talk")
BASELINE = ("--lm-gate=baseline", "--lm-baseline=baseline.json")


class Application:
    """A copy of one application, and the server that its run asks."""

    def __init__(self, project: Project, name: str, server: ScriptedServer) -> None:
        self.project = project
        self.name = name
        self.server = server

    def options(self, *arguments: str) -> list[str]:
        """Return the options of a run; an adapter among the arguments takes the place of the usual one."""
        address = f"base_url={self.server.base_url}"
        # A recording needs no address; it replays what the judge and the user said, too.
        replayed = next((each.partition("=")[2] for each in arguments if "=replay:" in each), "")
        usual = [] if any(each.startswith("--lm-adapter=") for each in arguments) else ["--lm-adapter=openai:"]
        given = [] if replayed else [f"--lm-adapter-arg={address}"]
        judge = [f"--lm-judge={replayed}"] if replayed else ["--lm-judge=openai:gpt-4o", f"--lm-judge-arg={address}"]
        # What frameworks warn of is theirs.
        return ["-Wignore", *usual, *given, *(judge if self.name in JUDGED else []), *arguments]

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.project.run_pytest(*self.options(*arguments))

    def asked(self) -> int:
        """Return how many requests the server got since this was last called."""
        found = len(self.server.requests)
        self.server.requests.clear()
        return found

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = self.project.board()["tasks"][0]
        return row

    def serves_again(self) -> None:
        self.server.script = [obeys()]

    def answers_after(self, number: int) -> None:
        """Have the server answer that many requests, and leave later ones without an answer."""
        script: list[Step] = [obeys()] * number
        self.server.script = [*script, hangs()]


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    with serving([obeys()]) as found:
        yield found


@pytest.fixture
def application(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, made_once: MadeOnce
) -> Callable[[str], Application]:
    """Provide an application by its name, with the baseline of what it ships."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    server.script = [obeys()]
    server.requests.clear()

    def made(name: str) -> Application:
        project.copy(f"app_{name}")
        found = Application(project, name, server)

        def fill(folder: Path) -> None:
            result = found.run(*BASELINE, "--lm-update-baseline")
            assert 0 == result.ret, result.stdout.str()
            shutil.copy(project.path / "baseline.json", folder)
            shutil.rmtree(project.path / "reports")

        shutil.copy(made_once(f"baseline-{name}", fill) / "baseline.json", project.path)
        server.requests.clear()
        return found

    return made
