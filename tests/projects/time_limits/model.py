# Every model does what the prompt says, and answers with it if that comes to an end.

import asyncio
import os
import sys
import time

from pytest_lmeval import Completion


class Strange(BaseException):
    pass


class Batch:
    name = "batch.v1"

    def generate(self, prompts):
        if "hangs in C" in prompts:
            time.sleep(600)
        if "exits" in prompts:
            sys.exit(3)
        if "raises strangely" in prompts:
            raise Strange("boo")
        return list(prompts)


class Async:
    name = "async.v1"

    async def complete(self, request):
        if request.prompt == "hangs":
            await asyncio.sleep(600)
        if request.prompt == "hangs and ignores cancellation":
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass
        if request.prompt == "blocks the loop":
            time.sleep(600)
        if request.prompt == "exits":
            sys.exit(3)
        if request.prompt == "raises strangely":
            raise Strange("boo")
        if request.prompt == "cancels itself":
            raise asyncio.CancelledError
        if request.prompt == "hangs once" and not os.path.exists("hung"):
            open("hung", "w").close()
            await asyncio.sleep(600)
        return Completion(request.prompt)
