import asyncio
import unittest

import pytest


@pytest.mark.asyncio
async def test_function(of_function, always):
    assert await of_function.works()
    assert always is asyncio.get_running_loop()


@pytest.mark.asyncio(loop_scope="class")
class TestClass:
    async def test_class(self, of_class):
        assert await of_class.works()

    async def test_class_again(self, of_class):
        assert await of_class.works()


@pytest.mark.asyncio(loop_scope="module")
async def test_module(of_module):
    assert await of_module.works()


@pytest.mark.asyncio(loop_scope="package")
async def test_package(of_package):
    assert await of_package.works()


@pytest.mark.asyncio(loop_scope="session")
async def test_session(of_session):
    assert await of_session.works()


@pytest.mark.asyncio(loop_scope="session")
async def test_session_through_another(on_session):
    assert await on_session.works()


@pytest.mark.asyncio
async def test_another_loop(of_session):
    assert await of_session.works()


@pytest.mark.asyncio
async def test_unmarked(unmarked):
    assert await unmarked.works()


@pytest.mark.asyncio
async def test_broken(broken):
    pass


@pytest.mark.asyncio
async def test_two_scopes(of_two_scopes):
    pass


def test_blocking(of_function):
    assert not of_function.loop.is_closed()


def test_blocking_by_name(request):
    assert not request.getfixturevalue("of_function").loop.is_running()


class TestUnit(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.loop = asyncio.get_running_loop()

    async def test_unit(self):
        await asyncio.sleep(0)
        assert self.loop is asyncio.get_running_loop()
