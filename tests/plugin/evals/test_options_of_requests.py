"""The options and the number of an application's requests: sent as they are, kept by task, and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import Exchange, chat, json_reply, serving, status
from tests.clients_server import serves
from tests.conftest import BOTH, Project
from tests.plugin.evals.models_by_request import ASKED, BASELINE, UPDATE, App


async def _answers(exchange: Exchange) -> None:
    """Add one to the number in the question; mini adds two. A question costs its words, an answer one token."""
    asked = exchange.seen.json
    said = str(asked["messages"][-1]["content"])
    number = int(said.split()[0]) + (2 if asked["model"] == "mini" else 1)
    usage = {"prompt_tokens": len(said.split()), "completion_tokens": 1}
    await json_reply({**chat(str(number)), "usage": usage})(exchange)


@pytest.fixture
def app(project: Project) -> Iterator[App]:
    with App.answered_by(project, _answers) as found:
        yield found


def test_a_request_is_sent_as_the_client_made_it(app: App) -> None:
    app.project.edit("test_app.py", "range(12)", "range(1)")
    body = {"model": "good", "messages": [{"role": "user", "content": "0 and 1?"}]}
    assert (0, [body]) == (app.run().ret, app.asked())
    # Only options of the run are added.
    assert 0 == app.run("--lm-adapter-arg=temperature=0", "--lm-adapter-arg=max_tokens=50").ret
    assert [{**body, "temperature": 0, "max_tokens": 50}] == app.asked()
    # A client's name for the limit is kept, unless an option says another one.
    app.names('"max_completion_tokens": 7')
    assert 0 == app.run("--lm-adapter-arg=max_tokens=50").ret
    assert [{**body, "max_completion_tokens": 7}] == app.asked()
    assert 0 == app.run("--lm-adapter-arg=max_tokens_field=max_tokens").ret
    assert [{**body, "max_tokens": 7}] == app.asked()
    assert {"max_tokens": {"7": 1}} == app.row()["options"]


def test_an_own_adapter_gets_none_for_each_unnamed_option_that_a_request_does_not_set(project: Project) -> None:
    project.copy("models_by_request")
    project.edit("test_app.py", "range(12)", "range(1)")
    project.edit("app.py", ASKED, f'{ASKED}, "seed": 7')
    (project.path / "own.py").write_text(
        "from pathlib import Path\n"
        "from pytest_lmeval import Completion\n"
        "class Model:\n"
        "    name, request_options = 'own', ('seed', 'top_p')\n"
        "    unnamed_options = frozenset(request_options)\n"
        "    async def complete(self, request):\n"
        "        Path('options.txt').write_text(repr(sorted(request.options.items())))\n"
        "        return Completion('1')\n"
    )
    assert 0 == project.run_pytest("test_app.py", "--lm-adapter=own:Model").ret
    assert "[('seed', 7), ('top_p', None)]" == (project.path / "options.txt").read_text()


def test_the_runs_own_requests_have_the_adapters_temperature(app: App) -> None:
    app.project.edit("test_app.py", "app.answer(row", "lm.ask(row")
    app.project.edit("test_app.py", '["question"])', '["question"]).text')
    assert 0 == app.run(adapter="openai:good").ret
    assert {0} == {body["temperature"] for body in app.asked()}
    assert "options" not in app.row()


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


def test_rows_and_baseline_have_the_options_requests_tokens_and_cost_per_example(app: App) -> None:
    app.project.write("pyproject.toml", "[tool.lmeval.prices.good]\nprice_input = 1000\nprice_output = 1000\n")
    schema = '{"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string"}}}'
    named = '"temperature": 0.5, "top_p": 0.9, "max_tokens": 9, "reasoning_effort": "low", "seed": 3'
    app.names(f'{named}, "user": "me", "response_format": {schema}')
    assert 0 == app.run(*UPDATE).ret
    options = app.row()["options"]
    (digest,) = options.pop("schema")
    assert 12 == len(digest)
    values = {"temperature": "0.5", "top_p": "0.9", "max_tokens": "9", "reasoning_effort": "low", "seed": "3"}
    assert {name: {value: 12} for name, value in values.items()} == options
    per_example = {"requests_per_example": 1.0, "tokens_per_example": 4.0, "cost_per_example": pytest.approx(0.004)}
    assert per_example == {name: app.row()["spent"][name] for name in per_example}
    baseline = app.baseline_row()
    assert (per_example, app.row()["options"]) == (baseline["spent"], baseline["options"])
    assert 0 == app.run(*BASELINE).ret
    assert [] == app.remarks()


OPTIONS: Any = (
    ("one that came", "", '"temperature": 0.7', "temperature 0.7 (12) now, in the baseline none (12)"),
    ("one that went", '"top_p": 0.9', "", "top_p none (12) now, in the baseline 0.9 (12)"),
    ("another value", '"max_tokens": 9', '"max_tokens": 8', "max_tokens 8 (12) now, in the baseline 9 (12)"),
    ("in one example", '"seed": 1', '"seed": 1, **({"seed": 2} if "0 " in question else {})', "seed 1 (10), 2 (2) now"),
    ("random seeds", '"seed": sum(question.encode())', '"seed": 1 + sum(question.encode())', ""),
)


@pytest.mark.parametrize(("what", "before", "now", "said"), OPTIONS, ids=[row[0] for row in OPTIONS])
def test_a_changed_option_is_reported_beside_the_verdict(app: App, what: str, before: str, now: str, said: str) -> None:
    app.names(before)
    assert 0 == app.run(*UPDATE).ret
    app.project.edit("app.py", f"{ASKED}, {before}", f"{ASKED}, {now}")
    result = app.run(*BASELINE)
    assert (0, "pass") == (result.ret, app.project.board()["gate"]["verdict"]), result.stdout.str()
    assert ([f"ask: requests have {said}"] if said else []) == [line[: len(said) + 19] for line in app.remarks()]
    if said:
        result.stdout.fnmatch_lines([f"*ask: requests have {said}*"])
        markdown = (app.project.path / "reports/leaderboard.md").read_text().replace("\\_", "_")
        assert f"ask: requests have {said}" in markdown
        assert app.remarks() == [
            line for line in app.project.board()["gate"]["comparison"]["coverage"] if "requests have" in line
        ]


TWICE = ("    return ask(MODEL, question)", "    ask(MODEL, question)\n    return ask(MODEL, question)")
OFTEN = "ask: 2 requests per example now, in the baseline 1 (+100 %)"
LONG = "ask: 8 tokens per example now, in the baseline 4 (+100 %)"


def test_more_requests_or_tokens_per_example_are_reported_and_limited(app: App) -> None:
    assert 0 == app.run(*UPDATE).ret
    app.project.edit("app.py", *TWICE)
    result = app.run(*BASELINE)
    assert (0, [OFTEN, LONG]) == (result.ret, app.remarks()), result.stdout.str()
    result.stdout.fnmatch_lines([f"*{OFTEN}", f"*{LONG}"])
    limited = app.run(*BASELINE, "--lm-max=ask.requests_per_example=1.5")
    assert (1, "limit") == (limited.ret, app.project.board()["gate"]["verdict"])
    limited.stdout.fnmatch_lines(["*ask.requests_per_example: 2 is over its limit 1.5*"])
    assert 0 == app.run(*BASELINE, "--lm-max=overall.requests_per_example=2").ret
    # A new baseline has the new amounts, although the answers are the same.
    assert 0 == app.run(*UPDATE).ret
    assert 2 == app.baseline_row()["spent"]["requests_per_example"]
    assert 0 == app.run(*BASELINE).ret
    assert [] == app.remarks()


def test_a_task_that_asks_nothing_has_no_requests_to_limit(app: App) -> None:
    app.project.edit("test_app.py", 'reply = app.answer(row["question"])', 'reply = row["answer"]')
    result = app.run("--lm-max=ask.requests_per_example=1")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*ask.requests_per_example: unknown; the limit is 1: no example of an eval function*"])
    assert "requests_per_example" not in app.row().get("spent", {})


def test_every_path_to_a_verdict_reports_changed_requests(app: App) -> None:
    app.names('"temperature": 0')
    assert 0 == app.run(*UPDATE).ret
    app.project.edit("app.py", '"temperature": 0', '"temperature": 1')
    app.project.edit("app.py", *TWICE)
    assert 0 == app.run(*BASELINE, "--lm-include-per-example").ret
    remarks = app.remarks()
    assert 3 == len(remarks)
    for run in ("leaderboard.json", "ledger.jsonl"):
        compared = app.project.lmeval("diff", "baseline.json", f"reports/{run}", "--format=json")
        found = json.loads(compared.stdout.str())["gate"]
        assert remarks == [line for line in found["reasons"] if line in remarks], run
    assert 0 == app.project.lmeval("report", "reports/ledger.jsonl", "-o", "page.html").ret
    assert all(line in (app.project.path / "page.html").read_text() for line in remarks[1:])
    for number in ("1/2", "2/2"):
        app.run(*BASELINE, f"--lm-shard={number}", f"--lm-report-dir=shard{number[0]}")
    assert 0 == app.project.lmeval("merge", "shard1", "shard2", "-o", "merged").ret
    merged = app.project.board("merged")
    assert remarks == [line for line in merged["gate"]["reasons"] if line in remarks]
    for name in ("models", "options"):
        assert app.row()[name] == app.row("merged")[name]
    assert 2 == app.row("merged")["spent"]["requests_per_example"]


def test_a_baseline_from_before_is_named_once(app: App) -> None:
    assert 0 == app.run(*UPDATE).ret
    # Earlier versions kept no options, and no amounts per example.
    path = app.project.path / "baseline.json"
    text = path.read_text().replace(', "options": {}', "")
    board = json.loads(text)
    del board["tasks"][0]["spent"]
    path.write_text(json.dumps(board))
    result = app.run(*BASELINE)
    assert (0, []) == (result.ret, app.remarks())
    unknown = "*not compared: the options of requests: the baseline's ask has none"
    result.stdout.fnmatch_lines([f"{unknown}; *requests were sent with temperature 0 then*"])
    assert 0 == app.run(*UPDATE).ret
    app.run(*BASELINE).stdout.no_fnmatch_line("*temperature 0 then*")


# Edits of a pull request, each with the verdict and the lines beside it.
EDITS: Any = {
    "another model": (
        ('"good"', '"mini"'),
        "regression",
        ["ask: requests ask for mini (12) now, in the baseline for good (12)"],
    ),
    "a temperature": (
        (ASKED, f'{ASKED}, "temperature": 1.2'),
        "pass",
        ["ask: requests have temperature 1.2 (12) now, in the baseline none (12)"],
    ),
    "twice the cost": (TWICE, "pass", [OFTEN, LONG]),
    "a longer prompt": (
        ('"content": question', '"content": question + " Be brief."'),
        "pass",
        ["ask: 6 tokens per example now, in the baseline 4 (+50 %)"],
    ),
    "a comment": (('MODEL = "good"', 'MODEL = "good"  # the best'), "pass", []),
    "another order of fields": (('{"model": model, ' + ASKED + "}", "{" + ASKED + ', "model": model}'), "pass", []),
    "a streamed answer's flag": ((ASKED, f'{ASKED}, "user": "me"'), "pass", []),
}


@pytest.mark.parametrize("edit", EDITS)
def test_planted_changes_are_named_and_harmless_ones_are_not(app: App, edit: str) -> None:
    assert 0 == app.run(*UPDATE).ret
    (before, after), verdict, said = EDITS[edit]
    app.project.edit("app.py", before, after)
    result = app.run(*BASELINE)
    gate = app.project.board()["gate"]
    assert (verdict, int(verdict != "pass")) == (gate["verdict"], result.ret), result.stdout.str()
    found = [line for line in gate["reasons"] if line.startswith("ask: ") and " now, in the baseline " in line]
    assert said == found
    assert verdict != "pass" or [] == gate["warnings"]
    result.stdout.fnmatch_lines([f"*{line}*" for line in said] or ["*"])


def test_a_temperature_that_the_application_names_is_its_own_to_change(app: App) -> None:
    app.names('"temperature": 0.5')
    error = {"message": "Unsupported value: 'temperature'", "param": "temperature", "code": "unsupported_value"}
    with serving([status(400, json.dumps({"error": error}))]) as server:
        app.server = server
        # The client of this application closes no reply that is an error.
        assert 3 == app.run("-Wignore").ret
    reasons = app.project.board()["gate"]["reasons"]
    assert "the server rejects the option temperature: HTTP 400" in reasons[0]
    assert "--lm-adapter-arg" not in reasons[0]


INTERFACES = """
import json, urllib.request
from pytest_lmeval import eval_task

@eval_task("ways", data=[{"path": path, "body": body} for path, body in WAYS])
def test_ways(row, lm):
    body = json.dumps({"model": "m", **row["body"]}).encode()
    head = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{lm.base_url}/{row['path']}", body, head)) as reply:
        lm.score("answered", "42." in reply.read().decode())
"""
SAID = {"messages": [{"role": "user", "content": "x"}]}
WAYS: Any = {
    "openai": [
        ("chat/completions", SAID),
        ("chat/completions", {**SAID, "stream": True}),
        ("responses", {"input": "x"}),
    ],
    "anthropic": [("messages", {**SAID, "max_tokens": 9}), ("chat/completions", {**SAID, "max_tokens": 9})],
}


@pytest.mark.parametrize("kind", WAYS)
def test_no_interface_adds_an_option(project: Project, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-0123456789")
    project.write("test_ways.py", INTERFACES.replace("WAYS", repr(WAYS[kind])))
    with serving([serves()]) as server:
        options = (f"--lm-adapter={kind}:", f"--lm-adapter-arg=base_url={server.base_url}", CACHE)
        assert 0 == project.run_pytest("test_ways.py", *options).ret
        asked = [seen.json.keys() for seen in server.requests]
        again = project.run_pytest("test_ways.py", *options)
        assert len(WAYS[kind]) == len(asked) == len(server.requests)
    expected = {"model", "messages"} | ({"max_tokens"} if kind == "anthropic" else set())
    assert [expected] * len(asked) == asked
    again.stdout.fnmatch_lines([f"*cached draws: {len(asked)}; *"])
