import asyncio
import threading

import pytest

from pytest_lmeval import eval_task

BEGUN, BLOCKED, CHANGED, PRINTED = [threading.Event() for _ in range(4)]


@eval_task("first", data=[{"id": "f0"}])
async def test_first(row, lm):
    await asyncio.sleep(0)
    assert row


@pytest.fixture
def late():
    yield
    CHANGED.set()
    assert PRINTED.wait(20)


def test_between(late):
    BEGUN.set()
    assert BLOCKED.wait(20)


@eval_task("beside", data=[{"id": "b0"}])
async def test_beside(row, lm):
    while not BEGUN.is_set():
        await asyncio.sleep(0.01)
    BLOCKED.set()
    CHANGED.wait(20)
    print("from b0")
    PRINTED.set()
    assert row
