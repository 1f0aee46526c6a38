"""A run that nothing will come of ends with one message; what it waits for it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, says, serving, status
from tests.yaml_tasks import JUDGED

if TYPE_CHECKING:
    from tests.conftest import Project

GONE = [status(429, Retry_After="86400")]
LONG_GONE = "demands a wait of 86400 s, and a run waits at most 600 s: HTTP 429"
CHECK = "failed with the same error; check the address, the API key and the name of the model: HTTP 401"


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    with serving(request.param) as server:
        yield server


def ask(project: Project, server: ScriptedServer, *options: str) -> pytest.RunResult:
    address = f"--lm-adapter-arg=base_url={server.base_url}"
    return project.run_pytest("--lm-adapter=openai:m", address, "--lm-adapter-arg=api_key_env=''", *options)


@pytest.mark.parametrize(
    ("server", "requests", "told", "workers"),
    [
        pytest.param([status(401)], 5, CHECK, [], id="401"),
        pytest.param([status(401)], 5, CHECK, ["-n2"], id="401, workers"),
        pytest.param(GONE, 1, LONG_GONE, [], id="come back tomorrow"),
    ],
    indirect=["server"],
)
def test_a_server_that_answers_nothing_ends_the_run(
    project: Project, server: ScriptedServer, requests: int, told: str, workers: list[str]
) -> None:
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "x") for number in range(40)])
    result = ask(project, server, *workers)
    assert 3 == result.ret
    assert requests <= len(server.requests) <= requests * (len(workers) + 1)
    board = project.board()
    assert 40 == board["counts"]["collected"]
    assert len(server.requests) == board["counts"]["errors"] == 40 - board["counts"]["missing"]
    reason, *_ = board["gate"]["reasons"]
    assert reason.startswith("stopped: ")
    assert f"m at {server.base_url} " in reason
    assert told in reason
    result.stdout.fnmatch_lines(["INCOMPLETE: *", "  stopped: *", "*Interrupted: stopped: *"])


@pytest.mark.parametrize("server", [[status(401)]], indirect=True, ids=["401"])
def test_a_judge_that_answers_nothing_ends_the_run(project: Project, server: ScriptedServer) -> None:
    project.write("tasks/judged.yaml", JUDGED)
    project.write("tasks/rows.csv", "said\n" + "".join(f"w{number}\n" for number in range(40)))
    profile = f'[tool.lmeval.adapters.away]\nadapter = "openai:m"\nbase_url = "{server.base_url}"\napi_key_env = ""\n'
    project.write("pyproject.toml", profile)
    assert 3 == project.run("--lm-judge=away", "--lm-batch-size=1").ret
    assert 5 == len(server.requests)
    assert CHECK in project.board()["gate"]["reasons"][0]
    assert len(project.calls()) < 10


async def reasoning(exchange: Exchange) -> None:
    """Answer as a model that takes neither a temperature nor the older name of the token limit."""
    refused = next((name for name in ("temperature", "max_tokens") if name in exchange.seen.json), None)
    error = {"message": f"Unsupported value: '{refused}'", "param": refused, "code": "unsupported_value"}
    await (says("yes") if refused is None else status(400, json.dumps({"error": error})))(exchange)


@pytest.mark.parametrize("server", [[reasoning]], indirect=True, ids=["reasoning"])
def test_the_advice_for_options_that_a_model_refuses_leads_to_an_answer(
    project: Project, server: ScriptedServer
) -> None:
    project.prompts(*map(str, range(8)), target="yes")
    options, said = ["--lm-adapter-arg=max_tokens=9"], []
    while ask(project, server, *options).ret:
        assert 5 == len(server.requests)
        server.requests.clear()
        reason = project.board()["gate"]["reasons"][0]
        assert "the API key" not in reason
        said += re.findall(r"failed with the same error; the server rejects the option (\w+): HTTP 400", reason)
        options += re.findall(r"; set (--lm-adapter-arg=\S+), for a judge ", reason)
    assert ["temperature", "max_tokens"] == said
    assert [
        "--lm-adapter-arg=temperature=default",
        "--lm-adapter-arg=max_tokens_field=max_completion_tokens",
    ] == options[1:]


@pytest.mark.parametrize("server", [[reasoning]], indirect=True, ids=["reasoning"])
def test_a_judge_that_refuses_the_temperature_gets_advice_of_its_own(project: Project, server: ScriptedServer) -> None:
    project.write("tasks/judged.yaml", JUDGED)
    project.write("tasks/rows.csv", "said\n" + "".join(f"w{number}\n" for number in range(9)))
    profile = f'[tool.lmeval.adapters.away]\nadapter = "openai:m"\nbase_url = "{server.base_url}"\napi_key_env = ""\n'
    project.write("pyproject.toml", profile)
    assert 3 == project.run("--lm-judge=away", "--lm-batch-size=1").ret
    assert 5 == len(server.requests)
    (option,) = re.findall(r", for a judge (\S+)", project.board()["gate"]["reasons"][0])
    assert 0 == project.run("--lm-judge=away", option).ret


@pytest.mark.parametrize("server", [[status(429, Retry_After="1"), says("x")]], indirect=True, ids=["429"])
def test_what_a_run_waits_for_is_said(project: Project, server: ScriptedServer) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.write(
        "conftest.py",
        "from pytest_lmeval.plugin.record import progress\n"
        "progress._TERMINAL_EVERY_S = progress._WORTH_SAYING_S = 0.1\n",
    )
    result = ask(project, server)
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["lmeval: 0 of 1 examples, *; waiting 1 s for the server's rate limit"])
