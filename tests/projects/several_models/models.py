# ``Weak`` does not know the numbers from 3 on, ``Down`` answers nothing at all.

import asyncio

from pytest_lmeval import Completion


class Good:
    name = "good.v1"

    def __init__(self, style=""):
        self.options = {"style": style}

    def generate(self, prompts):
        return [self.answer(prompt.rpartition("say: ")[2]) for prompt in prompts]

    def answer(self, said):
        return said + self.options["style"]


class Weak(Good):
    name = "weak.v1"

    def answer(self, said):
        return said if int(said) < 3 else "?"


class Down(Good):
    name = "down.v1"

    def answer(self, said):
        raise RuntimeError("it is down")


class Dying(Good):
    name = "dying.v1"
    answered = 0

    def answer(self, said):
        Dying.answered += 1
        if Dying.answered > 5:
            raise RuntimeError("it went down")
        return said


class Dear(Good):
    name = "dear.v1"

    def generate_requests(self, requests):
        return [Completion(one.text.rpartition("say: ")[2], cost=1.0) for one in requests]


class Slow:
    name = "slow.v1"
    running = most = 0

    async def complete(self, request):
        Slow.running += 1
        Slow.most = max(Slow.most, Slow.running)
        await asyncio.sleep(0.05)
        Slow.running -= 1
        return Completion(str(Slow.most))
