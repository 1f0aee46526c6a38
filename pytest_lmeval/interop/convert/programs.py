"""Convert the published programming tasks of HumanEval and MBPP.

https://github.com/openai/human-eval, https://github.com/google-research/google-research/tree/master/mbpp
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import NewFiles, check_new, encode_lines, read_records, text_of

_BACKTICKS = re.compile("`+")
_COMPLETE = (
    "Complete the last function of this Python program. Reply with the whole program, imports and helper functions "
    "included, in one python code block."
)
_REPLY = "Reply with the whole program, imports and helper functions included, in one python code block."


def convert_humaneval(source: Path, destination: Path) -> list[Path]:
    """Write ``humaneval.jsonl`` and the canonical solutions as ``canonical.replay.jsonl``; return the two paths.

    ``source`` is ``HumanEval.jsonl``, or ``.jsonl.gz``; each line has ``task_id``, ``prompt``, ``entry_point``,
    ``canonical_solution`` and ``test``.
    """
    return _write_programs(source, destination, "humaneval", _humaneval)


def _humaneval(record: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    beginning = text_of(record, "prompt", place)
    tests, entry_point = text_of(record, "test", place), text_of(record, "entry_point", place)
    task = _program_task(text_of(record, "task_id", place), f"{_COMPLETE}\n\n{beginning}", tests, entry_point)
    return task, beginning + text_of(record, "canonical_solution", place)


def convert_mbpp(source: Path, destination: Path) -> list[Path]:
    """Write ``mbpp.jsonl`` and the data set's solutions as ``canonical.replay.jsonl``; return the two paths.

    ``source`` is ``mbpp.jsonl``; each line has ``task_id``, ``text``, ``code``, ``test_setup_code`` and ``test_list``.
    The prompt shows all tests, since the tests name the function.
    """
    return _write_programs(
        source, destination, "mbpp", lambda record, place: (_mbpp(record, place), _code(record, "code", place))
    )


def _mbpp(record: Mapping[str, Any], place: str) -> dict[str, Any]:
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
    lines = [text_of(record, "text", place).strip(), "It passes these tests:", "", *tests, "", _REPLY]
    return _program_task(f"mbpp-{number:03}", "\n".join(lines), f"{setup}\n{check}\n".lstrip(), name)


def _entry_point(code: str, tests: str, place: str) -> str:
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


def _write_programs(
    source: Path, destination: Path, name: str, made: Callable[[dict[str, Any], str], tuple[dict[str, Any], str]]
) -> list[Path]:
    """Write the task file and the recording of its programs.

    ``made(record, place)`` returns a task's record and its program.
    """
    tasks: list[dict[str, Any]] = []
    canonical: list[dict[str, Any]] = []
    places: dict[str, str] = {}
    for place, record in read_records(source):
        task, program = made(record, place)
        check_new("task_id", task["id"], place, places)
        tasks.append(task)
        canonical.append({"id": task["id"], "output": _fenced(program)})
    files = {f"{name}.jsonl": encode_lines(tasks), "canonical.replay.jsonl": encode_lines(canonical)}
    return NewFiles(destination, files).write()


def _program_task(id: str, prompt: str, tests: str, entry_point: str) -> dict[str, Any]:
    """Return the record for a task whose answer is a program.

    The tests determine the score, so the target is only a placeholder.
    """
    extras = {"tests": tests, "entry_point": entry_point}
    return {"id": id, "prompt": prompt, "targets": ["check"], "metric": "code_exec", "extras": extras}


def _fenced(program: str) -> str:
    """Return a program as a code block whose fence is longer than any fence in the program."""
    longest = max(map(len, _BACKTICKS.findall(program)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{program.rstrip()}\n{fence}\n"
