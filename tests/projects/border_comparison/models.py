# ``Good`` is right of all, ``Fair`` but for the last two; the others do what they are called.

import asyncio
import math

from pytest_lmeval import Completion


class Good:
    name = "good.v1"

    def __init__(self, api_key=""):
        self.options = {"api_key": api_key}

    async def complete(self, request):
        return self.answer(int(request.text.rpartition("say: ")[2]))

    def answer(self, number):
        return str(number)


class Fair(Good):
    def answer(self, number):
        return str(number) if number < 10 else "?"


class Down(Good):
    def answer(self, number):
        raise RuntimeError("it is down")


class Empty(Good):
    def answer(self, number):
        return ""


class Number(Good):
    def answer(self, number):
        return number


class Early(Good):
    def answer(self, number):
        return str(number) if number < 10 else None


class Rest(Good):
    def answer(self, number):
        return str(number) if number > 1 else None


class Dear(Good):
    def answer(self, number):
        return Completion(str(number), cost=math.nan if number > 5 else 1.0)


class Partly(Good):
    def answer(self, number):
        return Completion(str(number), cost=0.01 if number == 0 else None)


class Halves(Good):
    told = True

    def answer(self, number):
        self.told = not self.told
        return Completion(str(number), cost=0.01 if self.told else None)


class Late(Good):
    def answer(self, number):
        raise TimeoutError("too late")


class Cancelled(Good):
    def answer(self, number):
        raise asyncio.CancelledError


class Stopped(Good):
    def answer(self, number):
        raise KeyboardInterrupt
