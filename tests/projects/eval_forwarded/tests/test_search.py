import http.client
import os

import openai

from pytest_lmeval import eval_task

ROWS = [{"id": f"e{n}", "q": f"what is {n}"} for n in range(3)]


def client(lm):
    headers = {"Cookie": "own=PLANTED-0123456789", "X-Team": "search"}
    return openai.AsyncOpenAI(api_key="sk-PLANTED-0123456789", base_url=lm.base_url, default_headers=headers)


@eval_task("search", data=ROWS)
async def test_search(row, lm):
    own = client(lm)
    assert ["mock"] == [model.id async for model in await own.models.list()]
    found = await own.embeddings.create(model="embed-small", input=[row["q"], "tea"])
    again = await own.embeddings.create(model="embed-small", input=[row["q"], "tea"])
    assert 4 == len(found.data[0].embedding)
    assert found.data[0].embedding == again.data[0].embedding
    assert not (await own.moderations.create(input=row["q"])).results[0].flagged
    ranked = await own.post("/rerank?top_n=1", body={"model": "mock", "query": row["q"]}, cast_to=object)
    assert 0.5 == ranked["results"][0]["relevance_score"]
    if row["id"] == "e2" and "BREAKS" in os.environ:
        raise ConnectionError("half way")
    said = await own.chat.completions.create(model="mock", messages=[{"role": "user", "content": row["q"]}])
    lm.score("right", said.choices[0].message.content.endswith("42."))
    asked = ["GET /models", "POST /embeddings", "POST /embeddings", "POST /moderations", "POST /rerank"]
    assert asked == [step.name for step in lm.trace if step.kind == "http"]


@eval_task("named_path")
def test_named_path(lm):
    host, _, path = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", f"/{path}/models/mock/card")
    reply = connection.getresponse()
    lm.score("right", (200, "image/png", b"\x89<think>") == (reply.status, reply.headers["content-type"], reply.read()))
    connection.close()
