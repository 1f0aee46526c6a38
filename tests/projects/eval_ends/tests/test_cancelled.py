"""Applications that give requests up just before they return, and one that forgets its own."""

import asyncio

import openai
import pytest

from pytest_lmeval import eval_task

ASYNC = openai.AsyncOpenAI(api_key="unused", max_retries=0, timeout=0.2)
PLAIN = openai.OpenAI(api_key="unused", max_retries=0, timeout=0.2)
ASKED = {"model": "stub.v1", "messages": [{"role": "user", "content": "slow"}]}


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
    tasks = [asyncio.create_task(lm.ask(text)) for text in ("slow", "fast")]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks[0].cancel()
    assert 1


@eval_task("left")
async def test_left(lm):
    lm.left = asyncio.create_task(lm.ask("slow"))
    await asyncio.sleep(0.7)
    assert 1
