import asyncio

import pytest_asyncio

from pytest_lmeval import eval_task

ROWS = [{"id": "a"}, {"id": "b"}]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def own():
    loop = asyncio.get_running_loop()
    yield loop
    assert loop is asyncio.get_running_loop()


@pytest_asyncio.fixture
async def of_package(own):
    assert own is asyncio.get_running_loop()
    return own


@eval_task("wide", data=ROWS)
async def test_wide(row, lm, own, of_module):
    assert own is asyncio.get_running_loop()
    assert of_module.loop is own
    assert await of_module.works()


@eval_task("narrow", data=ROWS)
async def test_narrow(row, lm, of_function, of_package, always):
    assert await of_function.works()
    assert of_package is always is asyncio.get_running_loop()


@eval_task("blocking", data=ROWS)
def test_blocking(row, lm, of_function, own):
    assert of_function.loop is own


class TestClass:
    @eval_task("in a class", data=ROWS)
    async def test_class(self, row, lm, of_class):
        assert await of_class.works()
