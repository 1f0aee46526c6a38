"""The fixture ``lm_env``: clients of OpenAI, Azure and Anthropic find the endpoint, here and in other processes."""

from __future__ import annotations

import pytest

from tests.adapters.openai.scripted_server import serving
from tests.clients_server import serves
from tests.conftest import BOTH, Project
from tests.needs import installed


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize(
    ("adapter", "ids"), [("openai:mock", ("openai", "azure")), ("anthropic:claude", ("anthropic",))]
)
def test_clients_in_processes_of_their_own_ask_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, adapter: str, ids: tuple[str, ...], processes: str
) -> None:
    installed("openai")
    kind, asked = adapter.partition(":")[0], 10 if "azure" in ids else 2
    installed(kind)
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "sk-adapter-0123456789")
    monkeypatch.setenv("CLIENTS", " ".join(ids))
    project.copy("eval_env")
    with serving([serves()]) as server:
        run = (
            "test_env.py",
            "-Wignore",
            f"--lm-adapter={adapter}",
            f"--lm-adapter-arg=base_url={server.base_url}",
            processes,
        )
        result = project.run(*run)
        assert 0 == result.ret, result.stdout.str()
        assert asked == len(server.requests)
        assert not any("api-version" in seen.target for seen in server.requests)
        assert {"sk-adapter-0123456789"} == {
            seen.headers.get("x-api-key") or seen.headers["authorization"].partition(" ")[2] for seen in server.requests
        }
        assert 0 == project.run(*run, "--lm-resume").ret
        assert asked == len(server.requests)
    digest = project.board()["digest"]
    replayed = project.run(
        "test_env.py", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=other", processes
    )
    assert (0, digest) == (replayed.ret, project.board("other")["digest"]), replayed.stdout.str()


def test_functions_of_the_module_openai_keep_the_client_that_they_have_without_the_fixture(project: Project) -> None:
    installed("openai")
    project.write(
        "test_module.py",
        """
import os
import openai
import pytest
from pytest_lmeval import eval_task

@pytest.fixture
def production(monkeypatch, request):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    openai._client = None
    yield
    assert openai.api_type is None

@eval_task("module", data=[{"id": "openai"}, {"id": "azure"}])
def test_module(row, monkeypatch, production, request, lm):
    if row["id"] == "azure":
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "production")
        monkeypatch.setattr(openai, "azure_endpoint", "http://127.0.0.1:1")
    request.getfixturevalue("lm_env")
    said = openai.chat.completions.create(model="m", messages=[{"role": "user", "content": "say: hi"}])
    assert "hi" == said.choices[0].message.content
    lm.output(openai.api_type)
    openai._client = None
""",
    )
    result = project.run("test_module.py", "-Wignore", "--lm-include-per-example")
    assert 0 == result.ret, result.stdout.str()
    found = {id: record["details"]["output"] for id, record in project.examples().items()}
    assert {"module:openai": "openai", "module:azure": "azure"} == found
