# Adds a line to asked.txt for every call before it answers: the round it is asked in and what it was asked for.

import asyncio
import json
import os
import time

from pytest_lmeval import AdapterError, Completion


class Batch:
    name = "slowish.v1"

    def __init__(self, style="plain", pause=0.0):
        self.pause = pause

    def note(self, requests):
        keys = [[request.task, request.id, request.repeat] for request in requests]
        line = json.dumps([os.environ.get("ROUND", ""), keys]) + "\n"
        log = os.open(os.path.join(os.path.dirname(__file__), "asked.txt"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(log, line.encode())
        os.close(log)

    def answer(self, request):
        text = request.prompt.rpartition("say: ")[2]
        broken = os.path.exists(os.path.join(os.path.dirname(__file__), "broken"))
        return AdapterError("broken") if broken and text.startswith("frail") else Completion(text, latency_ms=1.5)

    def generate_requests(self, requests):
        self.note(requests)
        time.sleep(self.pause)
        return [self.answer(request) for request in requests]


class Other(Batch):
    name = "other.v1"


class Async:
    name = "slowish.v1"

    def __init__(self, **options):
        self.batch = Batch(**options)

    async def complete(self, request):
        self.batch.note([request])
        await asyncio.sleep(self.batch.pause)
        return self.batch.answer(request)
