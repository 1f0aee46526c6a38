"""Code that a task runs while it scores goes to the run's own sandbox."""

from __future__ import annotations

from pytest_lmeval.sandbox import Limits, Run, open_sandbox
from pytest_lmeval.tasks import execute_code
from pytest_lmeval.tasks.execution import running_code_in


class Refusing:
    """Counts what it is asked to run."""

    def __init__(self) -> None:
        self.limits: list[Limits] = []

    def script(self, program: str, limits: Limits) -> Run:
        self.limits.append(limits)
        return Run("timeout")


def test_while_a_task_is_scored_its_code_goes_to_the_sandbox_of_the_run() -> None:
    sandbox = Refusing()
    with running_code_in(sandbox):
        result = execute_code("1 / 0", timeout=2.0, maximum_memory_bytes=1 << 28)

    assert [2.0, 1 << 28] == [sandbox.limits[0].cpu_s, sandbox.limits[0].memory_bytes]
    assert [False, True] == [result.success, result.timeout]


def test_elsewhere_it_runs_too_and_what_was_set_is_forgotten() -> None:
    sandbox = Refusing()
    with running_code_in(sandbox):
        pass
    result = execute_code("print('hello'); 1 / 0")

    assert [] == sandbox.limits
    assert [False, "hello\n"] == [result.success, result.stdout]
    assert "ZeroDivisionError" in (result.error or "")


def test_a_real_sandbox_of_a_named_level_serves() -> None:
    with open_sandbox("process") as sandbox, running_code_in(sandbox):
        assert execute_code("assert 1 + 1 == 2").success
