"""A model that takes a second for what begins with slow, and says no of politeness."""

import asyncio

from pytest_lmeval import Completion


class Model:
    name = "stub.v1"

    async def complete(self, request):
        if request.text.startswith("slow"):
            await asyncio.sleep(1)
        return Completion("no" if "polite" in request.text else "yes")
