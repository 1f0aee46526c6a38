"""Models whose requests have a price, of which some are dearer than the first."""

from __future__ import annotations

import asyncio
import itertools

from pytest_lmeval.types import Completion, Generate


class Dearer:
    """Answers for 0.01 as often as ``cheap`` says, then for ``price``, and notes what it took."""

    name = "dearer"

    def __init__(self, cheap: int, price: float) -> None:
        self._prices = itertools.chain([0.01] * cheap, itertools.repeat(price))

    def _answer(self) -> Completion:
        price = next(self._prices)
        with open("spent.txt", "a") as file:
            file.write(f"{price}\n")
        return Completion("yes", cost=price, prompt_tokens=1)


class Async(Dearer):
    async def complete(self, request: Generate) -> Completion:
        answer = self._answer()
        await asyncio.sleep(0.005)
        return answer


class Batch(Dearer):
    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        return [self._answer() for _ in requests]


def soon() -> Async:
    return Async(5, 1.0)


def late() -> Async:
    return Async(19, 5.0)


def late_batch() -> Batch:
    return Batch(19, 5.0)


def even() -> Async:
    return Async(0, 0.15)


def even_batch() -> Batch:
    return Batch(0, 0.15)
