import asyncio
import os
import signal

from pytest_lmeval import eval_task


@eval_task("app", data=[{"id": f"q{n}"} for n in range(6)])
async def test_app(row, lm, service):
    if os.environ.get("DIES") and row["id"] == "q5":
        os.kill(os.getpid(), signal.SIGKILL)
    status, said = await asyncio.to_thread(service, row["id"], lm.headers)
    lm.score("right", (status, said) == (200, f'The answer to "{row["id"]}" is 42.'))
    assert 1 == len(lm.trace)
