"""Functions that cannot be tools."""

import asyncio

from pytest_lmeval import eval_task


def one():
    return 1


def numbers():
    yield 1


async def later():
    yield 1


def pair():
    return (1, 2)


def by_number():
    return {1: 2}


def endless():
    return float("nan")


def takes(value):
    return 1


def large():
    return "a" * (1 << 21)


async def sleeps():
    await asyncio.sleep(60)


def wrapped():
    return asyncio.sleep(0)


def other():
    def one():
        return 2

    return one


CASES = {
    "number": lambda lm: lm.tool(5),
    "generator": lambda lm: lm.tool(numbers),
    "async generator": lambda lm: lm.tool(later),
    "lambda": lambda lm: lm.tool(lambda: 1),
    "same name": lambda lm: (lm.tool(one), lm.tool(one), lm.tool(other())),
    "tuple": lambda lm: lm.tool(pair)(),
    "keys": lambda lm: lm.tool(by_number)(),
    "nan": lambda lm: lm.tool(endless)(),
    "awaitable": lambda lm: lm.tool(wrapped)(),
    "object": lambda lm: lm.tool(takes)(object()),
    "large": lambda lm: lm.tool(large)(),
    "plain": lambda lm: lm.ask("say: 1", tools=[one]),
    "left": lambda lm: lm._left.append(asyncio.ensure_future(lm.tool(sleeps)())),
}


@eval_task("cases", data=[{"id": name} for name in CASES])
async def test_case(row, lm):
    lm._left = []
    try:
        made = CASES[row["id"]](lm)
        if asyncio.iscoroutine(made):
            await made
        await asyncio.sleep(0)
    except Exception:
        if row["id"] == "plain":
            raise
    lm.score("ok", 1)
