import asyncio

import pytest
from anyio.lowlevel import current_token

from pytest_lmeval import eval_task

ROWS = [{"id": "a"}, {"id": "b"}]


@pytest.fixture(scope="session")
async def own():
    loop = asyncio.get_running_loop()
    yield loop
    assert loop is asyncio.get_running_loop()


@pytest.fixture
async def of_function(own, always):
    assert always == current_token()
    return own


@eval_task("wide", data=ROWS)
async def test_wide(row, lm, own):
    assert own is asyncio.get_running_loop()


@eval_task("narrow", data=ROWS)
async def test_narrow(row, lm, of_function):
    assert of_function is asyncio.get_running_loop()


@eval_task("blocking", data=ROWS)
def test_blocking(row, lm, own):
    assert own.is_running()
