"""Async fixtures of every scope, each bound to the loop that it was made in, as clients of HTTP are."""

import asyncio

import pytest
import pytest_asyncio


class Held:
    """Something that works in one loop only."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.getting = self.loop.create_task(self.queue.get())

    async def works(self):
        """Tell whether the loop that runs is its own, and whether what waits in it goes on."""
        await asyncio.sleep(0)
        if self.loop is asyncio.get_running_loop() and not self.getting.done():
            await self.queue.put("there")
            return await asyncio.wait_for(self.getting, 5) == "there"
        return self.loop is asyncio.get_running_loop()


def held_for(scope):
    @pytest_asyncio.fixture(scope=scope, loop_scope=scope)
    async def held():
        made = Held()
        yield made
        assert made.loop is asyncio.get_running_loop()
        made.getting.cancel()

    return held


of_function, of_class, of_module, of_package, of_session = map(
    held_for, ("function", "class", "module", "package", "session")
)


@pytest_asyncio.fixture(autouse=True)
async def always():
    loop = asyncio.get_running_loop()
    yield loop
    assert loop is asyncio.get_running_loop()


@pytest_asyncio.fixture(scope="session", loop_scope="function")
async def of_two_scopes():
    return 1


@pytest.fixture
async def unmarked():
    return Held()


@pytest_asyncio.fixture
async def on_session(of_session):
    return of_session


@pytest_asyncio.fixture
async def broken():
    raise RuntimeError("no such server")
