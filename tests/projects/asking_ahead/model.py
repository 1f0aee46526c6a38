# What the models saw and did stands in events.txt, one JSON array a line: what happened, the process, a detail.

import asyncio
import json
import os
import signal
import time

from pytest_lmeval import Completion
from pytest_lmeval.asking import pacing

HERE = os.path.dirname(__file__)


def note(*event):
    log = os.open(os.path.join(HERE, "events.txt"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(log, (json.dumps([event[0], os.getpid(), *event[1:]]) + "\n").encode())
    os.close(log)


class Batch:
    name = "batch.v1"

    def generate(self, prompts):
        note("batch", prompts)
        open(os.path.join(HERE, "begun-" + prompts[0].rpartition(" ")[2]), "w").close()
        return [prompt.rpartition("say: ")[2] for prompt in prompts]


class Crowd:
    """Lets nobody go before ``wanted`` requests are in flight."""

    name = "crowd.v1"

    def __init__(self, wanted):
        pacing.ALONE_S = 0.01  # the first request waits for the others
        self.wanted, self.in_flight, self.peak = wanted, 0, 0
        self.deadline = None

    async def complete(self, request):
        self.deadline = self.deadline or time.monotonic() + 120
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        while self.peak < self.wanted and time.monotonic() < self.deadline:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        return Completion(request.prompt.rpartition("say: ")[2])

    def close(self):
        note("peak", self.peak)


class Slow:
    """Answers at once what is to be answered wrongly, and the rest after a second."""

    name = "slow.v1"

    async def complete(self, request):
        note("asked", request.id)
        text = request.prompt.rpartition("say: ")[2]
        await asyncio.sleep(0 if text == "wrong" else 1)
        return Completion(text)


class Stuck:
    """Answers two requests, and no more."""

    name = "stuck.v1"
    answered = 0

    async def complete(self, request):
        note("asked", request.id)
        self.answered += 1
        await asyncio.sleep(0 if self.answered <= 2 else 600)
        return Completion(request.prompt.rpartition("say: ")[2])


class Gauge:
    name = "gauge.v1"
    in_flight = 0

    async def complete(self, request):
        self.in_flight += 1
        note("asked", request.id, self.in_flight)
        await asyncio.sleep(0.02)
        self.in_flight -= 1
        return Completion(request.prompt.rpartition("say: ")[2])


class Mortal:
    name = "mortal.v1"

    async def complete(self, request):
        note("asked", request.id)
        await asyncio.sleep(0.01)
        if request.id == "e12" and not os.path.exists(os.path.join(HERE, "died")):
            open(os.path.join(HERE, "died"), "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return Completion(request.prompt.rpartition("say: ")[2])
