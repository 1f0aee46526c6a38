"""Every example of docs/clients.md runs against a server that speaks both interfaces, and once more out of its ledger.

The packages are those of the extra ``test-clients``; an example whose package is missing is skipped. `.ci/large` has a
part for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.openai.scripted_server import ScriptedServer, serving
from tests.clients_server import serves
from tests.conftest import Project
from tests.needs import installed

PAGE = (Path(__file__).parents[2] / "docs/clients.md").read_text("utf-8")
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
ROWS = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving([serves()]) as serving_:
        yield serving_


def test_the_page_has_an_example_of_each_client() -> None:
    names = ["openai", "deep_inside", "service", "openai_agents", "pydantic_ai", "langgraph", "litellm", "anthropic"]
    assert [f"test_{name}.py" for name in names] == [*FILES]
    assert [] == [name for name, source in FILES.items() if not compile(source, name, "exec")]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_example_of_the_page_runs_and_is_replayed_in_other_processes(
    project: Project, server: ScriptedServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in re.findall(r"^(?:from|import) (\w+)", FILES[name], re.MULTILINE):
        installed(package, "clients")
    project.write(name, FILES[name])
    project.write("questions.csv", ROWS)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "adapter")
    kind = "anthropic" if "anthropic" in name else "openai"
    del server.requests[:]
    # What frameworks warn of is theirs.
    usual = ("-Wignore", "--lm-max-errors=0")
    result = project.run(name, f"--lm-adapter={kind}:mock", f"--lm-adapter-arg=base_url={server.base_url}", *usual)
    assert 0 == result.ret, result.stdout.str()
    asked = len(server.requests)
    result = project.run(name, "--lm-adapter=replay:reports/ledger.jsonl", "-n2", "--lm-report-dir=again", *usual)
    assert 0 == result.ret, result.stdout.str()
    assert asked == len(server.requests)
    assert project.board()["digest"] == project.board("again")["digest"]
