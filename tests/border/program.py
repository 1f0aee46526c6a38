"""A program that a model wrote says nothing that is believed: its values are compared, and its end is told."""

from __future__ import annotations

import json

from pytest_lmeval.sandbox import best_level
from tests.border.table import Border, Row

FRONTS = ("terminal", "board", "page")


def _program(name: str, program: str, target: str = "f() == 2") -> dict[str, str]:
    """Return a task file whose one example the model answers with ``program``."""
    record = {
        "task_id": "e",
        "category": "code_exec",
        "prompt": f"say: {program}",
        "targets": [target],
        "metric_name": "code_exec",
        "post_process": "extract_code_block",
    }
    return {f"tasks/{name}.jsonl": json.dumps(record) + "\n"}


def _row(kind: str, what: str, name: str, program: str, says: str) -> Row:
    """Return a row of the shared run: a program that scores nothing, and why."""
    return Row(
        kind=kind,
        what=what,
        fate="reported",
        files=_program(name, program),
        example=f"{name}:e",
        status="failed",
        score=0.0,
        says=says,
        on=FRONTS,
    )


LATE = "import threading, time\ndef f():\n    threading.Thread(target=lambda: print('later')).start()\n    return 2"
TWICE = "def f():\n    return 3\ndef f():\n    return 2"
LEFT = """
import os
def f():
    found = [each for each in os.listdir(".") if each == "left"]
    open("left", "w").close()
    return found
"""
BORDER = Border(
    name="a program in the sandbox",
    # Where the kernel has no more, the borders are the same at the level process.
    arguments=("--lm-adapter=model:Model", f"--lm-sandbox={best_level()}"),
    files={"beside_it.py": "TWO = 2\n"},
    code=1,
    rows=(
        _row("absent", "no function of that name", "absent", "def g(): return 2", "NameError: name 'f' is not defined"),
        _row("empty", "a program without a statement", "empty", "# nothing", "NameError: name 'f' is not defined"),
        _row("wrong type", "a text for a number", "text", "def f(): return '2'", "f() == 2 does not hold: f() is"),
        _row(
            "too large",
            "an answer of 5 MiB",
            "large",
            "def f(): return 'x' * 5_000_000",
            "UnfitError: more than 4194304 bytes as JSON",
        ),
        _row(
            "not finite or negative",
            "not a number",
            "nan",
            "def f(): return float('nan')",
            "f() == 2 does not hold: f() is nan",
        ),
        Row(
            kind="control characters",
            what="orders and half a character in what it raises",
            fate="reported",
            files=_program("orders", "def f(): raise ValueError('\\x1b[2J\\udc80##[error]p')"),
            example="orders:e",
            status="failed",
            score=0.0,
            says="ValueError: \\x1b[2J\\udc80\\x23#[error]p",
            on=("terminal",),
        ),
        Row(
            kind="twice",
            what="two definitions of one name: the last one counts, as in Python",
            files=_program("twice", TWICE),
            example="twice:e",
            status="passed",
            score=1.0,
        ),
        Row(
            kind="late",
            what="a thread that goes on after the answer",
            files=_program("late", LATE),
            example="late:e",
            status="passed",
            score=1.0,
        ),
        Row(kind="out of order", never="a program is asked one thing at a time, and its frames have one pipe"),
        _row(
            "cancelled", "a program that ends itself", "ends", "import os\ndef f(): os._exit(0)", "exited with status 0"
        ),
        _row("raising", "an exception that is no Exception", "raises", "def f(): raise SystemExit(2)", "SystemExit"),
        Row(
            kind="secret",
            what="a key in the environment of the run",
            fate="reported",
            files=_program("secret", "import os\ndef f(): raise ValueError(f'key: {os.environ.get(\"MY_KEY\")}')"),
            environment={"MY_KEY": "sk-of-the-run-0123456789", "MY_MODE": "test"},
            example="secret:e",
            status="failed",
            says="key: None",
            unsaid="sk-of-the-run",
            on=FRONTS,
        ),
        _row(
            "beside",
            "a module of the project, whose run it is",
            "module",
            "import beside_it\ndef f(): return beside_it.TWO",
            "ModuleNotFoundError: No module named 'beside_it'",
        ),
        _row(
            "environment",
            "a variable of the run, which is no secret",
            "variable",
            "import os\ndef f(): return os.environ['MY_MODE']",
            "KeyError: 'MY_MODE'",
        ),
        Row(
            kind="changed unseen", never="a program is a model's answer: what changed of that is told as of any answer"
        ),
        Row(
            kind="earlier run",
            what="a file that a program leaves in its folder",
            files=_program("left", LEFT.strip(), "f() == []") | _program("left_again", LEFT.strip(), "f() == []"),
            example="left_again:e",
            status="passed",
            score=1.0,
        ),
        Row(kind="kept client", never="a program is told no address of the run's endpoint, so that it has no client"),
        _row(
            "same name", "a module of the standard library's name", "json", "import json\njson = 2\nf = 2", "TypeError"
        ),
    ),
)
