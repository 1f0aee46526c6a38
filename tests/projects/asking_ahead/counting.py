import asyncio
import os

from pytest_lmeval import Completion

asked = scored = most = least = 0


def count_asked(number):
    global asked, most
    asked += number
    most = max(most, asked - scored)


def count_scored(prediction, targets, extras):
    global scored
    scored += 1
    return 1.0


def pytest_lmeval_register(registry):
    registry.add_metric("counted", count_scored)


class Batch:
    name = "batch.v1"

    def generate(self, prompts):
        count_asked(len(prompts))
        return list(prompts)

    def close(self):
        with open(os.path.join(os.path.dirname(__file__), "most.txt"), "w") as file:
            file.write(f"{asked} {scored} {most}")


class Async(Batch):
    generate = None  # type: ignore[assignment]  # it has complete in its place

    async def complete(self, request):
        count_asked(1)
        await asyncio.sleep(0)
        return Completion("x")
