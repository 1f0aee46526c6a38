"""A run that waits for its model says so: in place on a terminal, in a plain line now and then elsewhere."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.plugin.record.progress import describe
from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, says, serving, status
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

progress._PLAIN_EVERY_S = progress._TERMINAL_EVERY_S = progress._WORTH_SAYING_S = 0.1
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
    shown = _shown_on_terminal(project, "--lm-adapter=slow:Slow", "--lm-concurrency=2")

    below = b"\x1b7\x1b[1B\r\x1b[2K"
    assert below + b"lmeval: 0 of 4 examples, 2 in flight" in shown
    assert shown.rindex(below + b"\x1b8") > shown.rindex(below + b"lmeval: ")


async def _late(exchange: Exchange) -> None:
    await asyncio.sleep(3)  # longer than the controller waits for a word from its workers
    await says("x")(exchange)


def _slow_server(project: Project, server: ScriptedServer) -> list[str]:
    project.write("conftest.py", OFTEN)
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "x") for number in range(3)])
    options = {"base_url": server.base_url, "api_key_env": "''"}
    given = [part for name, value in options.items() for part in ("--lm-adapter-arg", f"{name}={value}")]
    return ["--lm-adapter=openai:m", "--lm-concurrency=1", "--lm-max-errors=1", *given]


def test_while_a_server_is_slow_a_log_has_lines_with_errors(project: Project) -> None:
    with serving([status(400), _late]) as server:
        result = project.run_pytest(*_slow_server(project, server), "-n2")

    assert 0 == result.ret, result.outlines
    result.stdout.fnmatch_lines(["lmeval: 1 of 3 examples, 1 error, */s*; for ? s in tasks/t.jsonl::e?"])
    assert "\x1b" not in result.stdout.str()


@pytest.mark.again
def test_while_a_server_is_slow_a_terminal_has_a_line_with_errors(project: Project) -> None:
    with serving([status(400), _late]) as server:
        shown = _shown_on_terminal(project, *_slow_server(project, server), "-n0")

    assert b"\x1b[2Klmeval: 1 of 3 examples, 1 error, " in shown


def _shown_on_terminal(project: Project, *options: str) -> bytes:
    """Return what a run that passes writes to a terminal."""
    ours, theirs = pty.openpty()
    quick = [f"-pno:{name}" for name in NEEDLESS]
    with open(theirs, "w") as terminal:
        command = [sys.executable, "-mpytest", *quick, *options]
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
    assert 0 == process.wait(), shown.decode()
    return shown


def test_the_line_has_errors_rate_tokens_cost_and_time_left() -> None:
    usage = {"prompt_tokens": 400.0, "completion_tokens": 800.0, "cost": 0.5}

    figures = "5.0/s, 1,200 tokens, cost 0.5000, about 30 s left"
    assert f"lmeval: 50 of 200 examples, 1 error, 16 in flight, {figures}" == describe(50, 200, 1, 16, 10.0, usage)
    assert "lmeval: 0 of 9 examples, 0.0/s" == describe(0, 9, 0, None, 4.0, {})
    assert describe(10, 10_000, 0, None, 10.0, {}).endswith("about 2.8 h left")
