"""Async fixtures that work in the event loop, and the task, that they were set up in."""

import anyio
import pytest
from anyio.lowlevel import current_token

BACKEND = "asyncio"


@pytest.fixture(scope="session")
def anyio_backend():
    return BACKEND


def token_for(scope):
    @pytest.fixture(scope=scope)
    async def token(anyio_backend):
        made = current_token()
        yield made
        assert made == current_token()

    return token


of_class, of_module, of_package, of_session = map(token_for, ("class", "module", "package", "session"))


@pytest.fixture
async def of_function(anyio_backend):
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


@pytest.fixture(autouse=True)
async def always(anyio_backend):
    await anyio.sleep(0)
    return current_token()


@pytest.fixture
async def on_session(of_session):
    return of_session
