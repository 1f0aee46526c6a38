"""MBPP as published: https://github.com/google-research/google-research/tree/master/mbpp."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import program_task, text_of, write_programs

_INSTRUCTION = "Reply with the whole program, imports and helper functions included, in one python code block."


def convert_mbpp(source: Path, destination: Path) -> list[Path]:
    """Write ``mbpp.jsonl`` and the solutions of the data set as ``canonical.replay.jsonl``; return the two paths.

    ``source`` is ``mbpp.jsonl``: per line ``task_id``, ``text``, ``code``, ``test_setup_code`` and ``test_list``. The
    prompt shows all tests, since they say what the function is called. Raises UsageError for anything else, and for
    files that would be replaced.
    """
    return write_programs(
        source, destination, "mbpp", lambda record, place: (_task_record(record, place), _code(record, "code", place))
    )


def _task_record(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    number, tests = record.get("task_id"), record.get("test_list")
    if type(number) is not int:
        raise UsageError(f"{place}: 'task_id' must be a number, got {number!r:.80}")
    if not isinstance(tests, list) or not tests or not all(isinstance(test, str) for test in tests):
        raise UsageError(f"{place}: 'test_list' must be a list of strings, got {tests!r:.80}")
    name = _entry_point(_code(record, "code", place), "\n".join(tests), place)
    setup = _code(record, "test_setup_code", place)
    # The tests call the function by its name.
    body = [f"{name} = candidate", *(line for test in tests for line in test.strip().splitlines())]
    check = "\n".join(["def check(candidate):", *(f"    {line}" for line in body)])
    lines = [text_of(record, "text", place).strip(), "It passes these tests:", "", *tests, "", _INSTRUCTION]
    return program_task(f"mbpp-{number:03}", "\n".join(lines), f"{setup}\n{check}\n".lstrip(), name)


def _entry_point(code: str, tests: str, place: str) -> str:
    """Return the function of the solution that the tests call first."""
    try:
        defined = {node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)}
        called = [name for name in _called(tests) if name in defined]
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{place}: 'code' or 'test_list' is not Python: {error}") from None
    if not called:
        raise UsageError(f"{place}: 'test_list' calls no function of 'code'")
    return called[0]


def _called(tests: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _code(record: Mapping[str, Any], key: str, place: str) -> str:
    return text_of(record, key, place).replace("\r\n", "\n")
