import asyncio
import functools

import pytest

from pytest_lmeval import eval_task

ROWS = [{"id": "a"}, {"id": "b"}]
task = functools.partial(eval_task, data=ROWS)
kept: list[asyncio.Task[object]] = []


async def check(lm, value="right"):
    assert (await lm.ask("say: x")).text == value


async def fail(after=0.0):
    await asyncio.sleep(after)
    raise OSError("no such place")


@task("lost-assert")
async def test_lost_assert(row, lm):
    asyncio.ensure_future(check(lm))  # noqa: RUF006  # left to itself on purpose
    await asyncio.sleep(0.05)


@task("lost-of-one")
async def test_lost_of_one(row, lm):
    await lm.ask("say: 1")
    if row["id"] == "a":
        kept.append(asyncio.create_task(fail()))
        await asyncio.sleep(0.05)
    lm.score("ok", True)


@task("lost-in-time", timeout=20)
async def test_lost_in_time(row, lm):
    kept.append(asyncio.create_task(fail()))
    await asyncio.sleep(0.05)
    lm.score("ok", True)


@task("lost-at-the-end")
async def test_lost_at_the_end(row, lm):
    async def at_once():
        raise OSError("no such place")

    lm.score("ok", True)
    kept.append(asyncio.create_task(at_once()))


@task("lost-below")
async def test_lost_below(row, lm):
    async def begin():
        kept.append(asyncio.create_task(fail()))

    await asyncio.create_task(begin())
    await asyncio.sleep(0.05)
    lm.score("ok", False)


@task("waited-only")
async def test_waited_only(row, lm):
    done, _ = await asyncio.wait([asyncio.create_task(fail())])
    assert len(done) == 1


@task("group")
async def test_group(row, lm):
    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(10))

    with pytest.raises(ExceptionGroup):
        await both()


@task("gathered")
async def test_gathered(row, lm):
    found = await asyncio.gather(fail(), check(lm, "x"), return_exceptions=True)
    assert isinstance(found[0], OSError)


@task("cancelled")
async def test_cancelled(row, lm):
    waiting = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    waiting.cancel()
    assert not waiting.done()


@task("still-running")
async def test_still_running(row, lm):
    kept.append(asyncio.create_task(asyncio.sleep(10)))
    assert row["id"]


@task("asked-later")
async def test_asked_later(row, lm):
    failing = asyncio.create_task(fail())
    await asyncio.sleep(0.05)
    assert isinstance(failing.exception(), OSError)
