"""Applications that give requests up just before they return, and one that forgets its own."""

import asyncio
import threading
import time

import openai
import pytest
from model import RELEASED  # type: ignore[import-not-found]  # of the project

from pytest_lmeval import eval_task
from pytest_lmeval.functions import runner

# A busy machine may take long to notice that a client hung up: wait for that, however long it takes.
runner._SETTLES_S = 60

ASYNC = openai.AsyncOpenAI(api_key="unused", max_retries=0, timeout=0.5)
PLAIN = openai.OpenAI(api_key="unused", max_retries=0, timeout=0.5)
ASKED = {"model": "stub.v1", "messages": [{"role": "user", "content": "held"}]}


@eval_task("async")
async def test_async(lm):
    with pytest.raises(openai.APITimeoutError):
        await lm.client(ASYNC).chat.completions.create(**ASKED)
    assert 1


@eval_task("def")
def test_def(lm):
    with pytest.raises(openai.APITimeoutError):
        lm.client(PLAIN).chat.completions.create(**ASKED)
    assert 1


@eval_task("thread", threads=True)
def test_thread(lm):
    with pytest.raises(openai.APITimeoutError):
        lm.client(PLAIN).chat.completions.create(**ASKED)
    assert 1


@eval_task("hedged")
async def test_hedged(lm):
    tasks = [asyncio.create_task(lm.ask(text)) for text in ("held", "fast")]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks[0].cancel()
    assert 1


@eval_task("left")
async def test_left(lm):
    lm.left = asyncio.create_task(lm.ask("held until released"))
    threading.Thread(target=release_after, args=(lm.state,)).start()
    await asyncio.sleep(0)
    assert 1


def release_after(state):
    """Let the model answer once the function of ``state`` has ended."""
    while not state.has_ended:
        time.sleep(0.01)
    RELEASED.set()
