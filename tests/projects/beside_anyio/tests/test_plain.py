import unittest

import anyio
import pytest
from anyio.lowlevel import current_token


@pytest.mark.anyio
async def test_function(of_function, always):
    ended = anyio.Event()

    async def end():
        ended.set()

    of_function.start_soon(end)
    with anyio.fail_after(5):
        await ended.wait()
    assert always == current_token()


@pytest.mark.anyio
class TestClass:
    async def test_class(self, of_class):
        assert of_class == current_token()

    async def test_class_again(self, of_class):
        assert of_class == current_token()


@pytest.mark.anyio
async def test_module(of_module):
    assert of_module == current_token()


@pytest.mark.anyio
async def test_package(of_package):
    assert of_package == current_token()


@pytest.mark.anyio
async def test_session(of_session, on_session):
    assert on_session == of_session == current_token()


@pytest.mark.anyio
async def test_fails(of_session):
    assert of_session is None, "fails, as it is to"


def test_blocking(of_function, of_module):
    assert not of_function.cancel_scope.cancel_called


class TestUnit(unittest.TestCase):
    def test_unit(self):
        assert self.id()
