"""The options and the answers of an application's requests: sent as they are, and cached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, chat, json_reply, serving
from tests.conftest import BOTH, Project

ASKED = '"messages": [{"role": "user", "content": question}]'


async def _answers(exchange: Exchange) -> None:
    """Add one to the number in the question; mini adds two. A question costs its words, an answer one token."""
    asked = exchange.seen.json
    said = str(asked["messages"][-1]["content"])
    number = int(said.split()[0]) + (2 if asked["model"] == "mini" else 1)
    usage = {"prompt_tokens": len(said.split()), "completion_tokens": 1}
    await json_reply({**chat(str(number)), "usage": usage})(exchange)


@pytest.fixture
def app(project: Project) -> Iterator[App]:
    project.copy("models_by_request")
    with serving([_answers]) as server:
        yield App(project, server)


class App:
    """The project, run with a server that answers any model and options."""

    def __init__(self, project: Project, server: ScriptedServer) -> None:
        self.project = project
        self.server = server

    def run(self, *arguments: str, adapter: str = "openai:") -> pytest.RunResult:
        address = f"--lm-adapter-arg=base_url={self.server.base_url}"
        return self.project.run_pytest("test_app.py", f"--lm-adapter={adapter}", address, *arguments)

    def asked(self) -> list[dict[str, Any]]:
        """Return the bodies that the server got since this was last called."""
        found = [seen.json for seen in self.server.requests]
        self.server.requests.clear()
        return found

    def names(self, options: str) -> None:
        """Let the application's requests name these options."""
        self.project.edit("app.py", ASKED, f"{ASKED}, {options}")


def test_a_request_is_sent_as_the_client_made_it(app: App) -> None:
    app.project.edit("test_app.py", "range(12)", "range(1)")
    body = {"model": "good", "messages": [{"role": "user", "content": "0 and 1?"}]}
    assert (0, [body]) == (app.run().ret, app.asked())
    # What the options of the run say expressly is added.
    assert 0 == app.run("--lm-adapter-arg=temperature=0", "--lm-adapter-arg=max_tokens=50").ret
    assert [{**body, "temperature": 0, "max_tokens": 50}] == app.asked()
    # A client's name for the limit is kept, unless an option says another one.
    app.names('"max_completion_tokens": 7')
    assert 0 == app.run("--lm-adapter-arg=max_tokens=50").ret
    assert [{**body, "max_completion_tokens": 7}] == app.asked()
    assert 0 == app.run("--lm-adapter-arg=max_tokens_field=max_tokens").ret
    assert [{**body, "max_tokens": 7}] == app.asked()


def test_the_runs_own_requests_have_the_adapters_temperature(app: App) -> None:
    app.project.edit("test_app.py", "app.answer(row", "lm.ask(row")
    app.project.edit("test_app.py", '["question"])', '["question"]).text')
    assert 0 == app.run(adapter="openai:good").ret
    assert {0} == {body["temperature"] for body in app.asked()}


CACHE = "--lm-cache=cache"


@pytest.mark.parametrize("processes", BOTH)
def test_requests_without_a_temperature_are_cached_as_draws_of_their_example(app: App, processes: str) -> None:
    # The same question for all, twice for each example.
    app.project.edit("test_app.py", 'f"{n} and 1?"', '"1 and 1?"')
    app.project.edit("test_app.py", "str(n + 1)", '"2"')
    app.project.edit(
        "app.py", "    return ask(MODEL, question)", "    ask(MODEL, question)\n    return ask(MODEL, question)"
    )
    app.run(CACHE, processes).stdout.fnmatch_lines(["cache: 0 of 24 answer(s) found"])
    assert 24 == len(app.asked())
    again = app.run(CACHE, processes)
    again.stdout.fnmatch_lines(["cache: 24 of 24 answer(s) found; cached draws: 24; *"])
    assert (0, []) == (again.ret, app.asked())
    assert 24 == app.project.board()["manifest"]["cache"]["draws"]
    # The same draws serve the mode that keeps all draws, and a run that asks nothing.
    for mode in ("sampled", "read-only"):
        assert (0, []) == (app.run(CACHE, f"--lm-cache-mode={mode}").ret, app.asked()), mode
    # With a temperature of 0 they are no draws, and equal requests of all examples share two answers.
    cold = (CACHE, "--lm-adapter-arg=temperature=0", "--lm-concurrency=1", "-n0")
    assert 0 == app.run(*cold).ret
    assert 2 == len(app.asked())
    app.run(*cold).stdout.no_fnmatch_line("*cached draws*")
