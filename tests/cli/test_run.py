"""``lmeval run``: whatever a project's hooks do to the process, without a whole board the exit code is not 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import NEEDLESS

if TYPE_CHECKING:
    from tests.conftest import Project

# The plugin replaces os._exit; who has taken hold of it before, or ends the process otherwise, is not stopped by that.
END = "import os, signal, sys\nfrom os import _exit\ndef {hook}: {how}\n"
OFF = [f"-pno:{name}" for name in NEEDLESS]
AFTER_TWO = "pytest_runtest_logfinish(nodeid)"
AT_END = "pytest_unconfigure(config)"
ENDS = {
    "_exit after an example": (AFTER_TWO, "_exit(0)", 3),
    "another program": (AFTER_TWO, "os.execv('/bin/true', ['true'])", 3),
    "killed": (AFTER_TWO, "os.kill(os.getpid(), signal.SIGKILL)", 137),
    "sys.exit in a hook": ("pytest_runtest_logreport(report)", "sys.exit(0)", 3),
    "before collecting": ("pytest_configure(config)", "_exit(0)", 3),
    "after the board": (AT_END, "_exit(0)", 1),
    "sys.exit at the end": (AT_END, "sys.exit(0)", 1),
    "nothing": (AT_END, "pass", 1),
}
ALWAYS = ("_exit after an example", "after the board")


@pytest.mark.parametrize("name", [pytest.param(e, marks=[] if e in ALWAYS else pytest.mark.again) for e in ENDS])
def test_whoever_ends_the_process_a_run_that_failed_or_was_cut_short_is_not_green(project: Project, name: str) -> None:
    hook, how, expected = ENDS[name]
    project.task("tasks/t.jsonl", project.record("right", "a"), project.record("wrong", "a", target="b"))
    project.write("conftest.py", END.format(hook=hook, how=how))
    assert expected == project.lmeval("run", *project.usual, *OFF).ret


def test_a_run_that_is_right_is_green_and_one_without_an_eval_is_not(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("right", "a"))
    project.write("test_plain.py", "def test_plain(): pass\n")
    assert 0 == project.lmeval("run", "tasks", *project.usual, *OFF).ret
    ended = project.lmeval("run", "test_plain.py", *OFF)
    assert 3 == ended.ret
    assert "wrote no board: no eval ran, or the process was killed" in ended.stderr.str()
