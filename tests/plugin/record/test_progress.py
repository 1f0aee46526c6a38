"""A run that waits for its model says so: in place on a terminal, in a plain line now and then elsewhere."""

from __future__ import annotations

import os
import pty
import sys
from typing import TYPE_CHECKING

from pytest_lmeval.plugin.record.progress import describe
from tests.conftest import NEEDLESS

if TYPE_CHECKING:
    from tests.conftest import Project

SLOW = """
import asyncio

class Slow:
    name = "slow"

    async def complete(self, request):
        await asyncio.sleep(0.8)
        return request.text.removeprefix("say: ")
"""
OFTEN = """
from pytest_lmeval.plugin.record import progress

progress._PLAIN_EVERY_S = progress._TERMINAL_EVERY_S = 0.1
"""


def _write_tasks(project: Project) -> None:
    project.write("slow.py", SLOW)
    project.write("conftest.py", OFTEN)
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "x") for number in range(4)])


def test_where_no_terminal_is_a_plain_line_tells_what_the_run_waits_for(project: Project) -> None:
    _write_tasks(project)
    result = project.run_pytest("--lm-adapter=slow:Slow", "--lm-concurrency=2")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["lmeval: 0 of 4 examples, 2 in flight*"])
    assert "\x1b" not in result.stdout.str()


def test_a_run_that_does_not_wait_says_nothing(project: Project) -> None:
    project.small_tasks()
    result = project.run()

    result.stdout.no_fnmatch_line("lmeval: * of * examples*")


def test_on_a_terminal_the_line_stands_below_the_dots_and_is_taken_away(project: Project) -> None:
    _write_tasks(project)
    ours, theirs = pty.openpty()
    quick = [f"-pno:{name}" for name in NEEDLESS]
    command = [sys.executable, "-mpytest", *quick, "--lm-adapter=slow:Slow", "--lm-concurrency=2"]
    with open(theirs, "w") as terminal:
        process = project.pytester.popen(command, stdout=terminal, stderr=terminal)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so at the end
            break
        if not piece:
            break
        shown += piece
    os.close(ours)

    assert 0 == process.wait()
    below = b"\x1b7\x1b[1B\r\x1b[2K"
    assert below + b"lmeval: 0 of 4 examples, 2 in flight" in shown
    assert shown.rindex(below + b"\x1b8") > shown.rindex(below + b"lmeval: ")


def test_the_line_has_rate_tokens_cost_and_time_left() -> None:
    usage = {"prompt_tokens": 400.0, "completion_tokens": 800.0, "cost": 0.5}

    expected = "lmeval: 50 of 200 examples, 16 in flight, 5.0/s, 1,200 tokens, cost 0.5000, about 30 s left"
    assert expected == describe(50, 200, 16, 10.0, usage)
    assert "lmeval: 0 of 9 examples, 0.0/s" == describe(0, 9, None, 4.0, {})
    assert describe(10, 10_000, None, 10.0, {}).endswith("about 2.8 h left")
