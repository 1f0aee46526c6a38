import threading

from pytest_lmeval import eval_task

ROWS = [{"id": "a"}, {"id": "b"}]


def check():
    raise AssertionError("assert 'x' == 'right'")


def leave():
    raise SystemExit(1)


def run_in_thread():
    thread = threading.Thread(target=check, name="checker")
    thread.start()
    thread.join()


@eval_task("async", data=ROWS)
async def test_async(row, lm):
    if row["id"] == "a":
        run_in_thread()
    lm.score("ok", True)


@eval_task("in-threads", data=ROWS, threads=True)
def test_in_threads(row, lm):
    if row["id"] == "a":
        run_in_thread()
    lm.score("ok", True)


@eval_task("plain", data=ROWS)
def test_plain(row, lm):
    if row["id"] == "a":
        run_in_thread()
    lm.score("ok", True)


@eval_task("ended", data=ROWS)
def test_ended(row, lm):
    thread = threading.Thread(target=leave, name="leaver")
    thread.start()
    thread.join()
    assert not thread.is_alive()
