"""The project ``models_by_request``, whose application names a model in each request, run with a scripted server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import ScriptedServer, Step, serving
from tests.conftest import Project

ASKED = '"messages": [{"role": "user", "content": question}]'
BASELINE = ("--lm-gate=baseline", "--lm-baseline=baseline.json")
UPDATE = (*BASELINE, "--lm-update-baseline")


class App:
    """The project and the server."""

    def __init__(self, project: Project, server: ScriptedServer) -> None:
        self.project = project
        self.server = server

    @classmethod
    @contextmanager
    def answered_by(cls, project: Project, step: Step) -> Iterator[App]:
        """Copy the project; ``step`` answers its requests."""
        project.copy("models_by_request")
        with serving([step]) as server:
            yield cls(project, server)

    def run(self, *arguments: str, adapter: str = "openai:") -> pytest.RunResult:
        address = f"--lm-adapter-arg=base_url={self.server.base_url}"
        return self.project.run_pytest("test_app.py", f"--lm-adapter={adapter}", address, *arguments)

    def asked(self) -> list[dict[str, Any]]:
        """Return the bodies that the server got since this was last called."""
        found = [seen.json for seen in self.server.requests]
        self.server.requests.clear()
        return found

    def row(self, report: str = "reports") -> dict[str, Any]:
        row: dict[str, Any] = self.project.board(report)["tasks"][0]
        return row

    def names(self, options: str) -> None:
        """Let the application's requests name these options."""
        self.project.edit("app.py", ASKED, f"{ASKED}, {options}")

    def baseline_row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads((self.project.path / "baseline.json").read_text())["tasks"][0]
        return row

    def remarks(self) -> list[str]:
        """Return what the reasons of the verdict say about requests."""
        reasons = self.project.board()["gate"]["reasons"]
        return [reason for reason in reasons if "requests have " in reason or " per example now" in reason]
