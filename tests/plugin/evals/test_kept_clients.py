"""Clients that an application makes once and keeps, though each example has an address of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.anthropic.messages_server import message, speaks, text
from tests.adapters.openai.scripted_server import serving
from tests.clients_server import serves
from tests.conftest import BOTH, Project

EVAL = """
import app
from pytest_lmeval import eval_task

@eval_task("support", data=[{"id": f"q{n}"} for n in range(6)])
def test_support(row, lm_env, lm):
    lm.score("said", SAID)
    lm.output([step.client.get("kept", "") for step in lm.trace])
"""
SUPPORT = EVAL.replace("SAID", "app.answer('say: ' + row['id']) == row['id']")


def tried(project: Project, tests: str, *arguments: str, changed: tuple[str, str] = ("", "")) -> Any:
    """Run ``tests`` of the application, with one text of it ``changed``."""
    project.copy("eval_kept", "app.py")
    if changed[0]:
        project.edit("app.py", *changed)
    project.write("test_app.py", tests)
    return project.run("test_app.py", "--lm-include-per-example", *arguments)


@pytest.mark.parametrize("processes", BOTH)
def test_requests_of_a_client_that_is_kept_are_those_of_the_example_at_its_turn(
    project: Project, processes: str
) -> None:
    result = tried(project, SUPPORT, processes)
    assert 0 == result.ret, result.stdout.str()
    assert [f"say: q{n}" for n in range(6)] == sorted(text for call in project.calls() for text in call)
    kept = {id: record["details"]["output"] for id, record in project.examples().items()}
    own = [id.removeprefix("support:") for id, said in kept.items() if said == [""]]
    if processes == "-n0":
        assert ["q0"] == own
        result.stdout.fnmatch_lines(["requests counted for the current example: kept client of q0 (5)"])
    assert len(own) in (1, 2)
    assert {(f"kept client of {id}",) for id in own} == {(*said,) for said in kept.values() if said != [""]}


def test_what_a_kept_client_asked_is_found_by_resume_replay_and_cache(project: Project) -> None:
    tried(project, SUPPORT, "--lm-cache=cache")
    digest = project.board()["digest"]
    calls = len(project.calls())
    for found in ("--lm-resume", "--lm-cache=cache", "--lm-adapter=replay:reports/ledger.jsonl"):
        result = tried(project, SUPPORT, found, *(["--lm-report-dir=other"] if found != "--lm-resume" else []))
        assert (0, calls) == (result.ret, len(project.calls())), result.stdout.str()
        assert digest == project.board("reports" if found == "--lm-resume" else "other")["digest"]
        result.stdout.fnmatch_lines(["*requests counted for the current example: kept client of q0 (5)*"])
    # A recording of clients that were made anew answers a client that is kept.
    tried(project, SUPPORT, "--lm-report-dir=anew", changed=("@functools.cache\n", ""))
    result = tried(project, SUPPORT, "--lm-adapter=replay:anew/ledger.jsonl", "--lm-report-dir=other")
    assert (0, digest) == (result.ret, project.board("other")["digest"]), result.stdout.str()


SEVERAL = """
import app
from pytest_lmeval import eval_task

@eval_task("first", data=[{"id": "a"}, {"id": "b"}], repeats=2)
def test_first(row, lm_env, lm):
    assert "1" == app.answer("say: 1", app.client(row["id"]).ask)

@eval_task("second", data=[{"id": "c"}])
def test_second(row, lm_env, lm):
    assert ["1", "2"] == [app.answer(f"say: {n}", app.client(id).ask) for n, id in (("1", "a"), ("2", "b"))]
"""


def test_each_request_says_of_which_example_its_client_is(project: Project) -> None:
    result = tried(project, SEVERAL)
    assert 0 == result.ret, result.stdout.str()
    said = "requests counted for the current example: kept client of a (2), kept client of b (2)"
    assert said in result.stdout.str()
    steps = project.ledger()["second:c"]["details"]["steps"]
    assert ["kept client of a", "kept client of b"] == [step["client"]["kept"] for step in steps]


def test_a_client_that_is_kept_from_one_model_s_example_asks_the_model_at_its_turn(project: Project) -> None:
    project.write("other.py", (project.path / "model.py").read_text().replace("stub.v1", "other.v1"))
    result = tried(project, SUPPORT, "--lm-adapter=a=model:Model", "--lm-adapter=b=other:Model")
    assert 0 == result.ret, result.stdout.str()
    for label, name in (("a", "stub.v1"), ("b", "other.v1")):
        steps = [step for each in project.ledger(f"reports/{label}").values() for step in each["details"]["steps"]]
        assert {name} == {step["name"] for step in steps}
        assert 6 == len(steps)


def test_a_request_that_belongs_to_no_example_makes_the_run_incomplete_and_an_ambiguous_one_is_an_error(
    project: Project,
) -> None:
    project.copy("eval_kept", "app.py", "test_late.py")
    result = project.run("test_late.py", "--lm-include-per-example")
    assert 3 == result.ret, result.stdout.str()
    said = "4 request(s) to lm.base_url after their example had ended (between: a)"
    assert [said] == project.board()["interruptions"]
    assert said in result.stdout.str()
    passed = {"between:a", "between:b", "without:c", "own_first:d"}
    examples = project.examples()
    found = {id: record["status"] for id, record in examples.items()}
    assert dict.fromkeys(passed, "passed") | {"kept_first:e": "error"} == found
    error = examples["kept_first:e"]["error"]
    assert "a client kept from the example a has sent requests for this one, and now its own client does" in error


REFUSED = EVAL.replace("SAID", "app.answer('hi', lambda text: app.client().ask(text, 'files')) == 'sorry'")


def test_a_refused_request_of_a_kept_client_makes_the_example_at_its_turn_an_error(project: Project) -> None:
    result = tried(project, REFUSED)
    assert 3 == result.ret, result.stdout.str()
    assert {f"support:q{n}": "error" for n in range(6)} == {id: e["status"] for id, e in project.examples().items()}
    assert "interruptions" not in project.board()
    (step,) = project.ledger()["support:q5"]["details"]["steps"]
    assert ("POST /files", "kept client of q0") == (step["name"], step["client"]["kept"])


REMEMBERS = EVAL.replace("SAID", "app.answer('say: hi') == 'hi'")


def test_an_answer_that_is_remembered_is_no_request(project: Project) -> None:
    result = tried(project, REMEMBERS, changed=("def answer", "@functools.cache\ndef answer"))
    assert 0 == result.ret, result.stdout.str()
    assert "support: 1 of its 6 scored examples asked stub.v1" in result.stdout.str()
    assert "counted for the example at its turn" not in result.stdout.str()


INTERFACES = """
import app
from pytest_lmeval import eval_task

@eval_task("interfaces", data=[{"id": "a"}, {"id": "b"}])
def test_interfaces(row, lm_env, lm):
    client = app.client()
    for path in PATHS:
        assert client.ask("hi", path, max_tokens=9)
    assert "data: {" in client.send("hi", PATHS[0], max_tokens=9, stream=True)
    assert [row["id"] == "b"] * (len(PATHS) + 1) == ["kept" in step.client for step in lm.trace]
"""


@pytest.mark.parametrize("adapter", ["openai:mock", "anthropic:claude"])
def test_a_kept_client_may_speak_any_interface_and_stream(
    project: Project, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{adapter.partition(':')[0].upper()}_API_KEY", "sk-adapter-0123456789")
    is_messages = adapter.startswith("anthropic")
    paths = ["messages", "chat/completions"] if is_messages else ["chat/completions", "responses", "embeddings"]
    with serving([speaks(message(text("hi"))) if is_messages else serves()]) as server:
        given = (f"--lm-adapter={adapter}", f"--lm-adapter-arg=base_url={server.base_url}")
        source = f"PATHS = {paths}\n{INTERFACES}"
        result = tried(project, source, *given)
    assert 0 == result.ret, result.stdout.str()
    assert f"the current example: kept client of a ({len(paths) + 1})" in result.stdout.str()
