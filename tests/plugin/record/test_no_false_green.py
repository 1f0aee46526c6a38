"""Nothing that happens around a run, by accident or by a hook, makes a run green that is not fine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_lmeval.compare.merged_gate import gate_settings
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import read_run
from tests import needs
from tests.conftest import BOTH, Project

OPENING = "import os, signal, sys, time\nimport pytest\nWORKER = os.environ.get('PYTEST_XDIST_WORKER', '')\n"
LATE = "\ndef pytest_collection_finish(session):\n    session.config.pluginmanager.register(Late())\n"


def write_tasks(project: Project, *, wrong: bool) -> None:
    records = [project.record(f"e{n}", f"w{n}", target="no" if wrong and n == 1 else None) for n in range(6)]
    project.task("tasks/t.jsonl", *records)


def run_with(project: Project, conftest: str, *options: str) -> pytest.RunResult:
    project.write("conftest.py", OPENING + conftest)
    return project.run("--lm-batch-size=2", *options)


def verdict(project: Project) -> str:
    return str(project.board()["gate"]["verdict"])


# A wrong answer stays a failure, whoever says that all is well

HIDING = {
    "makereport": """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome, report.longrepr = "passed", None
    return report
""",
    "logreport": """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.outcome = "passed"
""",
    "skipping": """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    if report.failed:
        report.outcome, report.longrepr = "skipped", ("conftest.py", 1, "known")
    return report
""",
    "testsfailed": """
class Late:
    def pytest_sessionfinish(self, session): session.testsfailed = 0
    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session):
        try:
            return (yield)
        finally:
            session.testsfailed = 0
"""
    + LATE,
    "exitstatus": """
class Late:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        session.exitstatus = pytest.ExitCode.OK
        yield
        session.exitstatus = pytest.ExitCode.OK
"""
    + LATE,
    "exitstatus-inside": "\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "pytest.exit": "\ndef pytest_sessionfinish():\n    pytest.exit('enough', 0)\n",
    "pytest.exit-summary": "\ndef pytest_terminal_summary():\n    pytest.exit('enough', 0)\n",
    "sys.exit": "\ndef pytest_sessionfinish():\n    sys.exit(0)\n",
    "sys.exit-unconfigure": "\ndef pytest_unconfigure():\n    sys.exit(0)\n",
    "sys.exit-leaderboard": "\ndef pytest_lmeval_leaderboard():\n    sys.exit(0)\n",
    "os._exit": "\ndef pytest_sessionfinish():\n    if not WORKER: os._exit(0)\n",
    "os._exit-unconfigure": "\ndef pytest_unconfigure():\n    if not WORKER: os._exit(0)\n",
}


@pytest.mark.parametrize(
    ("how", "processes"), [*[(how, "-n0") for how in HIDING], ("makereport", "-n2"), ("os._exit", "-n2")]
)
def test_a_wrong_answer_fails_the_run_whatever_hides_it(project: Project, how: str, processes: str) -> None:
    write_tasks(project, wrong=True)
    result = run_with(project, HIDING[how], processes, "--json-report")
    assert 1 == result.ret
    assert "examples" == verdict(project)
    assert project.board()["complete"]
    # Where a hook ended the process before pytest-json-report wrote, there is none.
    if (project.path / ".report.json").exists():
        assert 1 == json.loads((project.path / ".report.json").read_text())["exitcode"]


EARLY = """
class Late:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        pytest.exit("enough", 0)
        yield
"""


@pytest.mark.command_line
def test_a_session_that_is_ended_before_its_results_are_judged_is_incomplete(project: Project) -> None:
    write_tasks(project, wrong=False)
    assert 3 == run_with(project, EARLY + LATE).ret
    assert ("incomplete", False) == (verdict(project), project.board()["complete"])


# A report that is lost is missed

LOSING = {
    "swallowed": """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if item.name == "e3" else None
""",
    "broken": """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if "e3" in report.nodeid: raise ValueError("no")
""",
    "last tear-down": "\ndef pytest_runtest_teardown(item):\n    if item.name == 'e5': pytest.exit('enough', 0)\n",
    "last report": """
@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if "e5" in report.nodeid and report.when == "teardown": raise ValueError("no")
""",
    "properties": """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    report.user_properties.clear()
    return report
""",
    "names": """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    report.nodeid += "-again"
    return report
""",
    "stopped": "\ndef pytest_runtest_setup(item):\n    if item.name == 'e3': item.session.shouldstop = 'enough'\n",
    "stopped last": "\ndef pytest_runtest_setup(item):\n    if item.name == 'e5': item.session.shouldstop = 'enough'\n",
    "not run": "\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop():\n    return True\n",
    "forgotten": "\ndef pytest_collection_finish(session):\n    session.items.clear()\n",
    "skipped": "\ndef pytest_runtest_setup():\n    pytest.skip('not today')\n",
}
LOSING_BETWEEN_PROCESSES = {
    "not sent": """
@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report):
    if "e3" in report.nodeid: raise ValueError("no")
""",
    "not understood": """
@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data):
    if "e3" in data["nodeid"]: raise ValueError("no")
""",
    "last tear-down": LOSING["last tear-down"],
    "workers that end untold": "\ndef pytest_sessionfinish():\n    if WORKER: os._exit(0)\n",
}


@pytest.mark.parametrize(
    ("how", "processes"),
    [
        *[(how, "-n0") for how in LOSING],
        *[(how, "-n2") for how in LOSING_BETWEEN_PROCESSES],
    ],
)
def test_what_is_lost_of_right_answers_makes_the_run_incomplete(project: Project, how: str, processes: str) -> None:
    write_tasks(project, wrong=False)
    conftest = (LOSING if processes == "-n0" else LOSING_BETWEEN_PROCESSES)[how]
    result = run_with(project, conftest, processes, "--max-worker-restart=0")
    assert 3 == result.ret
    assert ("incomplete", False) == (verdict(project), project.board()["complete"])
    assert project.board()["gate"]["reasons"]


NEVER_BEGUN = {
    "a conftest that breaks in workers": "\nif WORKER: raise RuntimeError('no')\n",
    "a worker that is killed while it collects": (
        "\ndef pytest_collection_modifyitems():\n    if WORKER == 'gw1': os.kill(os.getpid(), signal.SIGKILL)\n"
    ),
    "a worker that is killed while another collects": """
@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown():
    open("down", "w").close()

def pytest_collection_modifyitems():
    if WORKER == "gw1": os.kill(os.getpid(), signal.SIGKILL)
    while WORKER and not os.path.exists("down"): time.sleep(0.01)
""",
    "a controller that is told to stop": (
        "\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop():\n    if not WORKER: pytest.exit('enough', 0)\n"
    ),
}


@pytest.mark.parametrize("how", NEVER_BEGUN)
def test_workers_that_never_begin_are_no_success(project: Project, how: str) -> None:
    write_tasks(project, wrong=False)
    result = run_with(project, NEVER_BEGUN[how], "-n2", "--max-worker-restart=0")
    assert result.ret in (3, 5)
    assert not (project.path / "reports/leaderboard.json").exists() or not project.board()["complete"]


@pytest.mark.command_line
def test_a_process_that_ends_while_it_collects_is_no_success(project: Project) -> None:
    write_tasks(project, wrong=False)
    result = run_with(project, "\ndef pytest_collection_modifyitems():\n    os._exit(0)\n")
    assert 3 == result.ret
    result.stderr.fnmatch_lines(["*ended by os._exit(0) before the examples were collected"])


@pytest.mark.command_line
def test_plain_tests_may_end_their_process_as_they_like(project: Project) -> None:
    project.write("test_plain.py", "import os\ndef test_ends(): os._exit(0)\n")
    assert 0 == project.run("test_plain.py").ret


def test_a_plain_test_that_is_lost_is_told_of(project: Project) -> None:
    project.write("test_plain.py", "def test_one(): pass\ndef test_two(): pass\n")
    swallowing = LOSING["swallowed"].replace("e3", "test_two")
    result = run_with(project, swallowing, "test_plain.py")
    assert 3 == result.ret
    result.stdout.fnmatch_lines(["LOST: 1 test did not report completion"])


@pytest.mark.parametrize("stop", ["--sw", "-x"])
def test_a_run_that_stops_at_its_last_example_has_failed_as_any_other(project: Project, stop: str) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"), project.record("b", "x", target="y"))
    assert 1 == project.run(stop).ret
    assert ("examples", True) == (verdict(project), project.board()["complete"])


# Marks, fixtures and reruns: what pytest calls failed is failed, what a mark excuses is excused


class Marked(NamedTuple):
    conftest: str
    code: int
    verdict: str
    wrong: bool = True
    options: str = ""


MARK = """
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "e1": item.add_marker(pytest.mark.xfail({}))
"""
TEAR_DOWN = """
@pytest.fixture(autouse=True)
def failing(request):
    yield
    if request.node.name == "e1": {}
"""
MARKED = {
    "skipped": Marked("\ndef pytest_runtest_setup(item):\n    if item.name == 'e1': pytest.skip('no')\n", 0, "pass"),
    "xfail": Marked(MARK.format("reason='known'"), 0, "pass"),
    "xfail that passes": Marked(MARK.format("strict=True"), 1, "examples", wrong=False),
    "xfail that is below": Marked(MARK.format("strict=True"), 1, "examples", options="--lm-gate=none"),
    "xfail with a floor": Marked(MARK.format(""), 1, "floor", options="--lm-min-score=t=1"),
    "tear-down": Marked(TEAR_DOWN.format("assert False, '\\ud800'"), 1, "examples", wrong=False),
    "tear-down that skips": Marked(TEAR_DOWN.format("pytest.skip('late')"), 0, "pass", wrong=False),
}


@pytest.mark.parametrize(("how", "processes"), [*[(how, "-n0") for how in MARKED], ("tear-down", "-n2")])
def test_marks_and_fixtures_decide_what_they_decide_anywhere(project: Project, how: str, processes: str) -> None:
    case = MARKED[how]
    write_tasks(project, wrong=case.wrong)
    result = run_with(project, case.conftest, processes, *case.options.split())
    assert case.code == result.ret
    assert case.verdict == verdict(project)
    assert (True, 6) == (project.board()["complete"], project.board()["counts"]["collected"])


BREAKING = "class Model:\n    name = 'stub.v1'\n    def generate(self, prompts): raise OSError('down')\n"


def test_a_mark_does_not_excuse_what_could_not_be_scored(project: Project) -> None:
    write_tasks(project, wrong=False)
    project.write("model.py", BREAKING)
    mark = MARK.replace('item.name == "e1"', "True").format("")
    assert 3 == run_with(project, mark).ret
    assert 3 == run_with(project, mark, "--lm-max-errors=6", "--lm-gate=none").ret
    assert "incomplete" == verdict(project)


def test_a_set_up_that_fails_before_there_is_an_adapter_is_an_error_like_others(project: Project) -> None:
    write_tasks(project, wrong=False)
    failing = "\n@pytest.fixture(autouse=True)\ndef failing(request):\n    assert request.node.name != 'e0'\n"
    assert 1 == run_with(project, failing, "--lm-max-errors=1").ret
    assert ("examples", "stub.v1") == (verdict(project), project.board()["adapter"])


CHANGING = """
class Model:
    name = "stub.v1"
    calls = 0
    def generate(self, prompts):
        self.calls += 1
        return [prompt.rpartition("say: ")[2] if self.calls > 1 else "?" for prompt in prompts]
"""


def test_examples_that_pass_when_asked_again_are_doubtful(project: Project) -> None:
    needs.module("pytest_rerunfailures")
    project.write("model.py", CHANGING)
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run("-p", "rerunfailures", "--reruns=2")
    assert (0, 1.0) == (result.ret, project.board()["overall_score"])
    result.stdout.fnmatch_lines(["doubtful: 1 failed attempt(s) were repeated*"])
    ledger = (project.path / "reports/ledger.jsonl").read_text().splitlines()
    assert ["passed"] == [json.loads(line)["status"] for line in ledger if "status" in json.loads(line)]


# Nothing to measure


@pytest.mark.parametrize("options", [["--lm-allow-bad-tasks"], ["--continue-on-collection-errors"]])
def test_a_task_without_examples_stops_the_run(project: Project, options: list[str]) -> None:
    write_tasks(project, wrong=False)
    project.write("tasks/empty.jsonl", "")
    assert 2 == project.run(*options).ret
    assert [] == project.calls()


@pytest.mark.parametrize("processes", BOTH)
def test_a_folder_that_hides_its_tasks_stops_the_run(project: Project, processes: str) -> None:
    write_tasks(project, wrong=False)
    project.task("tasks/more/u.jsonl", project.record("a", "x"))
    project.write("tasks/more/conftest.py", "import no_such_module\n")
    assert 2 == project.run(processes, "--continue-on-collection-errors").ret
    assert [] == project.calls()


# However it is shown, and whoever hands the examples out


@pytest.mark.parametrize(
    "options",
    [
        ["-p", "no:terminal", "-p", "no:junitxml"],
        ["-qqq", "--tb=no"],
        ["-n2", "--dist=each"],
    ],
)
def test_a_wrong_answer_fails_the_run_however_it_is_run(project: Project, options: list[str]) -> None:
    write_tasks(project, wrong=True)
    assert 1 == project.run(*options).ret
    assert ("examples", 6) == (verdict(project), project.board()["counts"]["collected"])


@pytest.mark.parametrize("plugin", ["debugging", "setuponly", "setupplan"])
def test_a_plugin_of_pytest_may_be_blocked(project: Project, plugin: str) -> None:
    write_tasks(project, wrong=True)
    rows = '@eval_task("rows", data=[{"id": "a"}, {"id": "b"}, {"id": "c"}])\n'
    function = 'async def test_rows(row): assert row["id"] != "b"\n'
    project.write("test_evals.py", f"from pytest_lmeval import eval_task\n{rows}{function}")
    assert 1 == project.run("-p", f"no:{plugin}", ".").ret
    assert ("examples", 9) == (verdict(project), project.board()["counts"]["collected"])


# The baseline

UPDATE = ("--lm-baseline=base.json", "--lm-update-baseline")


@pytest.mark.parametrize(
    ("name", "options"),
    [("leaderboard.json", []), ("ledger.jsonl", []), ("leaderboard.json", ["--lm-update-baseline"])],
)
def test_a_run_is_not_compared_with_what_it_is_about_to_write(project: Project, name: str, options: list[str]) -> None:
    write_tasks(project, wrong=False)
    project.write(f"reports/{name}", "{}")
    # By another way to the same file.
    project.path.joinpath("here").symlink_to(project.path / "reports")
    result = project.run(f"--lm-baseline=here/{name}", *options)
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*this run writes that file itself*"])
    assert "{}" == (project.path / "reports" / name).read_text()
    assert [] == project.calls()


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_what_a_comparison_does_not_show_is_said(project: Project) -> None:
    write_tasks(project, wrong=False)
    project.task("tasks/u.jsonl", project.record("a", "x"))
    assert 0 == project.run(*UPDATE).ret
    assert 0 == project.run("--lm-baseline=base.json", "tasks/t.jsonl").ret
    assert ["in the baseline, but not run: u"] == project.board()["gate"]["warnings"]


def test_a_baseline_that_was_edited_or_has_a_task_twice_is_refused(project: Project) -> None:
    write_tasks(project, wrong=False)
    assert 0 == project.run(*UPDATE).ret
    base = project.path / "base.json"
    written = base.read_text()
    tasks = json.loads(written)["tasks"]
    edited = json.loads(written)["tasks"]
    edited[0]["per_example"][0]["score"] = 0.25
    for fields, why in (
        ({"tasks": edited}, "changed by hand: its results do not match its digest"),
        ({"tasks": [*tasks, *tasks]}, "it contains task 't' twice"),
    ):
        base.write_text(written)
        change(base, **fields)
        refused = project.run("--lm-baseline=base.json")
        assert (4, []) == (refused.ret, [call for call in project.calls()[1:] if call])
        refused.stderr.fnmatch_lines([f"*base.json: {why}*"])


def test_what_is_left_of_a_run_is_no_baseline(project: Project) -> None:
    write_tasks(project, wrong=False)
    assert 0 == project.run("--lm-report-dir=kept").ret
    ledger = (project.path / "kept/ledger.jsonl").read_bytes()
    project.write("base.json", ledger[: ledger.rindex(b'{"run"')])
    asked = len(project.calls())
    result = project.run("--lm-baseline=base.json")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*base.json: the run did not finish; it cannot be a baseline*"])
    assert asked == len(project.calls())


def test_a_baseline_that_cannot_be_written_fails_the_run_and_is_not_said_to_be_there(project: Project) -> None:
    write_tasks(project, wrong=False)
    unwritable = ("--lm-baseline=/proc/nowhere/base.json", "--lm-update-baseline")
    result = project.run(*unwritable, "--junitxml=junit.xml", "-qq")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["NOT WRITTEN: /proc/nowhere/base.json*"])
    result.stdout.no_fnmatch_line("*baseline written*")
    assert 'failures="1"' in (project.path / "junit.xml").read_text()
    gate = project.board()["gate"]
    assert ("stale", "baseline not written to /proc/nowhere/base.json: No such file or directory") == (
        gate["verdict"],
        gate["reasons"][0],
    )


def test_a_shard_whose_gate_is_not_one_of_ours_is_refused(project: Project) -> None:
    write_tasks(project, wrong=False)
    project.run("--lm-shard=1/2", "--lm-gate=tasks", "--lm-min-score=t=0.5")
    ledger = (project.path / "reports/ledger.jsonl").read_text()
    for recorded, other, message in [
        ('"mode": ?"tasks"', '"mode":"lenient"', "unknown gate 'lenient' (choices: baseline, examples"),
        ('"floors": ?{"t": ?0.5}', '"floors":{"t":-1}', "gate.settings.floors.t: expected a number from 0 to 1"),
    ]:
        path = project.write("edited.jsonl", re.sub(recorded, other, ledger))
        assert path.read_text() != ledger
        with pytest.raises(UsageError, match=re.escape(message)):
            gate_settings([read_run(path)], {})
