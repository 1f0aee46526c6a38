"""Servers without an answer."""

import sys

from pytest_lmeval import eval_task

PYTHON = sys.executable
SLEEPS = "import sys, time; print('wait', file=sys.stderr, flush=True); time.sleep(300)"
# It answers what each line asks, with what stands in its arguments.
RAW = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    init = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
    image = {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}
    answers = {"initialize": init, "tools/list": {"tools": json.loads(sys.argv[1])}, "tools/call": image}
    unknown = {"error": {"code": -32601, "message": "no such order"}}
    if asked.get("params", {}).get("name") == "lost":
        answers = {}
    found = {"result": answers[asked["method"]]} if asked["method"] in answers else unknown
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **found}), flush=True)
"""
TOOL = '{"name": "find", "inputSchema": {"type": "object"}}'


async def offered(lm, *tools):
    return await lm.mcp([PYTHON, "-c", RAW, f"[{', '.join(tools)}]"])


async def two(lm):
    await offered(lm, TOOL)
    await offered(lm, TOOL, TOOL.replace("find", "other"))


async def call(lm, name):
    return await (await offered(lm, TOOL, TOOL.replace("find", "lost"))).call(name)


async def crash(lm):
    return await (await lm.mcp([PYTHON, "server.py"], timeout=300)).call("crash")


CASES = {
    "dies": crash,
    "picture": lambda lm: call(lm, "find"),
    "rejected": lambda lm: call(lm, "lost"),
    "misspelt": lambda lm: call(lm, "fund"),
    "hangs": lambda lm: lm.mcp([PYTHON, "-c", SLEEPS], timeout=2),
    "ends": lambda lm: lm.mcp([PYTHON, "-c", "import sys; sys.exit('no licence')"]),
    "missing": lambda lm: lm.mcp("no-such-program --token=secret-word"),
    "twice": lambda lm: offered(lm, TOOL, TOOL),
    "nothing": lambda lm: offered(lm),
    "two servers": two,
    "no command": lambda lm: lm.mcp(""),
    "no time": lambda lm: lm.mcp("x", timeout=0),
    "address": lambda lm: lm.mcp("http://user:word@127.0.0.1:9/mcp?key=word"),
}


@eval_task("cases", data=[{"id": name} for name in CASES])
async def test_case(row, lm):
    try:
        lm.output(repr(await CASES[row["id"]](lm)))
    except Exception:
        pass
    lm.score("ok", 1)


@eval_task("forgotten")
async def test_forgotten(lm):
    lm.mcp("x")
    lm.score("ok", 1)
