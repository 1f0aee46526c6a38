import asyncio
import threading

from pytest_lmeval import eval_task

running: list[str] = []
has_failed = asyncio.Event()


def check():
    raise AssertionError("assert 'x' == 'right'")


@eval_task("together", data=[{"id": "a"}, {"id": "b"}])
async def test_together(row, lm):
    running.append(row["id"])
    while len(running) < 2:
        await asyncio.sleep(0.01)
    if row["id"] == "a":
        thread = threading.Thread(target=check, name="checker")
        thread.start()
        thread.join()
        has_failed.set()
    await has_failed.wait()
    lm.score("ok", True)
