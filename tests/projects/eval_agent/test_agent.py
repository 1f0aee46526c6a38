"""Agents of two rounds of tools that refuse an id that was there before, as some frameworks do."""

import asyncio
import json
import urllib.request

from pytest_lmeval import eval_task

ROWS = [{"id": f"e{number}"} for number in range(4)]
TOOLS = [{"name": name, "parameters": {"type": "object"}} for name in ("find", "refund")]


def chat(base_url, talk):
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    body = json.dumps({"model": "any", "messages": talk, "tools": tools}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{base_url}/chat/completions", body)) as reply:
        return json.load(reply)["choices"][0]["message"]


async def ask(lm, talk):
    answer = await lm.ask(talk, tools=TOOLS)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]
    return {"role": "assistant", "content": answer.text, "tool_calls": calls}


async def agent(say, question, seen):
    talk = [{"role": "user", "content": question}]
    while calls := (message := await say(talk)).get("tool_calls"):
        talk.append({"role": "assistant", "content": message["content"], "tool_calls": calls})
        for call in calls:
            if call["id"] in seen:
                raise RuntimeError("the model reused the id of a call")
            seen.add(call["id"])
            # Some put it where the model reads it.
            talk.append({"role": "tool", "content": f"result of {call['id']}", "tool_call_id": call["id"]})
    return [message["tool_call_id"] for message in talk if message["role"] == "tool"]


@eval_task("client", data=ROWS)
async def test_client(row, lm):
    seen = set()
    base_url = lm.base_url
    found = await asyncio.gather(
        *[agent(lambda talk: asyncio.to_thread(chat, base_url, talk), f"{row['id']} {n}", seen) for n in "ab"]
    )
    lm.score("done", len(seen) == 8)
    lm.output(found)


@eval_task("asked", data=ROWS)
async def test_asked(row, lm):
    seen = set()
    found = await asyncio.gather(*[agent(lambda talk: ask(lm, talk), f"{row['id']} {n}", seen) for n in "ab"])
    lm.score("done", len(seen) == 8)
    lm.output(found)
