"""The border where an application's own client speaks to the run: the endpoint at ``lm.base_url``."""

from __future__ import annotations

from typing import Any, Literal

from tests.border.table import Border, Row

# Takes a temperature alone, and says of each request what it got.
MODEL = """
from pytest_lmeval import AdapterError, Completion

class Model:
    name = "stub.v1"
    request_options = ("temperature",)

    async def complete(self, request):
        if request.text == "fail":
            error = AdapterError("HTTP 422 from /chat/completions")
            error.status, error.said = 422, {"message": "too long", "type": "own_error", "code": "too_long"}
            raise error
        return Completion(f"{request.text} {sorted(request.options.items())} {request.max_tokens} {request.stop}")
"""
ASK = """
import http.client, json

def send(lm, body, path="/chat/completions", method="POST", headers=(), base=None, target=None):
    host, _, base_path = (base or lm.base_url).removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    data = data.encode() if isinstance(data, str) else data
    connection.request(method, target or f"/{base_path}{path}", data, dict(headers))
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, (json.loads(text) if text.startswith("{") else text), reply.headers

def chat(text="hi", **more):
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], **more}

def refused(lm, status, body, **request):
    got, reply, headers = send(lm, body, **request)
    kind = "invalid_request_error" if status < 500 else "server_error"
    assert (status, kind, "false") == (got, reply["error"]["type"], headers["x-should-retry"])
    return reply["error"]["message"]
"""
Fate = Literal["used", "refused", "reported"]


def _kept(name: str, code: str, says: str = "", fate: Fate = "reported") -> Row:
    """Return the row of a client that reads its environment, of which ``KEPT[0]`` is the one of the run before."""
    return row("kept client", name, code, says, fate, head=ENV_HEAD)


def row(
    kind: str, name: str, code: str, says: str = "", fate: Fate = "refused", ids: tuple[str, ...] = ("a",), **more: Any
) -> Row:
    """Return the row of an application's request; it catches whatever the client raises, and scores 1."""
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    head = more.pop("head", HEAD)
    status = {"refused": "error"}.get(fate, "passed")
    return Row(
        kind=kind,
        what=name,
        fate=fate,
        files={f"tests/test_{name}.py": head.format(name=name, rows=[{"id": id} for id in ids], body=body)},
        example=f"{name}:a",
        says=says,
        **{"status": status, **more},
    )


HEAD = """
from ask import chat, refused, send
from pytest_lmeval import eval_task

@eval_task("{name}", data={rows})
def test_{name}(row, lm):
{body}
    lm.score("polite", True)
"""
# Runs twice in one process, as two examples would: what the first run leaves is kept for the second.
ENV_HEAD = """
import os, threading
from ask import chat, refused, send
from pytest_lmeval import eval_task

KEPT = []

def ask(base):
    return send(None, chat(), base=base)[0]

def later(base):
    heard = []
    thread = threading.Thread(target=lambda: heard.append(ask(base())))
    thread.start()
    thread.join()
    return heard[0]

@eval_task("{name}", data={rows}, repeats=2)
def test_{name}(row, lm, lm_env):
    KEPT.append(os.environ["OPENAI_BASE_URL"])
{body}
    lm.score("polite", True)
"""
DEEP = "[" * 200_000
ROWS = (
    row("absent", "no_body", "refused(lm, 400, '')", "lm.base_url: the body is not JSON: Expecting value"),
    row("absent", "no_messages", "refused(lm, 400, {'model': 'm'})", "messages: the field 'messages' is required here"),
    row(
        "absent",
        "no_input",
        "refused(lm, 400, {'model': 'm'}, path='/responses')",
        "input: the field 'input' is required here",
    ),
    row(
        "empty", "no_message", "refused(lm, 400, chat() | {'messages': []})", "messages: expected at least one, got []"
    ),
    row(
        "empty",
        "nothing",
        """
got, reply, _ = send(lm, chat("", stop=[], tools=[], tool_choice="", logprobs=None, model="stub.v1"))
assert (200, " [] None ()") == (got, reply["choices"][0]["message"]["content"])
""",
        fate="used",
    ),
    row(
        "wrong type",
        "paths",
        """
said = refused(lm, 404, chat(), path="/files")
assert said.startswith("POST /files is not answered here; expected POST /chat/completions, ")
assert refused(lm, 404, b"", path="/files/1", method="DELETE").startswith("DELETE /files/1 is not")
assert refused(lm, 404, b"", path="/chat/completions", method="GET").startswith("GET /chat/completions is not")
""",
        "lm.base_url: POST /files is not answered here; expected",
    ),
    row(
        "wrong type",
        "not_a_path",
        """
for path in ("/../files", "/%2e%2e/files", "/chat%2fcompletions", "/responses/../files", "//elsewhere/responses"):
    assert "is not answered here" in refused(lm, 404, chat(), path=path)
""",
        "lm.base_url: POST /../files is not answered here; expected",
    ),
    row(
        "wrong type",
        "another_host",
        """
host, _, path = lm.base_url.removeprefix("http://").partition("/")
for target in (f"http://elsewhere.example/{path}/embeddings", f"http://{host}/{path}/models"):
    assert "is not answered here" in refused(lm, 404, b"", target=target)
""",
        "lm.base_url: POST http://elsewhere.example/e/",
        on=("terminal", "board"),
    ),
    row(
        "absent",
        "no_server",
        """
refused(lm, 501, {"input": "hi"}, path="/embeddings?x=1")
refused(lm, 501, b"", path="/models", method="GET")
""",
        "lm.base_url: POST /embeddings goes to the adapter's server, and stub.v1 has none",
    ),
    row(
        "wrong type",
        "messages",
        "refused(lm, 404, {'max_tokens': 1, 'messages': []}, path='/v1/messages')",
        "lm.base_url: POST /messages is not answered here; Anthropic's interface needs",
    ),
    row(
        "wrong type",
        "servers_tool",
        "refused(lm, 400, {'input': 'hi', 'tools': [{'type': 'web_search'}]}, path='/responses')",
        ".type: expected a function of the application: custom",
    ),
    row("wrong type", "list", "refused(lm, 400, '[]')", "expected a JSON object, got list"),
    row("wrong type", "stop", "refused(lm, 400, chat(stop=5))", "stop: expected a text or a list, got 5"),
    row("wrong type", "tools", "refused(lm, 400, chat(tools=5))", "tools: expected a list, got a number 5"),
    row(
        "wrong type",
        "choice",
        """
tool = {"type": "function", "function": {"name": "look"}}
for given in ({"function": 5}, {"type": "allowed_tools"}, "look", {"function": {"name": "find"}}):
    assert "tool_choice: expected auto, none, required or one" in refused(
        lm, 400, chat(tools=[tool], tool_choice=given))
""",
        "tool_choice: expected auto, none, required or one of the tools",
    ),
    row(
        "wrong type",
        "limits",
        """
for wrong in ({"max_tokens": "x"}, {"max_tokens": True}, {"max_tokens": 0}, {"temperature": "hot"}, {"seed": 0.5},
              {"stream": "yes"}, {"stream_options": 5}, {"response_format": "json"}, {"model": 5}, {"functions": []},
              {"n": 2}, {"max_tokens": 1, "max_completion_tokens": 2}):
    refused(lm, 400, chat(**wrong))
""",
        "max_tokens: expected a whole number from 1, got 'x'",
    ),
    row(
        "wrong type",
        "image",
        """
picture = {"type": "image_url", "image_url": {"url": "data:"}}
refused(lm, 400, {"messages": [{"role": "user", "content": [picture]}]})
""",
        ".content[0]: data:: expected data:TYPE;base64,BYTES",
    ),
    row(
        "wrong type",
        "calls",
        """
call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": {"a": 1}}}
refused(lm, 400, {"messages": [{"role": "assistant", "tool_calls": [call]}]})
""",
        ".function.arguments: expected",
    ),
    row(
        "too large", "deep", f"refused(lm, 400, '{{\"messages\": ' + '[' * {len(DEEP)})", "the body is nested too deep"
    ),
    row(
        "too large",
        "deep_option",
        """
deep = value = []
for _ in range(60):
    value.append([])
    value = value[0]
refused(lm, 400, chat(metadata=deep))
""",
        "metadata: nested deeper than 50",
    ),
    row("too large", "huge", "refused(lm, 413, b' ' * (65 << 20))", "the body is larger than 64 MiB"),
    row(
        "not finite or negative",
        "numbers",
        """
refused(lm, 400, '{"messages": [], "temperature": NaN}')
refused(lm, 400, '{"messages": [{"role": "user", "content": "x"}], "logit_bias": {"5": 1e999}}')
refused(lm, 400, chat(max_tokens=-1))
""",
        "NaN is not a JSON value",
    ),
    row(
        "control characters",
        "bytes",
        """
refused(lm, 400, b'{"messages": "\\xff"}')
refused(lm, 404, chat(), path="/a%0d%1b%5b2J")
""",
        "lm.base_url: POST /a%0d%1b%5b2J is not answered here",
        on=("terminal", "board"),
        unsaid="\x1b[2J",
    ),
    row(
        "twice",
        "same_key",
        """
got, reply, _ = send(lm, '{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "max_tokens": 2}')
assert "x [] 2 ()" == reply["choices"][0]["message"]["content"]  # as any reader of JSON has it
""",
        fate="used",
    ),
    row(
        "twice",
        "models",
        """
for model in ("gpt-4o", "gpt-4o-mini", "gpt-4o"):
    assert model == send(lm, chat(model=model))[1]["model"]
""",
        "gpt-4o-mini (1); stub.v1 was asked instead",
        "reported",
    ),
    row(
        "twice",
        "options",
        """
tool = {"type": "function", "function": {"name": "look", "parameters": {}, "strict": True}}
got, reply, _ = send(lm, chat(temperature=0, reasoning_effort="low", tools=[tool], logprobs=True, user="me"))
assert "hi [('temperature', 0)] None ()" == reply["choices"][0]["message"]["content"]
send(lm, {"messages": [{"role": "user", "content": "x", "name": "me", "reasoning_content": "I", "refusal": None}]})
""",
        "choices[].logprobs (1), logprobs (1), messages[].name (1), messages[].reasoning_content (1), "
        "reasoning_effort (1)",
        "reported",
    ),
    row(
        "twice",
        "options_of_responses",
        """
asked = {"input": "hi", "model": "stub.v1", "truncation": "auto"}
assert 200 == send(lm, asked, path="/responses")[0]
""",
        "tools[].strict (1), truncation (1), user (1)",
        "reported",
    ),
    row(
        "late",
        "after_the_end",
        """
from pathlib import Path
import time
kept = Path(__file__).with_name("address.txt")
if row["id"] == "a":
    kept.with_suffix(".new").write_text(lm.base_url)
    kept.with_suffix(".new").rename(kept)
else:
    while not kept.exists() or send(lm, chat(), base=kept.read_text())[0] == 200:
        time.sleep(0.02)
    got, reply, headers = send(lm, chat(), base=kept.read_text())
    assert (410, "false") == (got, headers["x-should-retry"])
""",
        "request(s) to lm.base_url after their example had ended",
        "reported",
        ids=("a", "b"),
    ),
    _kept("kept_for_all", "assert 200 == ask(KEPT[0])", "the current example: kept client of a"),
    _kept("kept_in_a_thread", "assert 200 == later(lambda: KEPT[0])", "the current example: kept client of a"),
    _kept("fresh_in_a_thread", "assert 200 == later(lambda: os.environ['OPENAI_BASE_URL'])", fate="used"),
    _kept(
        "kept_beside_own",
        """
try:
    if len(KEPT) == 2:
        with lm.may_fail():
            assert (200, 409) == (ask(KEPT[0]), ask(KEPT[1]))
except OSError:
    pass
""",
        "a client kept from the example a has sent requests for this one, and now its own",
        "refused",
    ),
    _kept(
        "late_after_own",
        "assert 200 == ask(KEPT[-1])\nassert [200, 410][len(KEPT) - 1] == later(lambda: KEPT[0])",
        "request(s) to lm.base_url after their example had ended",
    ),
    row(
        "kept client",
        "kept_by_hand",
        """
KEPT = globals().setdefault("KEPT", [])
KEPT.append(lm.base_url)
assert (200, 410)[len(KEPT) - 1] == send(lm, chat(), base=KEPT[0])[0]
""",
        "request(s) to lm.base_url after their example had ended",
        "reported",
        head=HEAD.replace("data={rows}", "data={rows}, repeats=2").replace("row, lm)", "row, lm, lm_base_url)"),
    ),
    row(
        "out of order",
        "goes_on",
        """
got, first, _ = send(lm, {"model": "stub.v1", "input": "one"}, path="/responses")
got, second, _ = send(lm, {"model": "stub.v1", "input": "two", "previous_response_id": first["id"]}, path="/responses")
assert second["output"][0]["content"][0]["text"].startswith("one")
""",
        fate="used",
    ),
    row(
        "out of order",
        "goes_on_with_none",
        "refused(lm, 400, {'input': 'two', 'previous_response_id': 'resp_1'}, path='/responses')",
        "previous_response_id: expected the id of a response of this",
    ),
    row(
        "cancelled",
        "hung_up",
        """
import socket
host, _, path = lm.base_url.removeprefix("http://").partition("/")
head = f"POST /{path}/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 100\\r\\n\\r\\n"
with socket.create_connection(host.split(":")) as connection:
    connection.sendall(head.encode() + b"{")
assert 200 == send(lm, chat(model="stub.v1"))[0]
""",
        fate="used",
    ),
    row(
        "raising",
        "status",
        """
got, reply, headers = send(lm, chat("fail"))
assert (422, "false") == (got, headers["x-should-retry"])
assert {"message": "too long", "type": "own_error", "code": "too_long", "param": None} == reply["error"]
""",
        "HTTP 422 from /chat/completions",
    ),
    row(
        "raising",
        "may_fail",
        """
with lm.may_fail():
    refused(lm, 404, chat(), path="/files")
    assert 422 == send(lm, chat("fail", model="stub.v1"))[0]
""",
        fate="used",
        score=1.0,
    ),
    row(
        "secret",
        "own_key",
        """
got, reply, _ = send(lm, chat(model="stub.v1"), headers={"Authorization": "Bearer sk-PLANTED-0123456789"})
assert 200 == got
""",
        fate="used",
        unsaid="PLANTED",
    ),
    row(
        "beside",
        "variables_put_back",
        """
assert "OPENAI_BASE_URL" not in os.environ
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert 200 == send(lm, chat(model="stub.v1"))[0]
""",
        fate="used",
        head=f"import os\nimport pytest\n{HEAD}",
    ),
    row(
        "environment",
        "proxy",
        """
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("http_proxy", "http://127.0.0.1:9")
    patch.setenv("no_proxy", "127.0.0.1")
    assert os.environ["OPENAI_BASE_URL"] == lm.base_url
    asked = urllib.request.Request(f"{lm.base_url}/chat/completions", json.dumps(chat(model="stub.v1")).encode())
    assert 200 == urllib.request.urlopen(asked).status
""",
        fate="used",
        head=f"import json\nimport os\nimport urllib.request\nimport pytest\n{HEAD}".replace(
            "(row, lm)", "(row, lm, lm_env)"
        ),
    ),
    Row(kind="changed unseen", never="the model that a client names is compared with the baseline's: baseline.py"),
    row(
        "earlier run",
        "old_token",
        """
old = lm.base_url.replace(lm.token, "x" * len(lm.token))
assert 421 == send(lm, chat(), base=old)[0]
assert 200 == send(lm, chat(model="stub.v1"))[0]
""",
        "request(s) to the endpoint that name no example: give the client base_url=lm.base_url",
        "reported",
    ),
    row(
        "same name",
        "no_token",
        """
base = lm.base_url.partition("/e/")[0]
got, reply, headers = send(lm, chat(), base=f"{base}/v1")
assert (421, "false") == (got, headers["x-should-retry"])
assert "give the client base_url=lm.base_url" in reply["error"]["message"]
assert 200 == send(lm, chat(model="stub.v1"), base=f"{base}/v1", headers={"authorization": f"bearer {lm.token}"})[0]
""",
        "request(s) to the endpoint that name no example: give the client base_url=lm.base_url",
        "reported",
    ),
)
BORDER = Border(
    name="the endpoint",
    files={"model.py": MODEL, "tests/ask.py": ASK},
    rows=ROWS,
    arguments=("--lm-adapter=model:Model", "tests"),
    code=3,
)
