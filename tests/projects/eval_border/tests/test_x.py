import asyncio

import numpy
import pytest
from helpers import is_fine, traced
from shop import answer

from pytest_lmeval import eval_task


def task(name, **given):
    return eval_task(name, data=[{"id": "a"}], **given)


@task("nothing")
async def test_nothing(row, lm):
    answer((await lm.ask("say: x")).text)


@task("nothing recorded")
async def test_nothing_recorded(row, lm):
    if row["id"] == "b":
        lm.score("never", 1)


@task("helper")
async def test_helper(row, lm):
    is_fine((await lm.ask("say: x")).text)


@pytest.fixture
def judged():
    def judged(answer):
        assert answer

    return judged


@task("fixture")
async def test_fixture(row, lm, judged):
    judged((await lm.ask("say: x")).text)


@task("wrapped")
@traced
async def test_wrapped(row, lm):
    assert (await lm.ask("say: y")).text == "x"


@task("bool")
def test_bool(row):
    assert row
    return False


@task("numpy")
async def test_numpy(row):
    assert row
    return numpy.float64(0.5)


@task("object")
async def test_object(row):
    assert row
    return object


@task("coroutine")
def test_coroutine(row):
    assert row

    async def inner():
        assert 0

    return inner()


@task("generator", threads=True)
def test_generator(row):
    assert row
    return (each for each in [1])


@task("not awaited")
async def test_not_awaited(row, lm):
    assert lm.ask("2+2?")


@task("judge not awaited")
async def test_judge_not_awaited(row, lm):
    assert lm.judge("Right?", "x") != "no"


@task("left open")
async def test_left_open(row, lm):
    asyncio.ensure_future(lm.ask("say: x"))  # noqa: RUF006  # nobody waits for it
    await asyncio.sleep(0)
    assert row


@task("swallowed", timeout=0.1)
async def test_swallowed(row, lm):
    try:
        await asyncio.sleep(20)
    except BaseException:
        pass
    lm.score("ok", 1)


@task("library")
async def test_library(row):
    numpy.testing.assert_allclose(1, 2)


@task("allowed")
async def test_allowed(row, lm):
    with lm.may_fail(), pytest.raises(Exception):
        await lm.ask("raise")
    lm.score("ok", 1)


@task("after may_fail")
async def test_after_may_fail(row, lm):
    with lm.may_fail():
        pass
    with pytest.raises(Exception):
        await lm.ask("raise")


@task("cancelled")
async def test_cancelled(row, lm):
    asked = asyncio.ensure_future(lm.ask("say: x"))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.sleep(0)
    lm.score("ok", 1)


@task("output")
async def test_output(row, lm):
    lm.output("one")
    lm.output({"text": "two", "of": [row]})
    assert 0


@task("returned")
def test_returned(row, lm):
    lm.score("ok", 1)
    return "three"


def test_plain_bool(lm):
    assert lm
    return True


def test_plain_nothing(lm):
    answer("x")
