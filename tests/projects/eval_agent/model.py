"""A model that gives its calls new ids in every run, and knows them again."""

import asyncio
import os
import random
import secrets
import signal
from pathlib import Path

from pytest_lmeval import Completion, ToolCall

GIVEN = set()
ROUNDS = ("find", "refund")


class Model:
    name = "caller.v1"

    async def complete(self, request):
        await asyncio.sleep(random.random() / 50)
        with Path("asked.txt").open("a") as asked:
            asked.write(f"{request.id}\n")
        if Path("kill.txt").exists() and len(Path("asked.txt").read_text().splitlines()) == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        answered = [each.tool_call_id for each in request.prompt if each.role == "tool"]
        if not Path("resumed.txt").exists():
            assert GIVEN.issuperset(answered), "the server does not know the ids"
        assert len(answered) == len(set(answered)), "an id is there twice"
        if len(answered) // 2 == len(ROUNDS):
            return Completion("done")
        name = ROUNDS[len(answered) // 2]
        calls = [ToolCall(f"call_{secrets.token_hex(12)}", name, '{"q": 1}') for _ in range(2)]
        GIVEN.update(call.id for call in calls)
        return Completion("", tool_calls=tuple(calls))
