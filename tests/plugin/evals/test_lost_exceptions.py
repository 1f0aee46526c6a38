"""Exceptions of tasks and threads that nothing in an eval function sees: the example that began them is an error."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Project

DETAILS = ("--lm-include-per-example", "-Wignore")


@pytest.fixture
def lost(project: Project) -> Project:
    project.copy("eval_lost")
    return project


def said(project: Project) -> dict[str, str]:
    """Return the error of each example that has one, by task and id."""
    errors = {name: record["error"] for name, record in project.examples().items() if record["status"] == "error"}
    return {name: re.sub(r":\d+ in", ":LINE in", error) for name, error in errors.items()}


def test_a_task_that_fails_and_is_not_awaited_makes_its_example_an_error(lost: Project) -> None:
    result = lost.run("test_tasks.py", *DETAILS)

    assert 3 == result.ret, result.stdout.str()
    errors = said(lost)
    awaited = "and nothing awaited it: await it in the function"
    of_fail = f"a task ended with OSError: no such place (test_tasks.py:LINE in fail), {awaited}"
    tasks = ("lost-below", "lost-in-time", "waited-only")
    expected = dict.fromkeys(["lost-of-one:a", *(f"{task}:{id}" for task in tasks for id in "ab")], of_fail)
    for id in "ab":
        expected[f"lost-at-the-end:{id}"] = of_fail.replace("in fail", "in at_once")
        # With pytest's explanation of the assert.
        error = expected[f"lost-assert:{id}"] = errors[f"lost-assert:{id}"]
        assert error.startswith("a task ended with AssertionError: assert 'x' == 'right'")
        assert error.endswith(f"(test_tasks.py:LINE in check), {awaited}")
    assert expected == errors
    others = {name.partition(":")[0] for name in lost.examples().keys() - expected.keys()}
    assert {"asked-later", "cancelled", "gathered", "group", "lost-of-one", "still-running"} == others


def test_a_thread_that_fails_makes_the_example_that_runs_an_error(lost: Project) -> None:
    result = lost.run("test_threads.py", "--lm-concurrency=1", *DETAILS)

    assert 3 == result.ret, result.stdout.str()
    assert ["async:a", "in-threads:a", "plain:a"] == sorted(said(lost))
    expected = (
        "thread checker ended with AssertionError: assert 'x' == 'right' (test_threads.py:LINE in check): have the "
        "function join it and re-raise its exception"
    )
    assert {expected} == {*said(lost).values()}


def test_a_thread_that_fails_while_several_examples_run_makes_errors_of_all_of_them(lost: Project) -> None:
    result = lost.run("test_together.py", *DETAILS)

    assert 3 == result.ret, result.stdout.str()
    expected = (
        "thread checker ended with AssertionError: assert 'x' == 'right' (test_together.py:LINE in check), while 2 "
        "examples ran; with --lm-concurrency=1 its example is known: have the function join it and "
        "re-raise its exception"
    )
    assert {"together:a": expected, "together:b": expected} == said(lost)


def test_a_task_that_fails_after_its_example_makes_the_run_incomplete(project: Project) -> None:
    project.write(
        "test_x.py",
        "import asyncio\nfrom pytest_lmeval import eval_task\n\nended = asyncio.Event()\n\n"
        "async def fail():\n    await ended.wait()\n    raise OSError('no such place')\n\n"
        "@eval_task('first')\nasync def test_first(lm, request):\n"
        "    asyncio.ensure_future(fail())\n    lm.score('ok', True)\n\n"
        "@eval_task('second')\nasync def test_second(lm, request):\n"
        "    ended.set()\n    await asyncio.sleep(0.05)\n    lm.score('ok', True)\n",
    )

    result = project.run("test_x.py", *DETAILS)

    assert 3 == result.ret, result.stdout.str()
    expected = "a task ended with OSError: no such place (test_x.py:8 in fail), and nothing awaited it"
    assert f"{expected}: await it in the function (first: test_first)" in result.stdout.str()
