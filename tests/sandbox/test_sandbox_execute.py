"""``execute_code``: one call, one result."""

from __future__ import annotations

import pytest

from pytest_lmeval.sandbox import ExecutionResult, Sandbox, best_level, execute_code


def test_a_program_that_ends_is_a_success() -> None:
    assert ExecutionResult(True, "hello\n", "") == execute_code("print('hello')")


def test_a_sandbox_may_be_given(process: Sandbox) -> None:
    code = "import os; print(os.path.exists('/proc/self/status') and len(open('/proc/self/status').read()) > 0)"

    assert ExecutionResult(True, "True\n", "") == execute_code(code, sandbox=process)


@pytest.mark.skipif(best_level() != "confined", reason="needs the level confined")
def test_the_best_level_is_used_by_default() -> None:
    result = execute_code("open('/proc/self/status')")

    assert (False, True) == (result.success, "(the sandbox denies it)" in (result.error or ""))


def test_an_exception_is_an_error_with_its_traceback_in_stderr() -> None:
    result = execute_code("print('hello')\n1/0")

    assert (False, "hello\n") == (result.success, result.stdout)
    assert "ZeroDivisionError: division by zero" == result.error
    assert 'File "<program>", line 2' in result.stderr
    assert "host.py" not in result.stderr
    assert not result.timeout
    assert not result.memory_exceeded


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(600)"])
def test_a_program_without_end_times_out(code: str) -> None:
    result = execute_code(code, timeout=0.3)

    assert (False, "Execution timed out", True) == (result.success, result.error, result.timeout)


def test_too_much_memory_is_told_apart() -> None:
    result = execute_code("x = bytearray(10**9)", maximum_memory_bytes=128 << 20)

    assert (False, True) == (result.success, result.memory_exceeded)
    assert result.error is not None
    assert result.error.startswith("Memory limit exceeded: MemoryError")


def test_without_a_memory_limit_there_is_none() -> None:
    # Memory that is asked for and not written to costs nothing.
    code = "import mmap; mmap.mmap(-1, 600 << 20)"

    assert execute_code(code, maximum_memory_bytes=None).success
    assert not execute_code(code).success


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("exit()", "SystemExit: 0"),
        ("raise SystemExit('bad')", "SystemExit: bad"),
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("def f(:", "SyntaxError: invalid syntax (<program>, line 1)"),
    ],
)
def test_a_program_that_does_not_reach_its_end_is_no_success(code: str, error: str) -> None:
    assert (False, error) == ((result := execute_code(code)).success, result.error)
