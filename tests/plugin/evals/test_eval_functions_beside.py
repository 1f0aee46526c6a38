"""Eval functions beside each other: what runs ahead of its turn, what waits for it, and what ends it."""

from __future__ import annotations

import json
import signal

import pytest

from tests.conftest import Project
from tests.needs import module

# Notes how many requests are in flight at once, and answers what the prompt says.
MODEL = """
import asyncio, json, os
from pytest_lmeval import Completion

class Model:
    name = "stub.v1"
    flying = most = 0

    async def complete(self, request):
        type(self).flying += 1
        type(self).most = max(self.most, self.flying)
        with open(os.path.join(os.path.dirname(__file__), f"most.{os.getpid()}"), "w") as file:
            file.write(str(self.most))
        await asyncio.sleep(0.05)
        type(self).flying -= 1
        with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
            file.write(json.dumps([request.id, request.text]) + "\\n")
        return Completion(request.text.rpartition("say: ")[2])
"""
HEAD = "import asyncio, os, time\nimport pytest\nfrom pytest_lmeval import eval_task\n\n"
ROWS = "data=[{'id': f'e{n}'} for n in range(12)]"


def write_tests(project: Project, body: str, name: str = "test_x", folder: str = "tests") -> None:
    project.write("model.py", MODEL)
    project.write(f"{folder}/{name}.py", HEAD + body)


def most_at_once(project: Project) -> int:
    return max(int(path.read_text()) for path in project.path.glob("most.*"))


@pytest.mark.parametrize(
    ("decorator", "function"),
    [("", "async def test_x(row, lm):\n    assert await lm.ask('say: 1')\n    await lm.ask('say: 2')\n"),
     (", threads=True", "def test_x(row, lm):\n    assert lm.ask('say: 1')\n    lm.ask('say: 2')\n")],
    ids=["async", "threads"],
)  # fmt: skip
def test_as_many_examples_run_at_once_as_the_concurrency_says(project: Project, decorator: str, function: str) -> None:
    write_tests(project, f"@eval_task('x', {ROWS}{decorator})\n{function}")
    result = project.run("tests", "--lm-concurrency=6", "--junit-xml=junit.xml")
    result.assert_outcomes(passed=12)
    assert 6 == most_at_once(project)
    times = [float(part.partition('"')[0]) for part in (project.path / "junit.xml").read_text().split(' time="')[2:]]
    # Its own time, about 0.1 s: not what it waited for its turn, nor nothing since it was done by then.
    assert all(0.09 < each for each in times[:12]), times


@pytest.mark.parametrize(("concurrency", "functions"), [(31, 31), (32, 40)])
def test_from_32_requests_in_flight_on_a_quarter_more_functions_run(
    project: Project, concurrency: int, functions: int
) -> None:
    write_tests(
        project,
        "at_once = set()\n\n@eval_task('x', data=[{'id': f'e{n}'} for n in range(80)])\nasync def test_x(row, lm):\n"
        "    at_once.add(row['id'])\n    print(len(at_once), file=open('functions.txt', 'a'))\n"
        "    assert await lm.ask('say: 1')\n    at_once.remove(row['id'])\n",
    )
    project.run("tests", f"--lm-concurrency={concurrency}", "-Wignore").assert_outcomes(passed=80)
    assert functions == max(map(int, (project.path / "functions.txt").read_text().split()))
    assert concurrency == most_at_once(project)


def test_four_times_as_many_examples_are_begun_ahead_as_run_at_a_time(project: Project) -> None:
    functions = (
        f"@pytest.fixture(scope='session')\ndef db{n}():\n    print('fixture', file=open('order.txt', 'a'))\n\n"
        f"@eval_task('x{n}')\nasync def test_x{n}(lm, db{n}):\n    assert await lm.ask('say: 1')\n\n"
        for n in range(12)
    )
    write_tests(project, "".join(functions))
    project.write("conftest.py", "def pytest_runtest_logfinish():\n    print('end', file=open('order.txt', 'a'))\n")
    project.run("tests", "--lm-concurrency=2", "-Wignore").assert_outcomes(passed=12)
    order = (project.path / "order.txt").read_text().split()
    assert [*["fixture"] * 8, "end"] == order[:9]


def test_requests_for_a_batch_adapter_are_gathered(project: Project) -> None:
    project.write("tests/test_x.py", f"{HEAD}@eval_task('x', {ROWS})\nasync def test_x(row, lm):\n"
                  "    assert await lm.ask('say: ' + row['id'])\n")  # fmt: skip
    project.run("tests", "--lm-batch-size=6").assert_outcomes(passed=12)
    assert [6, 6] == [len(prompts) for prompts in project.calls()]


SCOPED = "is function-scoped; if several may exist at a time, name it in lm_safe_fixtures"
FIXTURES = {
    "function": ("@pytest.fixture\ndef db():\n    yield 1\n", f"fixture db (test_x.py:5) {SCOPED}"),
    "autouse": ("@pytest.fixture(autouse=True)\ndef db(): yield 1\n", f"fixture db (test_x.py:5) {SCOPED}"),
    "module": ("@pytest.fixture(scope='module')\ndef db():\n    yield 1\n", ""),
    "session": ("@pytest.fixture(scope='session')\ndef db():\n    yield 1\n", ""),
    "async": ("@pytest.fixture(scope='module')\nasync def db():\n    await asyncio.sleep(0)\n    return 1\n", ""),
    "async generator": ("@pytest.fixture(scope='session')\nasync def db():\n    loop = asyncio.get_running_loop()\n"
                        "    yield 1\n    assert loop is asyncio.get_running_loop()\n"
                        "    open('closed.txt', 'w').close()\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", FIXTURES)
def test_a_fixture_decides_whether_examples_may_run_ahead_and_the_summary_says_so(project: Project, kind: str) -> None:
    fixture, reason = FIXTURES[kind]
    write_tests(project, f"{fixture}\n@eval_task('x', {ROWS})\nasync def test_x(row, lm, db):\n"
          "    assert db == 1\n    await lm.ask('say: 1')\n")  # fmt: skip
    result = project.run("tests", "--lm-concurrency=6")
    result.assert_outcomes(passed=12)
    assert (1 if reason else 6) == most_at_once(project)
    told = [line for line in result.outlines if "ran one at a time" in line]
    assert ([f"x: 12 examples ran one at a time: {reason}"] if reason else []) == told
    if kind == "async generator":
        assert (project.path / "closed.txt").exists()


def test_a_fixture_that_fails_is_an_error_of_every_example_and_of_nothing_else(project: Project) -> None:
    write_tests(
        project,
        f"@pytest.fixture(scope='module')\ndef db():\n    raise OSError('no database')\n\n"
        f"@eval_task('with', {ROWS})\nasync def test_with(row, lm, db):\n    pass\n\n"
        f"@eval_task('without', {ROWS})\nasync def test_without(row, lm):\n    assert await lm.ask('say: 1')\n",
    )
    result = project.run("tests", "--lm-include-per-example")
    result.assert_outcomes(passed=12, errors=12)
    statuses = {name: record["status"] for name, record in project.examples().items()}
    assert {"error"} == {status for name, status in statuses.items() if name.startswith("with:")}
    assert {"passed"} == {status for name, status in statuses.items() if name.startswith("without:")}


def test_what_uses_a_module_s_fixture_has_ended_before_that_is_torn_down(project: Project) -> None:
    body = (
        "@pytest.fixture(scope='module')\ndef db():\n    state = {'open': True}\n    yield state\n"
        "    state['open'] = False\n\n"
        "@eval_task('NAME', data=[{'id': f'e{n}'} for n in range(6)])\nasync def test_x(row, lm, db):\n"
        "    for _ in range(3):\n        assert db['open']\n        await lm.ask('say: 1')\n"
    )
    for name in ("a", "b"):
        write_tests(project, body.replace("NAME", name), f"test_{name}")
    result = project.run("tests", "--lm-concurrency=16", "-x", "--lm-max-errors=0")
    result.assert_outcomes(passed=12)
    # None was begun twice: nobody pays twice for it.
    assert 36 == len(project.asked())


def test_what_uses_a_module_s_fixture_goes_on_where_its_next_class_begins(project: Project) -> None:
    classes = (
        f"class Test{name}:\n    @eval_task('{name}', data=[{{'id': f'e{{n}}'}} for n in range(3)])\n"
        "    async def test_x(self, row, lm, db):\n        await lm.ask('say: ' + row['id'])\n"
        "        await asyncio.sleep(0.3)\n        lm.score('done', 1)\n\n"
        for name in ("One", "Two")
    )
    write_tests(project, "@pytest.fixture(scope='module')\ndef db(): return 1\n\n" + "".join(classes))
    project.run("tests", "--lm-concurrency=8").assert_outcomes(passed=6)
    assert 6 == len(project.asked())


def test_after_x_nothing_more_is_begun_and_what_runs_is_cancelled(project: Project) -> None:
    write_tests(
        project,
        "def note():\n    with open('cancelled.txt', 'a') as file:\n        print('cancelled', file=file)\n\n"
        "@eval_task('x', data=[{'id': f'e{n}'} for n in range(40)])\nasync def test_x(row, lm):\n"
        "    try:\n        await lm.ask('say: 1')\n        lm.score('ok', row['id'] != 'e0')\n"
        "        await asyncio.sleep(0 if row['id'] == 'e0' else 60)\n"
        "    except asyncio.CancelledError:\n        note()\n        raise\n",
    )
    result = project.run("tests", "-x", "--lm-concurrency=8", timeout=60)
    assert 1 == result.ret
    # Those in flight; when the first had ended, one more may have begun.
    assert 7 <= len((project.path / "cancelled.txt").read_text().splitlines()) <= 8


def test_a_judge_is_asked_and_a_run_without_one_is_refused(project: Project) -> None:
    project.write("judge.py", "class Judge:\n    name = 'judge.v1'\n    def generate(self, prompts):\n"
                  "        return ['Yes.' if 'good' in p else 'dunno' for p in prompts]\n")  # fmt: skip
    write_tests(
        project,
        "@eval_task('x', data=[{'id': 'good'}, {'id': 'bad'}])\nasync def test_x(row, lm):\n"
        "    lm.score('polite', await lm.judge('Is it polite?', row['id'], labels=['yes', 'no']) == 'yes')\n",
    )
    project.run("tests", "--lm-judge=judge:Judge", "--lm-include-per-example")
    found = project.examples()
    assert ("passed", "judge") == (found["x:good"]["status"], found["x:good"]["details"]["steps"][0]["kind"])
    assert "the judge's reply is no label out of yes, no: 'dunno'" in found["x:bad"]["error"]
    assert 2 == len(found["x:bad"]["details"]["steps"])
    refused = project.run("tests")
    assert 4 == refused.ret
    assert "asks a judge, and the run has no judge" in refused.stderr.str()


def test_a_run_that_is_resumed_asks_only_what_has_no_answer(project: Project) -> None:
    write_tests(
        project,
        f"@eval_task('x', {ROWS})\nasync def test_x(row, lm):\n    one = await lm.ask('say: ' + row['id'])\n"
        "    two = await lm.ask('say: ' + one.text)\n    lm.score('ok', two.text == row['id'])\n",
    )
    project.run("tests")
    ledger = project.path / "reports/ledger.jsonl"
    lines = ledger.read_text().splitlines()
    results = [line for line in lines if '"status"' in line]
    # The last of those kept lost its second answer, as where the server had failed.
    cut = json.loads(results[4])
    del cut["details"]["steps"][1]
    ledger.write_text("\n".join([lines[0], *results[:4], json.dumps(cut)]) + "\n")
    (project.path / "asked.txt").unlink()
    result = project.run("tests", "--lm-resume")
    assert 0 == result.ret, result.stdout.str()
    assert 1 + 2 * 7 == len(project.asked())
    assert 12 == project.board()["counts"]["scored"]


def test_what_a_killed_process_had_been_answered_is_not_asked_again(project: Project) -> None:
    write_tests(
        project,
        "import os, signal\n@eval_task('x', data=[{'id': 'a'}])\nasync def test_x(row, lm):\n"
        "    one = await lm.ask('say: yes')\n    assert await lm.judge('Is it?', one.text) == 'yes'\n"
        "    if os.path.exists('die.txt'):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    assert await lm.ask('say: b')\n    lm.score('ok', True)\n",
    )
    die = project.write("die.txt", "")
    project.write(
        "judge.py",
        "class Judge:\n    name = 'judge.v1'\n    def generate(self, prompts):\n"
        "        open('judged.txt', 'a').write('x')\n        return ['yes' for _ in prompts]\n",
    )
    options = ("tests", "--lm-judge=judge:Judge", "--lm-include-per-example")
    project.run(*options)
    die.unlink()
    before = len(project.asked())
    result = project.run(*options, "--lm-resume")
    assert 0 == result.ret, result.stdout.str()
    assert (1, "x") == (len(project.asked()[before:]), (project.path / "judged.txt").read_text())
    steps = project.examples()["x:a"]["details"]["steps"]
    assert ["request", "judge", "request"] == [step["kind"] for step in steps]


@pytest.mark.command_line
def test_ctrl_c_cancels_what_runs_and_names_what_has_no_result(project: Project) -> None:
    write_tests(
        project,
        "@eval_task('x', data=[{'id': f'e{n}'} for n in range(6)])\nasync def test_x(row, lm):\n"
        "    assert await lm.ask('say: 1')\n    if row['id'] != 'e0':\n        await asyncio.sleep(600)\n",
    )
    started = project.start("tests", "--lm-adapter=model:Model")
    started.wait_for(lambda: len(project.asked()) >= 6)
    code, output = started.stop(signal.SIGINT)
    assert 2 == code, output
    assert "no result: tests/test_x.py::test_x[e3]" in output


def test_a_task_that_holds_up_all_others_at_several_places_is_named_once(project: Project) -> None:
    project.write("conftest.py", "import pytest_lmeval.plugin.evals.session as session\n\nsession._BLOCKED_S = 0.7\n")
    pause = "    time.sleep(2)\n    await asyncio.sleep(0.1)\n"
    write_tests(
        project,
        f"@eval_task('x', timeout=60)\nasync def test_x(lm):\n{pause}{pause}    assert await lm.ask('say: 1')\n\n"
        f"@eval_task('y')\nasync def test_y(lm):\n{pause}    assert await lm.ask('say: 1')\n",
    )
    result = project.run("tests")
    assert 0 == result.ret, result.stdout.str()
    # As it happens, and at the end.
    shown = result.stdout.str()
    assert [2, 2] == [shown.count(f"{task}: an eval function blocks all others at tests/test_x.py:") for task in "xy"]


@pytest.mark.parametrize("plugin", ["anyio", "pytest_asyncio"])
def test_plugins_for_async_tests_leave_eval_functions_alone_and_run_the_others(project: Project, plugin: str) -> None:
    module(plugin)
    mode = "-panyio.pytest_plugin" if plugin == "anyio" else "-ppytest_asyncio.plugin"
    write_tests(
        project,
        f"pytestmark = pytest.mark.{'anyio' if plugin == 'anyio' else 'asyncio'}\n\n"
        f"@eval_task('x', {ROWS})\nasync def test_x(row, lm):\n    assert await lm.ask('say: 1')\n\n"
        "async def test_plain(lm):\n    assert (await lm.ask('say: 2')).text == '2'\n    lm.score('half', 0.5)\n",
    )
    more = [f"-oasyncio_{name}" for name in ("mode=auto", "default_fixture_loop_scope=function")]
    more = more if plugin == "pytest_asyncio" else []
    result = project.run("tests", mode, *more, "--lm-include-per-example", "-Wignore")
    found = project.examples()
    assert 6 < most_at_once(project)
    plain = [record for name, record in found.items() if name.startswith("tests/test_x")]
    assert plain, result.stdout.str()
    assert {("failed", 0.5)} == {(record["status"], record["score"]) for record in plain}
    assert "threshold 1 (function)" in result.stdout.str()


def test_what_an_example_prints_stays_with_it_where_another_blocks_the_loop(project: Project) -> None:
    write_tests(
        project,
        "@eval_task('x', data=[{'id': f'e{n}'} for n in range(6)])\nasync def test_x(row, lm):\n"
        "    await asyncio.sleep(0)\n    if row['id'] == 'e1':\n        time.sleep(0.7)\n"
        "    print('from', row['id'])\n    lm.score('ok', 1)\n",
    )
    result = project.run("tests", "-rP", "--lm-concurrency=16")
    output = result.stdout.str()
    assert "from" not in output.partition("PASSES")[0]
    for number in range(6):
        assert 1 == output.count(f"from e{number}\n"), output


def test_the_options_of_a_client_that_a_model_does_not_take_are_said(project: Project) -> None:
    write_tests(
        project,
        "@eval_task('x')\nasync def test_x(lm):\n    import aiohttp\n"
        "    body = {'messages': [{'role': 'user', 'content': 'say: 1'}], 'top_p': 0.5, 'seed': 1, 'stop': 'x'}\n"
        "    async with aiohttp.ClientSession() as session:\n"
        "        async with session.post(lm.base_url + '/chat/completions', json=body) as answer:\n"
        "            assert '1' == (await answer.json())['choices'][0]['message']['content']\n"
        "    assert '1' == (await lm.ask('say: 1', stop='end')).text\n",
    )
    result = project.run("tests")
    assert 0 == result.ret, result.stdout.str()
    assert "dropped between clients and stub.v1: seed (1), top_p (1)" in result.outlines
    project.write("tests/test_x.py", f"{HEAD}@eval_task('x')\nasync def test_x(lm):\n"
                  "    assert await lm.ask('say: 1', temperature=0.5)\n")  # fmt: skip
    result = project.run("tests", "--lm-include-per-example")
    assert "adapter stub.v1 does not take temperature from lm.ask" in project.examples()["x:test_x"]["error"]
    assert 5 == json.loads((project.path / "reports/ledger.jsonl").read_text().splitlines()[1])["line"]


def test_answers_out_of_the_cache_cost_nothing_again(project: Project) -> None:
    write_tests(project, f"@eval_task('x', {ROWS})\nasync def test_x(row, lm):\n    assert await lm.ask('say: 1')\n"
          "    assert await lm.ask('say: ' + row['id'])\n")  # fmt: skip
    model = (project.path / "model.py").read_text()
    project.write("model.py", model.replace('("say: ")[2])', '("say: ")[2], cost=1.0)'))
    # One example after the other: what all of them ask is asked once.
    for cost, cached in ((13.0, 11), (0.0, 24)):
        result = project.run("tests", "--lm-cache=answers", "--lm-concurrency=1", "--lm-include-per-example")
        assert 0 == result.ret, result.stdout.str()
        assert 13 == len(project.asked())
        assert cached == sum(record.get("cached", 0) for record in project.examples().values())
        assert cost == project.board().get("usage", {}).get("cost", 0.0)


def test_labels_that_cannot_be_told_apart_make_the_example_an_error(project: Project) -> None:
    project.write("judge.py", "class Judge:\n    name = 'judge.v1'\n    def generate(self, prompts):\n"
                  "        return ['yes' for p in prompts]\n")  # fmt: skip
    write_tests(
        project,
        "@eval_task('x')\ndef test_x(lm):\n    try:\n        lm.judge('Polite?', 'text', labels=['yes', 'yes'])\n"
        "    except Exception:\n        lm.score('polite', 1)\n",
    )
    project.run("tests", "--lm-judge=judge:Judge", "--lm-include-per-example")
    record = project.examples()["x:test_x"]
    assert ("error", None) == (record["status"], record["score"])
    assert "labels: expected two different texts or more" in record["error"]


def test_each_process_says_how_many_examples_ran_one_at_a_time(project: Project) -> None:
    fixture = "import pytest\nfrom pytest_lmeval import eval_task\n\n@pytest.fixture\ndef own():\n    return 1\n"
    rows = "[{'id': name} for name in 'abcd']"
    project.write(
        "test_x.py", f"{fixture}\n@eval_task('x', data={rows})\nasync def test_x(row, lm, own):\n    assert own\n"
    )
    result = project.run_pytest("--lm-adapter=none", "-n2")
    counts = [int(line.split()[1]) for line in result.outlines if "ran one at a time" in line]
    assert (0, 4) == (result.ret, sum(counts))
