"""Eval functions that end in every way there is."""

import asyncio
import contextlib
import time

import pytest

from pytest_lmeval import eval_task


def rows(*ids):
    return [{"id": each} for each in ids]


TAGS = ["fast", "two words"]


@eval_task("right", tags=TAGS)
async def test_right(lm):
    lm.score("ok", (await lm.ask("say: yes")).text == "yes")
    lm.score("more", 0.25)


@eval_task("wrong", tags=TAGS)
async def test_wrong(lm):
    lm.score("ok", 0.5)


@eval_task("assert", tags=TAGS)
async def test_assert(lm):
    lm.score("ok", True)
    assert (await lm.ask("say: 5")).text == "4", "it counts wrongly"


@eval_task("raise", tags=TAGS)
async def test_raise(lm):
    {"a key": 1}["missing key"]


@eval_task("exit", tags=TAGS)
async def test_exit(lm):
    raise SystemExit(3)


@eval_task("skip", tags=TAGS)
async def test_skip(lm):
    pytest.skip("not today")


@eval_task("xfail", tags=TAGS)
async def test_xfail(lm):
    pytest.xfail("known")


@eval_task("fail", tags=TAGS)
async def test_fail(lm):
    pytest.fail("in so many words")


@eval_task("group", tags=TAGS)
async def test_group(lm):
    async def skips():
        pytest.skip("from a group")

    async with asyncio.TaskGroup() as group:
        group.create_task(skips())


@eval_task("nan", tags=TAGS)
async def test_nan(lm):
    with contextlib.suppress(Exception):
        lm.score("ok", float("nan"))


@eval_task("twice", tags=TAGS)
async def test_twice(lm):
    lm.score("ok", 1)
    lm.score("ok", True)
    lm.score("ok", 0)


@eval_task("caught", tags=TAGS)
async def test_caught(lm):
    lm.score("ok", 1)
    with contextlib.suppress(Exception):
        await lm.ask("raise")


@eval_task("allowed", tags=TAGS)
async def test_allowed(lm):
    try:
        await lm.ask("raise", may_fail=True)
    except Exception as error:
        lm.score("ok", "no answer" in str(error))


@eval_task("none", tags=TAGS)
async def test_none(lm):
    for wrong in "":
        assert not wrong


@eval_task("named", tags=TAGS)
async def test_named(lm):
    await asyncio.sleep(0)
    lm.score("ok", 1)


@eval_task("rows", data=rows("right", "wrong"), tags=TAGS)
async def test_row(row, lm):
    lm.score("ok", (await lm.ask("say: right")).text == row["id"])
    lm.score("more", 0.25)


@eval_task("blocking", threads=True, data=rows("a", "b"))
def test_blocking(row, lm):
    lm.score("ok", lm.ask("say: " + row["id"]).text == row["id"])


@eval_task("slow", timeout=0.2)
async def test_slow(lm):
    await asyncio.sleep(60)


@eval_task("slow thread", timeout=0.2)
def test_slow_thread(lm):
    time.sleep(2)  # nothing ends a thread before its time


@pytest.mark.parametrize("n", [1, 2])
@eval_task("parameters")
async def test_parameters(n, lm):
    lm.score("small", n < 2)


class TestClass:
    @eval_task("method", data=rows("m"))
    async def test_method(self, row, lm):
        assert isinstance(self, TestClass)


@eval_task("no lm", data=rows("x"))
async def test_no_lm(row):
    assert row["id"] == "x"


def test_plain(lm):
    assert lm.ask("say: 1").text == "1"


def test_without():
    assert True
