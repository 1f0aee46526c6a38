"""A model that holds some answers back, and says no of politeness."""

import asyncio
import threading

from pytest_lmeval import Completion

RELEASED = threading.Event()


class Model:
    name = "stub.v1"

    async def complete(self, request):
        while request.text == "held" or (request.text == "held until released" and not RELEASED.is_set()):
            await asyncio.sleep(0.01)
        return Completion("no" if "polite" in request.text else "yes")
