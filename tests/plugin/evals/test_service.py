"""Requests outside of examples, at the address ``lm_base_url``, and those that a service passes on for an example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import ScriptedServer, serving
from tests.clients_server import serves
from tests.conftest import BOTH, Project
from tests.needs import installed


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Serve the model; the project is a service with six examples."""
    installed("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-adapter-0123456789")
    project.copy("eval_service")
    project.write("pytest.ini", "[pytest]\npython_files = test_app.py\n")
    with serving([serves()]) as found:
        yield found


def tried(project: Project, server: ScriptedServer, *arguments: str, prices: bool = False) -> tuple[Any, list[str]]:
    """Run the evals; return the result, and the paths that the model's server was asked for."""
    del server.requests[:]
    given = [f"base_url={server.base_url}", *(["price_input=1", "price_output=1"] * prices)]
    adapter = () if any("--lm-adapter=" in each for each in arguments) else ("--lm-adapter=openai:mock",)
    options = [f"--lm-adapter-arg={each}" for each in given] if adapter else []
    result = project.run("-Wignore", "--lm-concurrency=3", *adapter, *options, *arguments)
    return result, [seen.target.removeprefix("/v1/") for seen in server.requests]


def outside(project: Project, folder: str = "reports") -> dict[str, Any]:
    """Return the requests outside of examples in the ledger."""
    lines = (project.path / folder / "ledger.jsonl").read_text("ascii").splitlines()
    found: dict[str, Any] = [line for line in map(json.loads, filter(None, lines)) if "run" in line][-1]["run"][
        "service"
    ]
    return found


@pytest.mark.parametrize("processes", BOTH)
def test_what_a_service_asks_as_it_starts_is_the_run_s_and_what_it_passes_on_the_example_s(
    project: Project, server: ScriptedServer, processes: str
) -> None:
    result, asked = tried(project, server, processes, "--lm-cache=cache", prices=True)
    assert 0 == result.ret, result.stdout.str()
    workers = 1 if processes == "-n0" else 2
    assert 6 == asked.count("chat/completions")
    result.stdout.fnmatch_lines([f"requests outside of examples, to lm_base_url: {2 * workers}"])
    steps = outside(project)["steps"]
    assert 2 * workers == len(steps) == outside(project)["requests"]
    assert {"POST /embeddings"} == {step["name"] for step in steps}
    assert 0 == outside(project)["during"]
    board = project.board()
    assert "steps" not in board["manifest"]["service"]
    own = sum(record["usage"]["prompt_tokens"] for record in project.ledger().values())
    assert own + outside(project)["usage"]["prompt_tokens"] == board["usage"]["prompt_tokens"]
    for more in ("--lm-resume", "--lm-cache=cache", "--lm-adapter=replay:reports/ledger.jsonl"):
        folder = "reports" if more == "--lm-resume" else "other"
        again, asked = tried(project, server, processes, more, f"--lm-report-dir={folder}", prices=True)
        assert (0, []) == (again.ret, asked), again.stdout.str()
        assert board["digest"] == project.board(folder)["digest"]
        assert 2 * workers == outside(project, folder)["requests"]


def test_a_run_that_was_killed_asks_nothing_again_outside_of_its_examples(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIES", "1")
    killed, asked = tried(project, server, "--lm-concurrency=1")
    assert (True, 2) == (killed.ret < 0, asked.count("embeddings"))
    monkeypatch.delenv("DIES")
    resumed, asked = tried(project, server, "--lm-resume")
    assert (0, 0) == (resumed.ret, asked.count("embeddings")), resumed.stdout.str()
    assert 2 == outside(project)["requests"]


def test_shards_are_merged_with_what_each_asked_outside_of_its_examples(
    project: Project, server: ScriptedServer
) -> None:
    for part in ("1", "2"):
        assert 0 == tried(project, server, f"--lm-shard={part}/2", f"--lm-report-dir={part}")[0].ret
    merged = project.lmeval("merge", "1/ledger.jsonl", "2/ledger.jsonl", "-o", "merged")
    assert 0 == merged.ret, merged.stdout.str()
    assert 4 == outside(project, "merged")["requests"] == project.board("merged")["manifest"]["service"]["requests"]
    replayed, asked = tried(project, server, "--lm-adapter=replay:merged/ledger.jsonl", "--lm-report-dir=other")
    assert (0, []) == (replayed.ret, asked), replayed.stdout.str()


def test_requests_that_come_while_examples_run_are_counted_and_fail_a_strict_run(
    project: Project, server: ScriptedServer
) -> None:
    project.edit("test_app.py", 'row["id"], lm.headers', 'row["id"]')
    project.edit("test_app.py", "    assert 1 == len(lm.trace)\n", "")
    result, _ = tried(project, server)
    said = "6 request(s) to lm_base_url came while examples ran, and belong to none"
    assert (0, True) == (result.ret, f"doubtful: {said}" in result.stdout.str()), result.stdout.str()
    assert said in project.board()["gate"]["warnings"][-1]
    strict, _ = tried(project, server, "--lm-strict")
    assert (1, "limit") == (strict.ret, project.board()["gate"]["verdict"]), strict.stdout.str()
    assert said in strict.stdout.str()


def test_a_start_that_ends_in_an_error_makes_the_run_incomplete_unless_it_may_fail(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.edit("app.py", "CLIENT.embeddings.create(", 'CLIENT.post("/files", cast_to=object, body={}); print(')
    result, _ = tried(project, server)
    said = "1 request(s) outside of examples, to lm_base_url, ended in an error (POST /files: lm.base_url: POST /files"
    assert (3, True) == (result.ret, said in result.stdout.str()), result.stdout.str()
    monkeypatch.setenv("MAY_FAIL", "1")
    assert 0 == tried(project, server)[0].ret
    project.edit("conftest.py", "with may_fail, subprocess", "with subprocess")
    result, _ = tried(project, server)
    told = "conftest.py:15: lm_base_url.may_fail(...) has no effect without with: write with lm_base_url.may_fail(...):"
    assert (3, True, True) == (result.ret, said in result.stdout.str(), told in result.stdout.str())


def test_requests_outside_of_examples_cost_what_the_limit_allows(project: Project, server: ScriptedServer) -> None:
    result, asked = tried(project, server, "--lm-max-cost=0.0000001", prices=True)
    assert 1 <= len(asked) < 8
    assert (result.ret, True) == (3, "stopped by --lm-max-cost" in result.stdout.str()), result.stdout.str()


def test_with_several_models_a_request_outside_of_examples_is_refused(project: Project, server: ScriptedServer) -> None:
    given = ["--lm-adapter=a=openai:mock", "--lm-adapter=b=openai:other"]
    result, _ = tried(project, server, *given, f"--lm-adapter-arg=base_url={server.base_url}")
    assert 3 == result.ret
    said = "several models: a request outside of examples could be for any of them"
    assert said in project.board("reports/a")["interruptions"][0]


def test_an_entry_of_baggage_names_one_running_example(project: Project, server: ScriptedServer) -> None:
    result, _ = tried(project, server, "test_baggage.py", "--lm-include-per-example")
    assert 3 == result.ret, result.stdout.str()
    late, nameless = project.board()["interruptions"]
    assert "1 request(s) to lm.base_url after their example had ended (ended: a)" == late
    assert nameless.startswith("1 request(s) to the endpoint that name no example")
    statuses = {id: record["status"] for id, record in project.examples().items()}
    assert {"ended:a": "passed", "late:a": "passed", "unknown:a": "passed", "two:a": "error"} == statuses
    assert (
        "a request names several examples (a), by its address and by its baggage"
        in project.examples()["two:a"]["error"]
    )
    sent = [seen.headers.get("baggage") for seen in server.requests if seen.target.endswith("embeddings")]
    assert [None, None, "team=tea,b=%C3%A4"] == sent


TWO_ROWS = """
import asyncio
import openai
from pytest_lmeval import eval_task

HEADERS, AWAITED = {}, {}

@eval_task("rows", data=[{"id": "a"}, {"id": "b"}])
async def test_rows(row, lm):
    HEADERS[row["id"]] = lm.headers
    while len(HEADERS) < 2:
        await asyncio.sleep(0.01)
    lm.score("sent", True)
    if row["id"] == "a":
        client = openai.AsyncOpenAI(base_url=lm.base_url, api_key="unused", max_retries=0)
        try:
            await client.embeddings.create(model="e", input="x", extra_headers=HEADERS["b"])
        except openai.ConflictError:
            AWAITED["a"] = True
    while not AWAITED:
        await asyncio.sleep(0.01)
"""


def test_a_request_at_one_row_s_address_with_another_row_s_entry_makes_both_an_error(
    project: Project, server: ScriptedServer
) -> None:
    project.write("test_app.py", TWO_ROWS)
    result, asked = tried(project, server, "--lm-include-per-example")
    assert (3, []) == (result.ret, asked), result.stdout.str()
    assert {"error"} == {record["status"] for record in project.examples().values()}
