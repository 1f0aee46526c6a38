"""An application's own model under test: ``--lm-adapter=openai:`` asks for what each of its requests names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.adapters.openai.scripted_server import Exchange, chat, json_reply, serving, status
from tests.clients_server import serves
from tests.conftest import BOTH, Project
from tests.plugin.evals.models_by_request import BASELINE, UPDATE, App

KNOWS = {"good": 1, "mini": 2, "router": 1, "writer": 1, "vendor/good.v1": 1}
"""The models of the server, and what each of them adds to a number."""


async def _answers(exchange: Exchange) -> None:
    """Answer as the model that the request names; 404 for one that there is not."""
    asked = exchange.seen.json
    if asked["model"] not in KNOWS:
        await status(404, '{"error": {"message": "no such model"}}')(exchange)
        return
    number = int(str(asked["messages"][-1]["content"]).split()[0])
    await json_reply({**chat(str(number + KNOWS[asked["model"]])), "model": f"{asked['model']}-2026"})(exchange)


@pytest.fixture
def app(project: Project) -> Iterator[App]:
    with App.answered_by(project, _answers) as found:
        yield found


def asked(app: App) -> dict[str, int]:
    """Return how often each model was asked since this was last called."""
    return Counter(body["model"] for body in app.asked())


def test_a_model_that_the_application_asks_for_and_that_did_not_answer_makes_the_baseline_stale(app: App) -> None:
    assert 0 == app.run(*UPDATE, adapter="openai:good").ret
    app.project.edit("app.py", '"good"', '"mini"')
    result = app.run(*BASELINE, adapter="openai:good")
    assert (1, {"good": 24}) == (result.ret, asked(app)), result.stdout.str()
    gate = app.project.board()["gate"]
    assert "stale" == gate["verdict"]
    assert gate["reasons"][0].startswith(
        "ask: requests ask for mini (12) now, in the baseline for good (12); good (12) answered, so this change was "
        "not tested: have each request's own model asked (--lm-adapter=openai:, "
    )
    result.stdout.fnmatch_lines(["*to update it: --lm-baseline=baseline.json --lm-update-baseline*"])
    # The second way out: the answers are the same, the names are not.
    assert 0 == app.run(*UPDATE, adapter="openai:good").ret
    assert 0 == app.run(*BASELINE, adapter="openai:good").ret


@pytest.mark.parametrize("processes", BOTH)
def test_the_model_that_the_application_names_is_asked_and_a_change_of_it_is_tested(app: App, processes: str) -> None:
    assert 0 == app.run(*UPDATE, processes).ret
    assert ("openai", {"good": 12}) == (app.project.board()["adapter"], asked(app))
    assert {"asked": {"good": 12}, "answered": {"good": 12}} == app.row()["models"]
    unchanged = app.run(*BASELINE)
    assert (0, "pass") == (unchanged.ret, app.project.board()["gate"]["verdict"])
    assert "requests ask for" not in unchanged.stdout.str()

    app.project.edit("app.py", '"good"', '"mini"')
    asked(app)
    result = app.run(*BASELINE, processes)
    assert (1, "regression") == (result.ret, app.project.board()["gate"]["verdict"]), result.stdout.str()
    result.stdout.fnmatch_lines(["*ask: requests ask for mini (12) now, in the baseline for good (12)*"])
    assert (0.0, {"mini": 12}) == (app.row()["score"], asked(app))
    assert {"asked": {"mini": 12}, "answered": {"mini": 12}} == app.row()["models"]


def test_a_task_of_records_names_no_model_and_is_refused_before_anything_is_asked(app: App) -> None:
    app.project.task("tasks/t.jsonl", app.project.record("a", "1"))
    result = app.run("tasks")
    assert (3, {"good": 12}) == (result.ret, asked(app)), result.stdout.str()
    assert {"ask": 1.0, "t": None} == {row["task"]: row["score"] for row in app.project.board()["tasks"]}
    result.stdout.fnmatch_lines(["*task 't': it names no model, and openai: has none*--lm-adapter=openai:MODEL*"])
    # Without a task that can be asked there is no run.
    (app.project.path / "test_app.py").write_text("")
    alone = app.run("tasks")
    assert (4, {}) == (alone.ret, asked(app)), alone.stdout.str()
    alone.stderr.fnmatch_lines(["*task 't': it names no model, and openai: has none*--lm-adapter=openai:MODEL*"])


@pytest.mark.parametrize("option", ["--lm-judge", "--lm-user"])
def test_a_judge_or_user_that_names_no_model_is_refused_before_anything_is_asked(app: App, option: str) -> None:
    app.project.write(
        "pyproject.toml", f'[tool.lmeval.adapters.named]\nadapter = "openai:"\nbase_url = "{app.server.base_url}"\n'
    )
    result = app.run(f"{option}=named")
    assert (4, {}) == (result.ret, asked(app)), result.stdout.str()
    result.stderr.fnmatch_lines(["*openai: has no model of its own*openai:MODEL with --lm-judge or --lm-user*"])


NAMELESS = """
import json, os, urllib.error, urllib.request
from pytest_lmeval import eval_task

def ask(lm, body):
    body["messages"] = [{"role": "user", "content": "1 and"}]
    urllib.request.urlopen(urllib.request.Request(f"{lm.base_url}/chat/completions", json.dumps(body).encode()))

@eval_task("nameless", data=[{"id": id} for id in ("ask", "client", "named")])
def test_nameless(row, lm):
    try:
        if row["id"] == "client":
            ask(lm, {})
        elif row["id"] == "ask":
            lm.ask("1 and")
        else:
            assert "3" == lm.ask("1 and", model="mini").text
    except (Exception,) as error:
        lm.note("said", str(error))
    lm.score("right", True)
"""


def test_a_request_that_names_no_model_makes_its_example_an_error_that_says_what_to_write(app: App) -> None:
    app.project.write("test_app.py", NAMELESS)
    result = app.run()
    assert (3, {"mini": 1}) == (result.ret, asked(app)), result.stdout.str()
    statuses = {record["id"]: record["status"] for record in app.project.ledger().values()}
    assert {"ask": "error", "client": "error", "named": "passed"} == statuses
    result.stdout.fnmatch_lines(
        [
            "*test_app.py:15: lm.ask: openai: has no model of its own; name one, lm.ask(..., model=NAME), or pass "
            "--lm-adapter=openai:MODEL*",
            "*model: the request names none, and openai: requires one*",
        ]
    )


TWO = """
import app
from pytest_lmeval import eval_task

@eval_task("ask", data=[{"id": f"q{n}", "n": n} for n in range(6)])
def test_ask(row, lm, lm_env):
    way = app.ask(app.ROUTER, f"{row['n']} to")
    lm.score("right", app.ask("writer", f"{way} to") == str(row["n"] + 2))
"""


def test_an_application_of_two_models_is_scored_with_both(app: App) -> None:
    app.project.edit("app.py", 'MODEL = "good"', 'ROUTER = "router"')
    app.project.write("test_app.py", TWO)
    prices = "[tool.lmeval.prices.router]\nprice_input = 1000\nprice_output = 1000\n"
    app.project.write("pyproject.toml", prices)
    first = app.run(*UPDATE)
    assert (0, {"router": 6, "writer": 6}) == (first.ret, asked(app))
    first.stdout.fnmatch_lines(["took *cost at least 0.1*"])
    result = app.run(*BASELINE)
    assert 0 == result.ret, result.stdout.str()
    result.stdout.fnmatch_lines(["models asked by name: router (6), writer (6)"])
    # That several models answered is what was asked for.
    result.stdout.no_fnmatch_line("*several models answered*")

    app.project.edit("app.py", '"router"', '"writer"')
    result = app.run(*BASELINE)
    assert 0 == result.ret, result.stdout.str()
    result.stdout.fnmatch_lines(["*ask: requests ask for writer (12) now, in the baseline for router (6), writer (6)*"])


def test_each_model_has_its_own_price_and_one_without_has_an_unknown_cost(app: App) -> None:
    prices = """
[tool.lmeval.prices."router"]
price_input = 1
price_output = 10

[tool.lmeval.prices."vendor/good.v1"]
price_input = 100
price_output = 1000
"""
    app.project.write("pyproject.toml", prices)
    app.project.edit("app.py", '"good"', '"router"')
    assert 0 == app.run().ret
    usage = app.project.board()["usage"]
    assert pytest.approx(12 * (11 + 70) / 1e6) == usage["cost"]

    app.project.edit("app.py", '"router"', '"vendor/good.v1"')
    assert 0 == app.run().ret
    assert pytest.approx(12 * (1100 + 7000) / 1e6) == app.project.board()["usage"]["cost"]

    app.project.edit("app.py", '"vendor/good.v1"', '"writer"')
    result = app.run()
    assert (0, "cost" in app.project.board()["usage"]) == (result.ret, False)
    # Of a run that may not cost more than a limit every cost has to be known.
    limited = app.run("--lm-max-cost=1")
    assert 3 == limited.ret
    limited.stdout.fnmatch_lines(["*--lm-max-cost*"])
    app.project.edit("app.py", '"writer"', '"router"')
    assert 0 == app.run("--lm-max-cost=1").ret
    app.project.write("pyproject.toml", "")
    refused = app.run("--lm-max-cost=1")
    assert 4 == refused.ret
    refused.stderr.fnmatch_lines(["*adapter openai does not say: give it prices (?tool.lmeval.prices.MODEL]: *"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.lmeval]\nprices = 1", "tool.lmeval.prices must be a table of tables, one per model"),
        (
            "[tool.lmeval.prices.good]\nprice_inputs = 1",
            "prices.good: unknown key 'price_inputs'; did you mean 'price_input'",
        ),
        ("[tool.lmeval.prices.good]\nprice_input = -1\nprice_output = 1", "price_input is -1; expected a number >= 0"),
        ("[tool.lmeval.prices.good]\nprice_input = 1", "prices.good: no price_output; expected both"),
        ("[tool.lmeval.prices.gpt-4.1]\nprice_input = 1", 'quote a name with dots: [tool.lmeval.prices."a.b"]'),
    ],
)
def test_prices_that_are_none_are_refused(app: App, table: str, said: str) -> None:
    app.project.write("pyproject.toml", table)
    result = app.run()
    assert (4, {}) == (result.ret, asked(app))
    assert said in result.stderr.str()


def test_prices_without_a_model_are_refused(app: App) -> None:
    result = app.run("--lm-adapter-arg=price_input=1", "--lm-adapter-arg=price_output=1")
    assert (4, {}) == (result.ret, asked(app))
    result.stderr.fnmatch_lines(["*price_input needs a model; expected ?tool.lmeval.prices.MODEL]*"])


def test_every_path_to_a_verdict_knows_which_models_were_asked_for(app: App) -> None:
    assert 0 == app.run(*UPDATE, adapter="openai:good").ret
    app.project.edit("app.py", '"good"', '"mini"')
    assert 1 == app.run(*BASELINE, "--lm-include-per-example", adapter="openai:good").ret
    gate = app.project.board()["gate"]
    reasons = gate["reasons"]
    for run in ("leaderboard.json", "ledger.jsonl"):
        compared = app.project.lmeval("diff", "baseline.json", f"reports/{run}", "--format=json")
        found = json.loads(compared.stdout.str())["gate"]
        assert (1, "stale", reasons[0]) == (compared.ret, found["verdict"], found["reasons"][0]), run
    assert 0 == app.project.lmeval("report", "reports/ledger.jsonl", "-o", "page.html").ret
    assert "requests ask for mini (12) now" in (app.project.path / "page.html").read_text()
    for number in ("1/2", "2/2"):
        folder = f"--lm-report-dir=shard{number[0]}"
        app.run(*BASELINE, f"--lm-shard={number}", folder, adapter="openai:good")
    merged = app.project.lmeval("merge", "shard1", "shard2", "-o", "merged")
    assert 1 == merged.ret, merged.stdout.str()
    assert ("stale", reasons) == tuple(app.project.board("merged")["gate"][name] for name in ("verdict", "reasons"))


def test_answers_of_several_models_are_cached_resumed_and_replayed_by_name(app: App) -> None:
    app.project.edit("app.py", 'MODEL = "good"', 'ROUTER = "router"')
    app.project.write("test_app.py", TWO)
    assert 0 == app.run(*UPDATE, "--lm-cache=cache").ret
    asked(app)
    result = app.run(*BASELINE, "--lm-cache=cache")
    assert (0, {}) == (result.ret, asked(app)), result.stdout.str()
    assert 0 == app.run("--lm-resume").ret
    assert {} == asked(app)

    replayed = app.project.run_pytest(
        "test_app.py", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=replayed", *BASELINE
    )
    assert 0 == replayed.ret, replayed.stdout.str()
    models = {"router": 6, "writer": 6}
    assert {"asked": models, "answered": models} == app.project.board("replayed")["tasks"][0]["models"]
    assert "requests ask for" not in replayed.stdout.str()

    # Another model is another question: neither cache nor recording has an answer to it.
    app.project.edit("app.py", '"router"', '"mini"')
    assert 1 == app.run(*BASELINE, "--lm-cache=cache").ret
    assert 6 == asked(app)["mini"]
    # The application leaves the connections of refused requests open.
    ignored = ("-Wignore::pytest.PytestUnraisableExceptionWarning",)
    replayed = app.project.run_pytest(
        "test_app.py", "--lm-adapter=replay:replayed/ledger.jsonl", "--lm-report-dir=again", *BASELINE, *ignored
    )
    assert 3 == replayed.ret
    replayed.stdout.fnmatch_lines(["*holds no answer to this request*"])


def test_a_recording_of_one_model_answers_for_all_and_says_who_did(app: App) -> None:
    assert 0 == app.run(*UPDATE, adapter="openai:good").ret
    replay = ("test_app.py", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=replayed", *BASELINE)
    assert 0 == app.project.run_pytest(*replay).ret
    assert {"asked": {"good": 12}, "answered": {"good": 12}} == app.project.board("replayed")["tasks"][0]["models"]
    app.project.edit("app.py", '"good"', '"mini"')
    result = app.project.run_pytest(*replay)
    assert (1, "stale") == (result.ret, app.project.board("replayed")["gate"]["verdict"]), result.stdout.str()


INTERFACES = """
import json, os, urllib.request
from pytest_lmeval import eval_task

def send(lm, path, **body):
    head = {"Content-Type": "application/json"}
    url = f"{lm.base_url}/{path}"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)).read().decode()

SAID = [{"role": "user", "content": "x"}]

@eval_task("ways")
def test_ways(lm):
    assert "chat-model" in send(lm, "chat/completions", model="chat-model", messages=SAID)
    assert "42." in send(lm, "chat/completions", model="streamed-model", messages=SAID, stream=True)
    assert "42." in send(lm, "responses", model="responses-model", input="x")
    if os.environ.get("MESSAGES"):
        assert "42." in send(lm, "messages", model="messages-model", messages=SAID, max_tokens=9)
    else:
        assert "embedding" in send(lm, "embeddings", model="embedding-model", input="x")
    assert "42." in lm.ask("x", model="asked-model").text
    lm.score("right", True)
"""


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_model_is_passed_on_from_each_interface(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("test_ways.py", INTERFACES)
    if kind == "anthropic":
        monkeypatch.setenv("MESSAGES", "1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-0123456789")
    with serving([serves()]) as server:
        address = f"base_url={server.base_url}"
        result = project.run_pytest("test_ways.py", f"--lm-adapter={kind}:", f"--lm-adapter-arg={address}")
        asked = [seen.json["model"] for seen in server.requests]
    assert 0 == result.ret, result.stdout.str()
    fourth = {"openai": "embedding-model", "anthropic": "messages-model"}[kind]
    assert ["chat-model", "streamed-model", "responses-model", fourth, "asked-model"] == asked
    assert kind == project.board()["adapter"]
    # Without a model under test no other is another one.
    result.stdout.no_fnmatch_line("*for other models*")
    models = dict.fromkeys({*asked} - {"embedding-model"}, 1)
    assert {"asked": models, "answered": models} == project.board()["tasks"][0]["models"]


@pytest.mark.parametrize("kind", ["openai", "anthropic", "litellm"])
def test_an_adapter_without_a_colon_needs_a_model(project: Project, kind: str) -> None:
    project.prompts("say: 1")
    result = project.run("tasks", f"--lm-adapter={kind}")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(
        [f"*adapter '{kind}' needs the model's name: {kind}:MODEL; '{kind}:' asks the model that each*"]
    )
