"""The model of every peer: at once "yes", or the same from the server at PORT; the clients of all of them are alike.

Each script beside this one runs in the environment of its peer: ``python with_NAME.py EXAMPLES PORT``, with PORT 0 for
a model that answers at once. It asks for EXAMPLES answers, 32 at once, compares each with "yes", and fails unless all
are right.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

AT_ONCE = 32
EXAMPLES, PORT = int(sys.argv[1]), int(sys.argv[2])
PROMPTS = [f"say {number}" for number in range(EXAMPLES)]
URL = f"http://127.0.0.1:{PORT}/v1"
_sessions: dict[Any, Any] = {}


async def answer(prompt: str) -> str:
    """Return what the model answers, by a session of aiohttp that is kept for the loop."""
    if not PORT:
        return "yes"
    import aiohttp

    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        _sessions[loop] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "temperature": 0}
    async with _sessions[loop].post(f"{URL}/chat/completions", json=body) as response:
        found: str = (await response.json())["choices"][0]["message"]["content"]
    return found


async def close() -> None:
    """Close the session of this loop."""
    session = _sessions.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


async def answers(prompts: Sequence[str] = PROMPTS) -> list[str]:
    """Return the answers to all prompts, 32 at once: the bare loop."""
    left = iter(enumerate(prompts))
    found = [""] * len(prompts)

    async def work() -> None:
        for number, prompt in left:
            found[number] = await answer(prompt)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    await close()
    return found


def answer_now(prompt: str) -> str:
    """Return what the model answers, to code that is not asynchronous."""
    if not PORT:
        return "yes"
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "temperature": 0}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{URL}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        found: str = json.load(response)["choices"][0]["message"]["content"]
    return found


def check(right: bool) -> None:
    """End the script with what was expected unless all answers were right."""
    if not right:
        sys.exit("not all answers were scored as right")
