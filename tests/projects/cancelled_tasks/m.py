import asyncio

from pytest_lmeval import Completion


class Model:
    asked = 0

    async def complete(self, request):
        Model.asked += 1
        await asyncio.sleep(0)
        return Completion("4")


class Cancels(Model):
    async def complete(self, request):
        if Model.asked == 2:
            for task in asyncio.all_tasks():
                task.cancel()
        return await super().complete(request)


class Stops(Model):
    async def complete(self, request):
        if Model.asked == 2:
            asyncio.get_running_loop().stop()
        return await super().complete(request)


class Exits(Model):
    async def complete(self, request):
        if Model.asked == 2:

            async def leave():
                raise SystemExit(0)

            asyncio.get_running_loop().create_task(leave())
        return await super().complete(request)
