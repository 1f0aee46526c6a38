import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

path = Path(__file__).with_name("fault.json")
is_planted = path.exists() and "PYTEST_XDIST_WORKER" not in os.environ
FAULT: dict = json.loads(path.read_text()) if is_planted else {"when": None}
state = {"is_dead": False, "calls": 0}


def die():
    if state["is_dead"]:
        return
    state["is_dead"] = True
    kind = FAULT["kind"]
    if kind == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "os._exit in two threads":
        threading.Thread(target=os._exit, args=(0,)).start()
    if kind.startswith("os._exit"):
        os._exit(0)
    if kind == "sys.exit":
        sys.exit(0)
    if kind == "pytest.exit":
        pytest.exit("enough", 0)
    if kind == "Ctrl-C":
        raise KeyboardInterrupt
    raise RuntimeError("broken")


class Torn:
    def __init__(self, file):
        self.file = file

    def write(self, data):
        if not state["is_dead"]:
            self.file.write(data[: len(data) // 2])
            die()
        return self.file.write(data)

    def close(self):
        self.file.close()


def patch(when, place, number):
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    original = getattr(owner, name)

    def reaching(*args, **kwargs):
        state["calls"] += 1
        is_here = state["calls"] == number
        if is_here and when == "torn":
            args[0]._file = Torn(args[0]._file)
        if is_here and when == "before":
            die()
        result = original(*args, **kwargs)
        if is_here and when == "after":
            die()
        return result

    setattr(owner, name, reaching)


if FAULT["when"] == "hook":
    globals()[FAULT["place"]] = lambda: die()
elif FAULT["when"]:
    patch(FAULT["when"], FAULT["place"], FAULT["number"])
if FAULT["when"] and FAULT["kind"] == "os._exit twice":
    # The second time it is what winds the run up that calls it.
    from pytest_lmeval.plugin.record import report_files

    markdown = vars(report_files)["markdown"]
    vars(report_files)["markdown"] = lambda board: os._exit(0) if state["is_dead"] else markdown(board)
