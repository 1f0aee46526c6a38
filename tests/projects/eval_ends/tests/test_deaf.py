"""Functions that take longer than their timeout; one of them ignores its cancellation."""

import asyncio

from pytest_lmeval import eval_task


@eval_task("deaf", timeout=0.3)
async def test_deaf(lm):
    while True:
        try:
            await asyncio.sleep(0.05)
        except:  # noqa: E722  # as applications that retry write it
            pass


@eval_task("tidy", timeout=0.3)
async def test_tidy(lm):
    try:
        await asyncio.sleep(9)
    finally:
        await asyncio.sleep(0.1)
        lm.note("tidied", True)


@eval_task("after")
async def test_after(lm):
    assert (await lm.ask("x")).text == "yes"
