"""A key reaches the server, and nothing that a run prints or writes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, serving
from tests.conftest import Project

CANARY = "sk-CANARY-7f3a9b2c4d5e6f70"
LOUD = [
    *("-vv", "-rA", "--showlocals", "--tb=long", "--setup-show", "--durations=5", "--junitxml=out/junit.xml"),
    *("--json-report", "--json-report-file=out/report.json", "--lm-include-per-example", "--lm-retries=0"),
]
PLAIN_TESTS = """
def test_adapter(lm_adapter):
    name = lm_adapter.name
    assert not name, repr(lm_adapter)

def test_engine(lm_engine, lm_adapter):
    shown = [repr(lm_engine), str(lm_adapter), repr(getattr(lm_adapter, "options", None))]
    assert not shown

def test_error(lm_adapter):
    raise RuntimeError(lm_adapter)

def test_property(lm_adapter, record_property):
    record_property("sent", getattr(lm_adapter, "_token", ""))
"""
MODEL = """
import sys
from pytest_lmeval import AdapterError

class Model:
    name = "own.v1"

    def __init__(self, api_token="", headers=None, how="answers", **options):
        self._token = api_token
        if how == "raises":
            raise ValueError("no such model")
        if how == "exits":
            sys.exit("no such model")

    def generate(self, prompts):
        if any("raise" in prompt for prompt in prompts):
            raise RuntimeError("the server said no")
        return [prompt.rpartition("say: ")[2] for prompt in prompts]
"""


def spread(project: Project, result: pytest.RunResult, *known: str) -> list[str]:
    """Return where the key is found: the output, and every file but those that it was ``known`` to be in."""
    texts = {"stdout": result.stdout.str(), "stderr": result.stderr.str()}
    # Of the command line that the test itself typed, pytester's own record is not the product's output.
    files = [
        path for path in project.path.rglob("*") if path.is_file() and path.name not in (*known, "stdout", "stderr")
    ]
    texts |= {str(path.relative_to(project.path)): path.read_bytes().decode("utf-8", "replace") for path in files}
    assert {"reports/leaderboard.json", "reports/ledger.jsonl"} <= texts.keys() or result.ret == 4
    return [name for name, text in texts.items() if CANARY in text or CANARY in text.replace("\\", "")]


async def tells_everything(exchange: Exchange) -> None:
    """Answer some prompts, and refuse the others with an error that quotes the request's headers."""
    prompt = exchange.seen.json["messages"][-1]["content"]
    quoted = json.dumps(dict(exchange.seen.headers))
    if "refuse" in prompt:
        await exchange.reply(401, f"Not with these headers: {quoted}".encode(), {"X-Sent": quoted})
    elif "redirect" in prompt:
        await exchange.reply(
            307, b"", {"Location": f"http://elsewhere.invalid/?{exchange.seen.headers['authorization']}"}
        )
    else:
        answer = {"choices": [{"message": {"content": f"You sent {quoted}"}, "finish_reason": "stop"}]}
        await exchange.reply(200, json.dumps(answer).encode())


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving([tells_everything]) as server:
        yield server


def write_tasks(project: Project) -> None:
    prompts = ["answer", "refuse", "redirect", "answer again"]
    project.task("tasks/t.jsonl", *[project.spec(f"e{n}", prompt) for n, prompt in enumerate(prompts)])
    project.write("test_plain.py", PLAIN_TESTS)
    (project.path / "out").mkdir()


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OWN_KEY"])
def test_a_key_from_the_environment_reaches_the_server_alone(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, CANARY)
    write_tasks(project)
    options = [f"--lm-adapter-arg=base_url='{server.base_url}'", f"--lm-adapter-arg=api_key_env={variable}"]
    result = project.run_pytest("--lm-adapter=openai:m", *options, *LOUD)
    assert 3 == result.ret
    assert {f"Bearer {CANARY}"} == {seen.headers["authorization"] for seen in server.requests}
    assert [] == spread(project, result)
    assert "Not with these headers" in result.stdout.str()
    assert "Bearer ***" in result.stdout.str()
    assert "OpenAIAdapter('m'" in result.stdout.str()


def run_own(project: Project, *options: str, adapter: str = "model:Model") -> pytest.RunResult:
    """Run an own adapter whose batch fails, and tests that fail with it at hand."""
    project.write("model.py", MODEL)
    project.task(
        "tasks/t.jsonl", project.spec("a", "x"), project.spec("b", "raise"), project.spec("c", "y", target="z")
    )
    project.write("test_plain.py", PLAIN_TESTS)
    (project.path / "out").mkdir(exist_ok=True)
    return project.run_pytest(f"--lm-adapter={adapter}", "--lm-batch-size=1", *LOUD, *options)


def test_a_secret_option_is_not_spread(project: Project) -> None:
    result = run_own(project, f"--lm-adapter-arg=api_token={CANARY}", "--lm-adapter-arg=region=west")
    assert 3 == result.ret
    assert [] == spread(project, result)
    assert {"api_token": "***", "region": "west"} == project.board()["adapter_options"]
    assert "--lm-adapter-arg=api_token=***" in project.board()["manifest"]["argv"]
    # The command that runs an example again is there, without the secret.
    result.stdout.fnmatch_lines(["*rerun: pytest tasks/t.jsonl::c *region=west*"])
    result.stdout.no_fnmatch_line("*rerun: *api_token*")


TELLING = """
import os

class Model:
    name = "telling.v1"

    def __init__(self, key_env="", **options):
        self.told = " ".join([os.environ.get(key_env, ""), *map(str, options.values())])
        self.manifest = {"id": "m", "password": self.told, "told": self.told}
        if options.pop("breaks", False):
            raise ValueError(self.told)

    def generate(self, prompts):
        if any("raise" in prompt for prompt in prompts):
            raise RuntimeError(f"the server refused {self.told}")
        return [f"you sent {self.told}" for prompt in prompts]
"""
NAMES = "pwd pass cookie session dsn pat private access connection_string"
# A secret of its own for each name: one that is known as a secret is hidden wherever it stands.
GIVEN = {
    "names": [f"{name}={CANARY}-{name}" for name in NAMES.split()],
    "headers": [f'headers={{"X-Plain" = "{CANARY}"}}'],
    "user": [f"endpoint=https://me:{CANARY}@host/v1"],
    "query": [f"endpoint=https://host/v1?x=1&token={CANARY}"],
    "variable": ["key_env=THE_KEY"],
}


@pytest.mark.parametrize(("given", "processes"), [*((given, "-n0") for given in GIVEN), ("names", "-n2")])
def test_a_secret_that_the_adapter_tells_is_not_spread(
    project: Project, given: str, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", CANARY)
    project.write("telling.py", TELLING)
    project.write(
        "test_told.py", "def test_told(lm_adapter):\n    print(lm_adapter.told)\n    assert not lm_adapter.told\n"
    )
    options = [f"--lm-adapter-arg={each}" for each in GIVEN[given]]
    result = run_own(project, *options, processes, adapter="telling:Model")
    assert 3 == result.ret
    assert [] == spread(project, result, "telling.py")
    assert "the server refused" in result.stdout.str()
    assert "you sent" in (project.path / "reports/ledger.jsonl").read_text("ascii")
    assert {"id": "m", "password": "***"} == {
        name: project.board()["manifest"]["model"][name] for name in ("id", "password")
    }


@pytest.mark.parametrize("given", ["names", "variable"])
def test_a_secret_that_the_adapter_tells_when_it_is_made_is_not_spread(
    project: Project, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", CANARY)
    project.write("telling.py", TELLING)
    options = [f"--lm-adapter-arg={each}" for each in (*GIVEN[given], "breaks=true")]
    result = run_own(project, *options, adapter="telling:Model")
    assert 4 == result.ret
    assert "cannot be created: ValueError:" in result.stderr.str()
    assert [] == spread(project, result, "telling.py")


@pytest.mark.parametrize("given", ["names", "variable"])
def test_the_command_that_tries_a_task_does_not_spread_a_secret(
    project: Project, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", CANARY)
    project.write("telling.py", TELLING)
    project.task("tasks/t.jsonl", project.spec("a", "x"), project.spec("b", "raise"))
    options = [part for each in ("region=west", *GIVEN[given]) for part in ("--lm-adapter-arg", each)]
    result = project.lmeval("test", "tasks/t.jsonl", "--lm-adapter=telling:Model", *options)
    shown = f"{result.stdout.str()}{result.stderr.str()}"
    assert "the server refused" in shown
    assert "you sent" in shown
    assert CANARY not in shown


@pytest.mark.again
def test_a_secret_in_a_board_of_another_is_not_shown(project: Project) -> None:
    run_own(project, "--lm-adapter-arg=region=west")
    path = project.path / "reports/leaderboard.json"
    path.write_text(path.read_text("utf-8").replace('"region": "west"', f'"pwd": "{CANARY}"'), "utf-8")
    assert CANARY in path.read_text("utf-8")
    result = project.lmeval("report", "reports/leaderboard.json", "-o", "shown.html")
    assert 0 == result.ret
    assert "pwd" in (project.path / "shown.html").read_text("ascii")
    assert CANARY not in (project.path / "shown.html").read_text("ascii")


def test_a_secret_option_as_an_argument_of_its_own_is_not_spread(project: Project) -> None:
    result = run_own(project, "--lm-adapter-arg", f"api_token='{CANARY}'")
    assert 3 == result.ret
    assert [] == spread(project, result)


def test_a_secret_in_a_profile_is_not_spread(project: Project) -> None:
    profile = f'[tool.lmeval.adapters.mine]\nadapter = "model:Model"\napi_token = "{CANARY}"\n'
    project.write("pyproject.toml", profile)
    result = run_own(project, adapter="mine")
    assert 3 == result.ret
    assert [] == spread(project, result, "pyproject.toml")


MISTAKES = {
    "raises": ["--lm-adapter-arg=how=raises"],
    "exits": ["--lm-adapter-arg=how=exits", "--full-trace"],
    "another mistake": ["--lm-threshold=none=1"],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_run_that_cannot_start_does_not_spread_a_secret(project: Project, mistake: str) -> None:
    result = run_own(project, f"--lm-adapter-arg=api_token={CANARY}", *MISTAKES[mistake])
    assert 4 == result.ret
    assert [] == spread(project, result)


@pytest.mark.parametrize("argument", [f"api-token={CANARY}", f"={CANARY}", CANARY, f"api token = {CANARY}"])
def test_an_option_that_is_mistyped_is_refused_without_its_value(project: Project, argument: str) -> None:
    result = run_own(project, f"--lm-adapter-arg={argument}")
    assert 4 == result.ret
    assert [] == spread(project, result)
    assert "expected KEY=VALUE" in result.stderr.str()


def test_a_key_in_place_of_the_model_s_name_is_not_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    result = run_own(project, adapter=f"openai:{CANARY}")
    assert 4 == result.ret
    assert [] == spread(project, result)


def test_an_option_that_only_sounds_like_a_secret_is_shown(project: Project) -> None:
    options = {"max_tokens": 50, "tokens_per_minute": 1000.5, "keyboard": True}
    given = [f"--lm-adapter-arg={name}={json.dumps(value)}" for name, value in options.items()]
    result = run_own(project, *given)
    assert options == project.board()["adapter_options"]
    result.stdout.fnmatch_lines(["*rerun: *max_tokens=50*"])
