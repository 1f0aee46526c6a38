import asyncio

import numpy
import pytest
from helpers import is_fine, traced
from shop import answer

from pytest_lmeval import eval_task


def task(name, **given):
    return eval_task(name, data=[{"id": "a"}], **given)


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


@task("numpy")
async def test_numpy(row):
    assert row
    return numpy.float64(0.5)


@task("judge not awaited")
async def test_judge_not_awaited(row, lm):
    assert lm.judge("Right?", "x") != "no"


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
