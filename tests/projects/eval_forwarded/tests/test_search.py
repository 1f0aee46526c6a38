import http.client
import json
import os

from pytest_lmeval import eval_task

ROWS = [{"id": f"e{n}", "q": f"what is {n}"} for n in range(3)]
HEADERS = {"Authorization": "Bearer sk-PLANTED-0123456789", "Cookie": "own=PLANTED-0123456789", "X-Team": "search"}


def send(lm, method, path, **body):
    """Return status, type and body of a reply, as a client with a key and a cookie of its own gets it."""
    host, _, base = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, f"/{base}/{path}", json.dumps(body) if body else None, HEADERS)
    reply = connection.getresponse()
    said = reply.status, reply.headers["content-type"], reply.read()
    connection.close()
    return said


def ask(lm, method, path, **body):
    status, _, said = send(lm, method, path, **body)
    assert 200 == status
    return json.loads(said)


@eval_task("search", data=ROWS, threads=True)
def test_search(row, lm):
    assert ["mock"] == [model["id"] for model in ask(lm, "GET", "models")["data"]]
    found = ask(lm, "POST", "embeddings", model="embed-small", input=[row["q"], "tea"])
    assert found == ask(lm, "POST", "embeddings", model="embed-small", input=[row["q"], "tea"])
    assert 4 == len(found["data"][0]["embedding"])
    assert not ask(lm, "POST", "moderations", input=row["q"])["results"][0]["flagged"]
    ranked = ask(lm, "POST", "rerank?top_n=1", model="mock", query=row["q"])
    assert 0.5 == ranked["results"][0]["relevance_score"]
    if row["id"] == "e2" and "BREAKS" in os.environ:
        raise ConnectionError("half way")
    talk = [{"role": "user", "content": row["q"]}]
    said = ask(lm, "POST", "chat/completions", model="mock", messages=talk)["choices"][0]["message"]["content"]
    lm.score("right", said.endswith("42."))
    asked = ["GET /models", "POST /embeddings", "POST /embeddings", "POST /moderations", "POST /rerank"]
    assert asked == [step.name for step in lm.trace if step.kind == "http"]


@eval_task("named_path")
def test_named_path(lm):
    lm.score("right", (200, "image/png", b"\x89<think>") == send(lm, "GET", "models/mock/card"))
