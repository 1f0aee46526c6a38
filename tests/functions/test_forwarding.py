"""What is forwarded to the adapter's server: which paths, how its replies are kept, and every way that a run takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from pytest_lmeval.adapters.http.forward import HttpReply, forward, kept, reply_in
from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.clients.body import ForwardPaths
from pytest_lmeval.functions.clients.forwarding import _headers
from pytest_lmeval.hashes import request_hash
from tests.adapters.openai.scripted_server import (
    Exchange,
    ScriptedServer,
    cut_off,
    json_reply,
    redirects,
    replies,
    serving,
    status,
)
from tests.clients_server import serves
from tests.conftest import Project
from tests.tables import each_row

PATHS = (
    ("POST", "/embeddings", True),
    ("POST", "/moderations", True),
    ("POST", "/rerank", True),
    ("GET", "/models", True),
    ("GET", "/embeddings", False),
    ("DELETE", "/files", False),
    ("POST", "/embeddings/", False),
    ("POST", "//embeddings", False),
    ("POST", "/../embeddings", False),
    ("POST", "/%65mbeddings", False),
    ("POST", "http://elsewhere/v1/embeddings", False),
    ("POST", "/completions", True),
    ("GET", "/models/mock", True),
    ("GET", "/models/..", False),
    ("GET", "/models/%2e%2e", False),
    ("GET", "/models/mock/card", False),
    ("GET", "/models/", False),
)


@each_row(("method", "path", "is_forwarded"), PATHS)
def test_only_plain_paths_that_are_named_are_forwarded(method: str, path: str, is_forwarded: bool) -> None:
    assert is_forwarded == ForwardPaths(["completions", "GET /models/*"]).has(method, path)


@each_row(("line",), [("",), ("..",), ("a/../b",), ("https://x/y",), ("a b",), ("TRACE a",), ("a%2fb",), ("a?b",)])
def test_what_is_no_path_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"^ini lm_forward_paths: expected a path below the server's address"):
        ForwardPaths([line])


REPLIES = (
    HttpReply(200, "application/json", b'{"a":[0.1,-2],"b":"<think>\\u00e9"}'),
    HttpReply(201, "application/json", b"no JSON"),
    HttpReply(200, "text/event-stream", "data: é </think>\n\n".encode()),
    HttpReply(200, "audio/mpeg", b"\xff\xfb\x00"),
    HttpReply(204, "", b""),
)


@each_row(("reply",), [(reply,) for reply in REPLIES])
def test_a_reply_is_kept_as_text_without_a_sign_of_thoughts(reply: HttpReply) -> None:
    assert "<" not in kept(reply)
    found = reply_in(kept(reply))
    assert reply[:2] == found[:2]
    same = (json.loads(reply.body), json.loads(found.body)) if reply.body[:1] == b"{" else (reply.body, found.body)
    assert same[0] == same[1]


@each_row(("text",), [("",), ("42",), ("[]",), ("{}",), ('{"status":"x","type":""}',), ('{"status":200,"type":""}',)])
def test_a_text_that_is_no_reply_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # whatever json says of it
        reply_in(text)


def test_a_request_is_known_by_method_target_and_canonical_body() -> None:
    def key(
        method: str = "POST", target: str = "/embeddings", content: bytes = b'{"a":1,"b":2}', **headers: str
    ) -> str:
        return request_hash([forward(method, target, content, headers, task="t", id="a")])

    assert key() == key(content=b'{"b": 2, "a": 1}') == key(accept="x")
    others = [
        key("PUT"),
        key(target="/rerank"),
        key(target="/embeddings?x=1"),
        key(content=b'{"a":2}'),
        key(content=b""),
    ]
    assert 6 == len({key(), *others})


def test_no_key_cookie_or_header_of_the_connection_goes_along() -> None:
    dropped = {
        "Authorization": "Bearer x",
        "Cookie": "x",
        "X-Api-Key": "x",
        "X-Goog-Api-Key": "x",
        "X-Auth-Token": "x",
        "Connection": "close, X-Own",
        "X-Own": "x",
        "Keep-Alive": "x",
        "TE": "x",
        "Upgrade": "x",
        "Host": "elsewhere",
        "Proxy-Authorization": "x",
        "X-Forwarded-For": "x",
        "Accept-Encoding": "br",
        "Content-Length": "2",
    }
    kept_ = {"Content-Type": "application/json", "Accept": "text/event-stream", "OpenAI-Beta": "x", "X-Team": "search"}
    request = make_mocked_request("POST", "/e/x/v1/embeddings", headers={**dropped, **kept_})
    assert kept_ == {**_headers(request)}


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Serve what clients ask, and one path more; a key of the adapter's own is set."""
    monkeypatch.setenv("OWN_KEY", "sk-adapter-0123456789")
    project.copy("eval_forwarded")
    project.write("pytest.ini", "[pytest]\nlm_forward_paths =\n  GET models/*/card\n")
    usual = serves()

    async def step(exchange: Exchange) -> None:
        is_card = exchange.seen.target == "/v1/models/mock/card"
        await (replies(200, b"\x89<think>", {"Content-Type": "image/png"}) if is_card else usual)(exchange)

    with serving([step]) as serving_:
        yield serving_


def searched(project: Project, server: ScriptedServer, *arguments: str, prices: bool = False) -> Any:
    """Run the evals with the server's model; return the result, with what it was asked for."""
    given = [f"base_url={server.base_url}", "api_key_env=OWN_KEY", *(["price_input=1", "price_output=1"] * prices)]
    del server.requests[:]
    result = project.run(
        "tests", "--lm-adapter=openai:mock", *[f"--lm-adapter-arg={each}" for each in given], *arguments
    )
    return result, [f"{seen.method} {seen.target}" for seen in server.requests]


def test_what_is_forwarded_is_sent_as_it_came_and_found_again_by_resume_replay_and_cache(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAKS", "1")
    result, asked = searched(project, server, "--lm-cache=cache")
    # Whether the list of models comes from the cache depends on which example asks first.
    assert (3, 3 * 4 + 2 + 1) == (result.ret, len(asked) - asked.count("GET /v1/models")), result.stdout.str()
    monkeypatch.delenv("BREAKS")
    seen = next(
        each for each in server.requests if each.body.startswith(b'{"model": "embed-small", "input": ["what is 0"')
    )
    assert b'{"model": "embed-small", "input": ["what is 0", "tea"]}' == seen.body
    assert ("Bearer sk-adapter-0123456789", "search") == (seen.headers["authorization"], seen.headers["x-team"])
    assert "cookie" not in seen.headers
    assert "POST /v1/rerank?top_n=1" in asked
    steps = project.ledger()["search:e0"]["details"]["steps"]
    assert {"prompt_tokens": 6} == next(step["usage"] for step in steps if step["name"] == "POST /embeddings")
    result, asked = searched(project, server, "--lm-resume")
    assert (0, ["POST /v1/chat/completions"]) == (result.ret, asked), result.stdout.str()
    result.stdout.fnmatch_lines(["*clients asked the server of mock for other models: embed-small (6)*"])
    assert "PLANTED" not in (project.path / "reports/ledger.jsonl").read_text()
    digest = project.board()["digest"]

    result, asked = searched(project, server, "--lm-cache=cache", "--lm-report-dir=cached")
    assert (0, digest) == (result.ret, project.board("cached")["digest"])
    assert ["POST /v1/chat/completions"] == asked
    result = project.run("tests", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=replayed")
    assert (0, digest) == (result.ret, project.board("replayed")["digest"])


def test_a_reply_of_unknown_cost_stops_a_run_with_a_limit(project: Project, server: ScriptedServer) -> None:
    result, asked = searched(project, server, "--lm-max-cost=1", prices=True)
    assert 3 == result.ret
    # One request at a time until a cost is known, and a list of models says none.
    assert 1 == asked.count("POST /v1/embeddings")
    result.stdout.fnmatch_lines(["*stopped by --lm-max-cost: the adapter does not report what a request costs*"])


FAULTS = {
    "elsewhere": (redirects(307, "http://127.0.0.1:1/v1/embeddings"), 502, "redirect to another host"),
    "not_there": (status(404, '{"error": {"message": "no such model", "code": "gone"}}'), 404, "no such model"),
    "in_the_middle": (cut_off(), 502, "the body was cut off"),
    "events": (cut_off(body=b"data: {}\n\n", chunked=True), 502, "the body was cut off"),
    "error": (json_reply({"error": {"message": "busy", "type": "invalid_input"}}), 502, "error object"),
    "large": (replies(200, b" " * 20_000), 502, "more than 10000 bytes"),
}
FAULTY = """
import http.client, json
from pytest_lmeval import eval_task

def ask(lm, what):
    host, _, path = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", f"/{path}/embeddings", json.dumps({"model": "mock", "input": what}))
    reply = connection.getresponse()
    said = reply.status, reply.read().decode(), reply.headers["x-should-retry"]
    connection.close()
    return said

@eval_task("faults", data=[{"id": name} for name in NAMES])
def test_faults(row, lm):
    if row["id"].startswith("let_"):
        with lm.may_fail():
            lm.note("said", ask(lm, row["id"].removeprefix("let_")))
    else:
        lm.note("said", ask(lm, row["id"]))
    lm.score("right", True)
"""


def test_what_goes_wrong_at_the_server_is_an_error_of_the_example(project: Project) -> None:
    async def step(exchange: Exchange) -> None:
        await FAULTS[exchange.seen.json["input"]][0](exchange)

    names = [*FAULTS, "let_not_there"]
    project.write("test_faults.py", FAULTY.replace("NAMES", repr(names)))
    with serving([step]) as server:
        given = [f"--lm-adapter-arg={each}" for each in (f"base_url={server.base_url}", "max_response_bytes=10000")]
        result = project.run("test_faults.py", "--lm-adapter=openai:mock", *given, "--lm-retries=1")
    assert 3 == result.ret, result.stdout.str()
    # What may have been an accident was asked for again.
    again = [seen.json["input"] for seen in server.requests]
    wanted = dict.fromkeys(FAULTS, 1) | {"in_the_middle": 2, "events": 2, "not_there": 2}
    assert wanted == {name: again.count(name) for name in FAULTS}
    examples = project.ledger()
    for name, (_, code, said) in FAULTS.items():
        example = examples[f"faults:{name}"]
        got, body, retry = example["details"]["notes"]["said"]
        assert ("error", code, "false") == (example["status"], got, retry)
        assert said in body
        assert said in example["error"]
    assert "passed" == examples["faults:let_not_there"]["status"]


def test_a_line_of_the_ini_file_that_is_no_path_is_refused_before_the_run(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\nlm_forward_paths = https://elsewhere.example/v1\n")
    result = project.run()
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*ini lm_forward_paths: expected a path below the server's address*got 'https://els*"])
