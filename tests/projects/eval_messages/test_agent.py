import http.client
import json

from pytest_lmeval import eval_task

TOOL = {"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}


def ask(lm, *turns, **more):
    host, _, path = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    body = {"model": "claude-asked", "max_tokens": 99, "messages": turns, **more}
    # As the interface's own client, which adds the version to its base URL.
    connection.request("POST", f"/{path}/v1/messages", json.dumps(body), {"x-api-key": "own"})
    reply = connection.getresponse()
    said = reply.read().decode()
    connection.close()
    return reply.status, json.loads(said) if said.startswith("{") else said


@eval_task("agent", data=[{"id": "a"}, {"id": "b"}])
def test_agent(row, lm):
    question = {"role": "user", "content": row["id"]}
    _, first = ask(lm, question, tools=[TOOL])
    assert ("tool_use", {"at": row["id"]}) == (first["stop_reason"], first["content"][-1]["input"])
    result = {"type": "tool_result", "tool_use_id": first["content"][-1]["id"], "content": "tea"}
    talk = [question, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
    _, second = ask(lm, *talk, tools=[TOOL])
    lm.score("right", [{"type": "text", "text": "it is tea", "citations": None}] == second["content"])
    assert "event: message_stop" in ask(lm, *talk, tools=[TOOL], stream=True)[1]


@eval_task("refused", data=[{"id": "there"}, {"id": "here"}])
def test_refused(row, lm):
    more = {"temperature": 7} if row["id"] == "there" else {"tools": [{"type": "bash", "name": "bash"}]}
    status, said = ask(lm, {"role": "user", "content": "q"}, **more)
    assert (400, "error", "invalid_request_error") == (status, said["type"], said["error"]["type"])
