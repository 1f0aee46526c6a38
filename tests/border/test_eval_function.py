"""The border of an eval function: what it returns, scores, leaves undone or does too late."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Literal

import pytest

from tests import needs
from tests.border.table import Border, Row, check, refused_run, run_of_its_own, since_baseline
from tests.conftest import BOTH, RunModule

MODEL = """
from pytest_lmeval import AdapterError, Completion

class Model:
    name = "stub.v1"

    def __init__(self, **options):
        pass

    async def complete(self, request):
        if request.text == "fail":
            raise AdapterError("no answer came")
        return Completion(request.text)
"""
HEAD = """
import asyncio, threading
import pytest
from pytest_lmeval import eval_task

KEY = "kept-hushed-000-secret"

class NoRepr:
    def __repr__(self):
        raise RuntimeError("no repr")

def task(name, rows=None, **given):
    return eval_task(name, data=rows or [{"id": "a", "list": [1]}], **given)
"""
# Markdown lists the first errors of a run alone.
_ON = ("terminal", "board", "junit", "page")
Fate = Literal["used", "refused", "reported"]


def _row(kind: str, name: str, body: str, fate: Fate, says: str = "", **more: Any) -> Row:
    """Return the row of a function with this body; ``head`` is its first lines, an ``async def`` by default."""
    head = more.pop("head", "@task('NAME')\nasync def test_NAME(row, lm):").replace("NAME", name)
    text = f"{HEAD}\n{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    of = {"refused": "error", "used": "passed", "reported": "passed"}
    given = {"example": f"{name}:a", "status": of[fate]} | more
    what = more.pop("what", name.replace("_", " "))
    return Row(kind=kind, what=what, fate=fate, files={f"tests/test_{name}.py": text}, says=says, **given)


def _refused(kind: str, name: str, body: str, says: str, **more: Any) -> Row:
    return _row(kind, name, body, "refused", says, on=_ON, **more)


def _used(kind: str, name: str, body: str, score: float = 1.0, **more: Any) -> Row:
    return _row(kind, name, body, "used", score=score, **more)


def _never_run(kind: str, name: str, text: str, says: str) -> Row:
    files = {f"tests/test_{name}.py": f"{HEAD}\n{text}\n"}
    return refused_run(kind, name.replace("_", " "), says, code=2, files=files)


# The task that the first of two runs begins asks in the second.
TASK = """
import json, os, urllib.error, urllib.request

IS_KEPT = True
TASKS = []

def ask(base):
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    try:
        return urllib.request.urlopen(urllib.request.Request(f"{base}/chat/completions", body)).status
    except urllib.error.HTTPError as error:
        return error.code

async def later(go, base):
    await go.wait()
    return await asyncio.to_thread(ask, base if IS_KEPT else os.environ["OPENAI_BASE_URL"])

@task("task", repeats=2)
async def test_task(row, lm, lm_env):
    base = os.environ["OPENAI_BASE_URL"]
    assert 200 == await asyncio.to_thread(ask, base)
    if not TASKS:
        go = asyncio.Event()
        TASKS.extend([go, asyncio.ensure_future(later(go, base))])
    else:
        TASKS[0].set()
        assert (410 if IS_KEPT else 200) == await TASKS[1]
    lm.score("ok", 1)
"""
DEF = "@task('NAME')\ndef test_NAME(row, lm):"
BORDER = Border(
    name="an eval function",
    files={"model.py": MODEL},
    arguments=("--lm-adapter=model:Model", "--lm-adapter-arg=api_key=kept-hushed-000-secret", "-Wignore", "tests"),
    code=3,
    rows=(
        _refused("absent", "unchecked", "await lm.ask('4')", "nothing was asserted or scored: assert what is expected"),
        _refused("absent", "unnamed", "lm.score('', 1)", "lm.score: expected a name for the score, got ''"),
        _refused(
            "absent",
            "undecided",
            "lm.score('other', 1)",
            "the score 'right', which decides, was not recorded; recorded: other",
            head="@task('NAME', score='right')\nasync def test_NAME(row, lm):",
        ),
        _refused(
            "absent",
            "unnamed_score",
            "lm.score('ok', 1)",
            "the score 'polite', which has a threshold or a floor, was not recorded; recorded: ok",
            head="@task('NAME', min_score={'polite': 0.5})\nasync def test_NAME(row, lm):",
        ),
        _row("absent", "unasked", "lm.score('ok', 1)", "reported", "unasked: its example did not ask stub.v1"),
        _row(
            "absent", "asserted", "assert await lm.ask('4')", "reported", "asserted: 1 example passed by asserts alone"
        ),
        _used("absent", "no_output", "lm.score('ok', 1)\nlm.output(None)\nreturn None"),
        _used("empty", "empty_output", "lm.score('ok', 1)\nreturn ''"),
        _used("empty", "empty_question", "assert (await lm.ask('')).text == ''"),
        _refused(
            "empty", "empty_messages", "await lm.ask([])", "lm.ask: expected a text or a list of messages, got []"
        ),
        _refused(
            "wrong type", "a_bool", "assert row\nreturn False", "the function returned False, which decides nothing"
        ),
        _refused(
            "wrong type",
            "an_object",
            "assert row\nreturn NoRepr()",
            "the function returned a NoRepr without a repr (RuntimeError), which decides",
            head=DEF,
        ),
        _refused(
            "wrong type",
            "a_coroutine",
            "assert row\nasync def inner():\n    assert 0\nreturn inner()",
            "the function returned an awaitable, so nothing in it ran",
            head=DEF,
        ),
        _refused(
            "wrong type",
            "a_generator",
            "assert row\nreturn (each for each in [1])",
            "the function returned a generator, so nothing in it ran",
            head=DEF,
        ),
        _refused(
            "wrong type", "a_text_score", "lm.score('ok', 'yes')", "expected a bool, a number from 0 to 1, or None"
        ),
        _refused(
            "wrong type",
            "an_array",
            "lm.score('ok', memoryview(b'12'))",
            "expected a bool, a number from 0 to 1, or None",
        ),
        _refused("wrong type", "a_reason", "lm.score('ok', 1, why=5)", "why: expected a text, got 5"),
        _refused("too large", "a_long_reason", "lm.score('ok', 1, why='x' * 2000000)", "2,000,000 characters"),
        _never_run(
            "not finite or negative",
            "a_nan_floor",
            "@task('nan', min_score={'a': float('nan')})\nasync def test_nan(row, lm):\n    lm.score('a', 1)",
            "eval_task('nan'): min_score['a']: expected a number from 0 to 1, got nan",
        ),
        _refused("wrong type", "a_prompt", "await lm.ask(5)", "lm.ask: expected a text or a list of messages, got 5"),
        _used("wrong type", "no_json", "lm.output(NoRepr())\nlm.note('x', {1j: NoRepr()})\nlm.score('ok', 1)"),
        _never_run(
            "wrong type",
            "generator",
            "@task('g')\ndef test_generator(row, lm):\n    assert 0\n    yield",
            "eval_task('g'): test_generator has a yield, so a call of it runs nothing",
        ),
        _never_run(
            "wrong type",
            "plain_generator",
            "async def test_plain_generator(lm):\n    assert 0\n    yield",
            "test_plain_generator takes lm and has a yield",
        ),
        _never_run(
            "wrong type",
            "unittest",
            "import unittest\nclass TestX(unittest.TestCase):\n    @eval_task('u')\n    def test_u(self):\n"
            "        assert 0",
            "TestX.test_u: unittest calls the methods of a TestCase itself",
        ),
        _never_run(
            "wrong type",
            "static",
            "class TestX:\n    @staticmethod\n    @eval_task('s')\n    def test_s():\n        assert 0",
            "TestX.test_s: eval_task needs a plain method: remove @staticmethod",
        ),
        _never_run(
            "wrong type",
            "no_test",
            "@eval_task('n')\ndef evaluate(lm):\n    assert 0",
            "evaluate is not a test for pytest, so eval_task('n') never runs",
        ),
        _refused(
            "wrong type", "step", "lm.step('tool', 'x').output = {1}\nlm.score('ok', 1)", "is not JSON serializable"
        ),
        _refused("wrong type", "failed_step", "lm.step('tool', 'x').output = {1}\n{}['key']", "KeyError: 'key'"),
        _used(
            "not finite or negative",
            "usage",
            "lm.step('tool', 'x').usage = {'cost': float('nan'), 'prompt_tokens': -1}\nlm.score('ok', 1)",
        ),
        _refused(
            "too large", "output", "lm.output('x' * 2_000_000)", "lm.output(...): 2,000,000 characters; a step holds"
        ),
        _refused(
            "too large",
            "caught",
            "with pytest.raises(Exception):\n    lm.output('x' * 2_000_000)\nlm.score('ok', 1)",
            "lm.output(...): 2,000,000 characters; a step holds at most 1,048,576",
        ),
        _refused("too large", "score", "lm.score('ok', 1.5)", "expected a bool, a number from 0 to 1, or None"),
        _row(
            "too large",
            "slow",
            "try:\n    await asyncio.sleep(30)\nexcept BaseException:\n    lm.score('ok', 1)",
            "refused",
            "the function took longer than 0.1 s (timeout= of eval_task)",
            status="timeout",
            head="@task('NAME', timeout=0.1)\nasync def test_NAME(row, lm):",
        ),
        _row(
            "too large",
            "deaf",
            "while True:\n    try:\n        await asyncio.sleep(0.05)\n    except BaseException:\n        pass",
            "refused",
            "the function took longer than 0.1 s (timeout= of eval_task)",
            status="timeout",
            head="@task('NAME', timeout=0.1)\nasync def test_NAME(row, lm):",
        ),
        _row(
            "too large",
            "blocking",
            "import time\ntime.sleep(0.2)\nlm.score('ok', 1)",
            "refused",
            "the function took longer than 0.1 s (timeout= of eval_task)",
            status="timeout",
            head="@task('NAME', timeout=0.1)\nasync def test_NAME(row, lm):",
        ),
        _refused(
            "not finite or negative",
            "nan",
            "lm.score('ok', float('nan'))",
            "expected a bool, a number from 0 to 1, or None",
        ),
        _used("not finite or negative", "nan_output", "lm.output([float('inf')])\nlm.score('ok', 1)"),
        _used("control characters", "ill", "lm.output('\\x1b[31m\\ud800\\x00')\nlm.score('ok', 1)"),
        _used("control characters", "ill_name", "lm.score('\\x1b[31mo\\x07', 1)\nlm.note('\\ud800', '\\x00')"),
        _row("control characters", "ill_assert", "assert 0, '\\x1b[31m\\ud800'", "used", status="failed", score=0.0),
        _used("twice", "two_outputs", "lm.output(1)\nlm.output(2)\nlm.score('ok', 1)\nlm.score('ok', True)"),
        _refused(
            "twice",
            "two_scores",
            "lm.score('ok', 1)\nlm.score('ok', 0)",
            "is 0, and was 1 before; a name has one score",
        ),
        _used(
            "twice",
            "shared_row",
            "row['list'].append(2)\nlm.score('ok', row['list'] == [1, 2])",
            head="@task('NAME')\n@pytest.mark.parametrize('again', [1, 2])\nasync def test_NAME(row, lm, again):",
            example="shared_row:1-a",
        ),
        refused_run(
            "twice",
            "examples repeated by pytest-repeat",
            "pytest-repeat would make 2 examples of each",
            "-ppytest_repeat",
            "--count=2",
            code=2,
            files={"tests/test_repeated.py": f"{HEAD}\n@task('r')\nasync def test_r(row):\n    assert row\n"},
        ),
        _refused(
            "late",
            "left_open",
            "asyncio.ensure_future(lm.ask('4'))\nawait asyncio.sleep(0)\nassert row",
            "a request to stub.v1 was still unanswered when the function had ended",
        ),
        _refused(
            "late",
            "not_awaited",
            "assert lm.ask('4')",
            "lm.ask was never awaited, so nothing was asked: write await lm.ask(...)",
        ),
        _refused(
            "late",
            "may_fail_without_with",
            "lm.may_fail()\nassert await lm.ask('4')",
            "lm.may_fail(...) has no effect without with: write with lm.may_fail(...):",
        ),
        _refused(
            "late",
            "span_without_with",
            "lm.span('search')\nassert await lm.ask('4')",
            "lm.span(...) has no effect without with: write with lm.span(...):",
        ),
        run_of_its_own(
            "late",
            "a score after the result was reported",
            fate="reported",
            code=3,
            files={
                "tests/test_late.py": f"{HEAD}\n@task('late', [{{'id': each}} for each in 'abcdefgh'])\n"
                "async def test_late(row, lm):\n"
                "    if row['id'] == 'a':\n"
                "        threading.Timer(0.05, lm.score, ['ok', 0]).start()\n"
                "    else:\n"
                "        await asyncio.sleep(0.3)\n"
                "    lm.score('ok', 1)\n"
            },
            says="lm.score('ok') after its example had ended (late: a)",
            example="late:a",
            status="passed",
        ),
        run_of_its_own(
            "kept client",
            "a task that outlives its example, with the client of that",
            fate="reported",
            code=3,
            files={"tests/test_task.py": f"{HEAD}{TASK}"},
            says="1 request(s) to lm.base_url after their example had ended (task: a)",
            example="task:a",
            status="passed",
        ),
        run_of_its_own(
            "kept client",
            "a task that outlives its example, with a client of its own",
            files={"tests/test_task.py": f"{HEAD}{TASK}".replace("IS_KEPT = True", "IS_KEPT = False")},
            example="task:a",
            status="passed",
        ),
        _used(
            "out of order", "scores_first", "lm.score('ok', 1)\nlm.output(1)\nlm.step('tool', 'x')\nawait lm.ask('4')"
        ),
        _row("out of order", "output_first", "lm.output('kept')\nassert 0", "used", status="failed", score=0.0),
        _row(
            "cancelled",
            "request",
            """
            asked = asyncio.ensure_future(lm.ask("4"))
            await asyncio.sleep(0)
            asked.cancel()
            await asyncio.sleep(0)
            lm.score("ok", 1)
            """,
            "reported",
            "request: the application cancelled 1 request",
        ),
        _refused("cancelled", "itself", "raise asyncio.CancelledError", "CancelledError"),
        _row("raising", "assertion", "assert 0", "used", status="failed", score=0.0),
        _row("raising", "xfail", "pytest.xfail('known')", "used", status="below", score=0.0),
        _row(
            "raising",
            "subtest",
            "with subtests.test('one'):\n    assert 0",
            "used",
            status="failed",
            score=0.0,
            head="@task('NAME')\nasync def test_NAME(row, lm, subtests):",
        ),
        _row(
            "raising",
            "of_a_library",
            "import unittest\nunittest.TestCase().assertEqual(1, 2)",
            "used",
            status="failed",
            score=0.0,
        ),
        _refused("raising", "exits", "raise SystemExit('over')", "SystemExit: over"),
        _refused(
            "beside",
            "lost_task",
            """
            async def fail():
                raise OSError("no such place")

            task = asyncio.ensure_future(fail())
            await asyncio.sleep(0.01)
            lm.score("ok", 1)
            """,
            "a task ended with OSError: no such place (tests/test_lost_task.py:",
        ),
        refused_run(
            "beside",
            "an async fixture that plain tests ask for, too",
            "fixture db (tests/conftest.py:3) is async and of scope session: the eval",
            files={
                "tests/conftest.py": "import pytest\n\n@pytest.fixture(scope='session')\nasync def db(): ...\n",
                "tests/test_shared.py": f"{HEAD}\n@task('shared')\nasync def test_shared(row, db):\n    assert db\n\n"
                "def test_plain(db):\n    assert db\n",
            },
        ),
        _refused("environment", "missing", "import none_such", "ModuleNotFoundError: No module named 'none_such'"),
        _row(
            "environment",
            "skipped",
            "pytest.skip('none_such is missing')",
            "used",
            "none_such is missing",
            example="",
            on=("junit",),
        ),
        since_baseline(
            "changed unseen",
            "the code of the function",
            "the test changed too: test_c",
            {"tests/test_c.py": f"{HEAD}\n@task('c')\ndef test_c(row, lm):\n    lm.score('ok', 1)\n"},
            files={"tests/test_c.py": f"{HEAD}\n@task('c')\ndef test_c(row, lm):\n    lm.score('ok', 1 > 0)\n"},
            example="c:a",
            status="passed",
        ),
        Row(
            kind="earlier run", never="results of an earlier run come in by --lm-resume: plugin/record/test_resuming.py"
        ),
        _refused("raising", "key", "{}['key']", "KeyError: 'key'"),
        _refused(
            "raising",
            "unanswered",
            "with pytest.raises(Exception):\n    await lm.ask('fail')\nlm.score('ok', 1)",
            "no answer came",
        ),
        _used(
            "raising",
            "allowed",
            "with lm.may_fail(), pytest.raises(Exception):\n    await lm.ask('fail')\nlm.score('ok', 1)",
            unsaid="allowed: a could not be scored",
        ),
        _used(
            "raising",
            "allowed_client",
            """
            import http.client, json
            host, _, path = lm.base_url.removeprefix("http://").partition("/")
            body = json.dumps({"model": "stub.v1", "messages": [{"role": "user", "content": "fail"}]})
            with lm.may_fail():
                connection = http.client.HTTPConnection(host, timeout=60)
                connection.request("POST", f"/{path}/chat/completions", body)
                lm.score("ok", connection.getresponse().status >= 400)
                connection.close()
            """,
            head=DEF,
        ),
        _used(
            "secret",
            "secret",
            "lm.output({'key': KEY})\nlm.note('key', KEY)\nlm.step('tool', KEY, KEY, KEY)\nlm.score('ok', 1)",
            unsaid="kept-hushed-000-secret",
        ),
        _refused("secret", "secret_returned", "assert row\nreturn type(KEY, (), {})", "which decides nothing"),
        _used("same name", "same_note", "lm.note('x', 1)\nlm.note('x', 2)\nlm.score('ok', 1)"),
        refused_run(
            "same name",
            "two functions of one task name",
            "the task name 'same' is taken by another one of the file",
            code=2,
            files={
                "tests/test_same.py": f"{HEAD}\n@task('same')\ndef test_one(row):\n    assert row\n\n"
                "@task('same')\ndef test_two(row):\n    assert row\n"
            },
        ),
        run_of_its_own(
            "same name",
            "a fixture lm of the project's own",
            files={
                "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef lm():\n    return 'theirs'\n",
                "tests/test_own.py": "def test_own(lm):\n    assert lm == 'theirs'\n",
            },
        ),
    ),
)


@pytest.mark.parametrize("processes", BOTH)
def test_what_a_function_does_is_used_refused_or_reported(
    tmp_path: Path, run_module: RunModule, processes: str
) -> None:
    needs.installed("pytest_repeat")
    check(BORDER, tmp_path, run_module, processes)
