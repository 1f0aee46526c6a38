"""A throwaway project with a scripted model, and what a real pytest process makes of it."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from tests import needs
from tests.examples import USUAL
from tests.sources import PROJECTS

from .fork_server import ForkServer, of_another_tree, run_command

pytest_plugins = ["pytester"]
# Bad records for tests, which would be task files that cannot be read, and projects for the runs inside tests.
collect_ignore_glob = ["data/*.jsonl", "projects/*"]

# The model reads its answer off the prompt, so that every test says in its task file what the model will do.
# Each call adds a line to calls.txt: its process and its prompts.
MODEL = """
import json, os

class Model:
    name = "stub.v1"

    def generate(self, prompts):
        with open(os.path.join(os.path.dirname(__file__), "calls.txt"), "a") as file:
            file.write(json.dumps([os.getpid(), list(prompts)]) + "\\n")
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        return prompt.rpartition("say: ")[2]
"""
PYTEST_INI = """
[pytest]
filterwarnings =
    error
    ignore:.*pytest_jsonreport.*
"""
# Installed for other reasons, of no use inside, and half of the time that a small run takes.
NEEDLESS = ("anyio", "hypothesispytest", "pytest_cov", "randomly", "repeat", "rerunfailures", "timeout")
# Installed for one test alone; in every other run it warns of an option that it wants to be set.
# On a terminal so wide nothing is dropped or shortened; test_narrow_terminals.py has a narrow one.
_QUIET = {"PYTEST_ADDOPTS": "-pno:asyncio", "COLUMNS": "400"}
FORKED = """\
Its runs of pytest and lmeval were forks of a process that has done the imports (tests/fork_server.py), not commands.
To run it with commands: pytest --all "{test}"
If it fails only as a fork, the fault is in the fork server, and not in the package."""
# How long a test waits for what is sure to come, on the slowest and busiest of machines: it ends a hang, no more.
PATIENCE_S = 300.0
# pytest's cache keeps the names of the tests that passed in this file.
PASSED = "tests/passed"
BOARD_KEYS = """
    schema timestamp adapter adapter_options complete overall_score counts tasks categories manifest digest
"""
ROW_KEYS = """
    task path sha256 metric score stderr ci95 correct total errors timeouts excluded unparsed latency_ms threshold
    min_score metrics subjects
"""


class RunModule(Protocol):
    """How tests run pytest and lmeval in a folder of their own."""

    def __call__(
        self, folder: Path, module: str, /, *arguments: str | Path, **environment: str
    ) -> CompletedProcess[str]: ...


MadeOnce = Callable[[str, Callable[[Path], object]], Path]
# The same test in one process and, as a run of the tests chooses, in worker processes.
BOTH = ["-n0", pytest.param("-n2", marks=pytest.mark.again)]
# The same examples in every run, however slow the machine; --hypothesis-profile=explore draws new ones.
settings.register_profile("explore", max_examples=USUAL, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("all", settings.get_profile("explore"), derandomize=True)
settings.register_profile("steady", settings.get_profile("all"), max_examples=15)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def children_heed_ctrl_c() -> Iterator[None]:
    """Have the processes that tests start heed SIGINT, also where this one ignores it: a shell's background job."""
    ignored = (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread()
    )
    if ignored:
        # A handler of its own is reset when another program is started; to ignore would be inherited.
        signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run slow tests, too, and every run of pytest as a command")
    parser.addoption(
        "--again", action="store_true", help="run tests marked again, too: in a browser, in other ways, simulations"
    )
    parser.addoption(
        "--not-passed-in",
        type=Path,
        metavar="CHECKOUT",
        help="run what did not pass there when it was last run: what was skipped, and tests marked again",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a misspelt need and a checkout where nothing passed, name the markers and load how much is drawn."""
    needs.required()
    passed_elsewhere(config)
    if fault := of_another_tree(importlib.util.find_spec("pytest_lmeval")):
        raise pytest.UsageError(fault)
    if config.getoption("all") and not config.getoption("--hypothesis-profile", None):
        settings.load_profile("all")
    config.addinivalue_line("markers", "command_line: runs of pytest in this test are commands, not forks of a server")
    config.addinivalue_line("markers", "slow: needs --all; what it tests is sampled by a test that does not")
    config.addinivalue_line(
        "markers",
        "again: needs --again, -m or --all, and in the second half of .ci/run: in a browser, in another way than a "
        "test without the mark (say in workers), a simulation, or a test of what lies beside the package",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marks, passed = left_out(config), passed_elsewhere(config)
    unwanted = {
        item for item in items if item.nodeid in passed or any(mark.name in marks for mark in item.iter_markers())
    }
    config.hook.pytest_deselected(items=[*unwanted])
    items[:] = [item for item in items if item not in unwanted]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among thousands of tests while they are found, which is a third of the time, and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def left_out(config: pytest.Config) -> dict[str, str]:
    """Return the marks whose tests this run leaves out, each with how to run them."""
    if config.getoption("all"):
        return {}
    found = {"slow": "slow tests run with --all"}
    # Who selects by the mark wants them.
    asked = config.getoption("again") or config.getoption("not_passed_in") or "again" in config.getoption("markexpr")
    if not asked:
        found["again"] = "those marked again (in a browser, in other ways, simulations) with --again"
    return found


def passed_elsewhere(config: pytest.Config) -> frozenset[str]:
    """Return the tests that passed in the checkout that ``--not-passed-in`` names."""
    checkout = config.getoption("not_passed_in")
    if checkout is None:
        return frozenset()
    try:
        return frozenset(json.loads((checkout / ".pytest_cache/v" / PASSED).read_text("utf-8")))
    except FileNotFoundError:
        raise pytest.UsageError(f"--not-passed-in: no test has passed in {checkout}: run ./check there") from None


def remember_passed(config: pytest.Config, stats: dict[str, list[Any]]) -> None:
    """Keep which tests passed when they were last run here; two runs may end at once."""
    cache = getattr(config, "cache", None)  # pytest has none with -p no:cacheprovider
    if cache is None:
        return
    passed = {report.nodeid for report in stats.get("passed", ())}
    others = {report.nodeid for kind in ("skipped", "failed", "error") for report in stats.get(kind, ())}
    with (cache.mkdir("tests") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cache.set(PASSED, sorted(({*cache.get(PASSED, ())} | passed) - others))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a failure that what failed was a fork, and how to see whether the command does the same."""
    report = yield
    if report.failed and runs_are_forks(item):
        report.sections.append(("how pytest ran in this test", FORKED.format(test=item.nodeid)))
    return report


def runs_are_forks(item: pytest.Item) -> bool:
    """Tell whether runs of pytest and lmeval in this test are forks of the server, not commands."""
    fixtures = {"project", "run_module"} & {*getattr(item, "fixturenames", ())}
    is_command = item.get_closest_marker("command_line") is not None and "project" in fixtures
    return bool(fixtures) and not is_command and not item.config.getoption("all")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which tests were left out, and why, and remember which passed."""
    remember_passed(terminalreporter.config, terminalreporter.stats)
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[-1]).removeprefix("Skipped: ") for report in reports)
    told = ", ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    marked = [f"; {how}" for how in left_out(terminalreporter.config).values()]
    terminalreporter.write_line(f"left out: {len(reports)} test(s){': ' if told else ''}{told}{''.join(marked)}")


class Started:
    """A run under way, the leader of its process group."""

    def __init__(self, process: Any, output: Path) -> None:
        self.process = process
        self._output = output

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; fail if the run ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self._output.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def stop(self, number: int, *, group: bool = False) -> tuple[int, str]:
        """Send a signal; return the exit code and the output when the run has ended."""
        try:
            (os.killpg if group else os.kill)(self.process.pid, number)
            return self.process.wait(PATIENCE_S), self._output.read_text()
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def write_anew(path: Path, content: bytes) -> None:
    """Write a file so that no compiled module of what stood there is taken for it: they are told by size and second."""
    before = path.stat().st_mtime if path.exists() else None
    path.write_bytes(content)
    if before is not None:
        os.utime(path, (before + 1, before + 1))


class Project:
    """A folder with task files, a model and a pytest.ini; every run is a process of its own."""

    usual: Sequence[str] = ("--lm-adapter=model:Model",)
    """The options of :meth:`run`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("model.py", MODEL)
        self.write("pytest.ini", PYTEST_INI)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def copy(self, project: str, *names: str) -> None:
        """Copy these files of ``tests/projects/PROJECT``, or all."""
        folder = PROJECTS / project
        needs.of_projects(*[f"{project}/{name}" for name in names or [""]])
        if not names:
            shutil.copytree(folder, self.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for name in names:
            self.write(name, (folder / name).read_bytes())

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file once."""
        content = (self.path / name).read_text("utf-8")
        assert 1 == content.count(old), f"{name} holds {content.count(old)} times {old!r}"
        write_anew(self.path / name, content.replace(old, new).encode())

    def task(self, name: str, *records: dict[str, Any]) -> Path:
        return self.write(name, "".join(json.dumps(record) + "\n" for record in records))

    def prompts(self, *prompts: str, target: str | None = None) -> None:
        """Write a task of one example per prompt; the right answer is ``target``, or the prompt itself."""
        fields = {"metric": "exact_match"}
        rows = [
            {"id": f"e{number}", "prompt": prompt, "targets": [prompt if target is None else target], **fields}
            for number, prompt in enumerate(prompts)
        ]
        self.task("tasks/t.jsonl", *rows)

    def small_tasks(self) -> None:
        """Write two tasks of five examples, of which ``arith_2`` is answered wrongly."""
        arith_2 = self.spec("arith_2", "5", target="4")
        self.task("tasks/arithmetic.jsonl", self.spec("arith_1", "4"), arith_2, self.spec("arith_3", "6"))
        self.task("tasks/words.jsonl", self.record("blue", "blue"), self.record("red", "red"))

    @staticmethod
    def record(id: str, said: str, target: str | None = None, **extras: Any) -> dict[str, Any]:
        """Return a compact record that the model answers with ``said``."""
        metric = extras.pop("metric", "exact_match")
        targets = [said if target is None else target]
        return {"id": id, "prompt": f"say: {said}", "targets": targets, "metric": metric, "extras": extras}

    @staticmethod
    def spec(task_id: str, said: str, target: str | None = None, **fields: Any) -> dict[str, Any]:
        """Return a strict record that the model answers with ``said``."""
        fixed = {"category": "arithmetic", "metric_name": "exact_match", "post_process": "strip_whitespace"}
        targets = [said if target is None else target]
        return {"task_id": task_id, "prompt": f"say: {said}", "targets": targets, **fixed, **fields}

    def run_pytest(self, *args: str | Path, timeout: float = PATIENCE_S) -> pytest.RunResult:
        """Run pytest with exactly these arguments, in the order of the files."""
        return self.pytester.runpytest_subprocess(*[f"-pno:{name}" for name in NEEDLESS], *args, timeout=timeout)

    def run(self, *args: str | Path, timeout: float = PATIENCE_S) -> pytest.RunResult:
        """Run pytest with the usual options and these; an adapter among these takes the place of the usual one."""
        names_adapter = any(str(arg).startswith("--lm-adapter=") for arg in args)
        usual = [option for option in self.usual if not (names_adapter and option.startswith("--lm-adapter="))]
        return self.run_pytest(*usual, *args, timeout=timeout)

    def start(self, *args: str | Path) -> Started:
        """Start pytest with exactly these arguments, in a process group of its own, and return at once."""
        output = self.path / "output.txt"  # no pipe: workers that outlive their controller for a moment hold it open
        command = [sys.executable, "-mpytest", *[f"-pno:{name}" for name in NEEDLESS], *map(str, args)]
        with output.open("w") as file:
            process = self.pytester.popen(command, stdout=file, stderr=file, start_new_session=True)
        return Started(process, output)

    def lmeval(self, *args: str | Path) -> pytest.RunResult:
        """Run the command ``lmeval``."""
        return self.pytester.run(sys.executable, "-mpytest_lmeval.cli", *args, timeout=PATIENCE_S)

    def board(self, folder: str = "reports") -> dict[str, Any]:
        """Return leaderboard.json after checking what holds for every board."""
        board: dict[str, Any] = json.loads((self.path / folder / "leaderboard.json").read_text("utf-8"))
        counts = board["counts"]
        assert "pytest-lmeval/leaderboard/2" == board["schema"]
        assert set() == set(BOARD_KEYS.split()) - board.keys()
        assert all(set(ROW_KEYS.split()) <= row.keys() for row in board["tasks"])
        assert sorted(row["task"] for row in board["tasks"]) == [row["task"] for row in board["tasks"]]
        unscored = sum(counts[kind] for kind in ("errors", "timeouts", "excluded", "skipped", "missing"))
        assert counts["collected"] == counts["scored"] + unscored + counts.get("quarantined", 0)
        assert board["complete"] or board["overall_score"] is None
        return board

    def examples(self, folder: str = "reports") -> dict[str, dict[str, Any]]:
        """Return the per-example records of the board by ``task:id``."""
        rows = self.board(folder)["tasks"]
        return {f"{row['task']}:{record['id']}": record for row in rows for record in row["per_example"]}

    def ledger(self, folder: str = "reports") -> dict[str, dict[str, Any]]:
        """Return the results in ledger.jsonl by ``task:id``."""
        lines = map(json.loads, (self.path / folder / "ledger.jsonl").read_text("ascii").splitlines())
        return {f"{line['task']}:{line['id']}": line for line in lines if "status" in line}

    def calls(self) -> list[list[str]]:
        """Return the prompts of every call of the model so far, in the order of the calls."""
        return [prompts for _, prompts in self.asked("calls.txt")]

    def asked(self, file: str = "asked.txt", *, forget: bool = False) -> list[Any]:
        """Return what a model noted of its calls: a JSON value in each line of a file; ``forget`` removes the file."""
        path = self.path / file
        noted = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if forget:
            path.unlink(missing_ok=True)
        return noted

    def statuses(self) -> dict[str, str]:
        """Return the status of each example by its prompt."""
        return {record["prompt"]: record["status"] for record in self.examples().values()}


@pytest.fixture(scope="session")
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Provide a folder that the first worker to ask for it fills, for all of them: it is theirs to read only."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def run_module(
    request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> RunModule:
    """Provide ``python -m MODULE`` with nothing of what surrounds this test run in its environment.

    Runs are forks of a server, for speed; with ``--all``, they are the real command.
    """
    run = run_command if request.config.getoption("all") else fork_server.run
    # A run that has a folder of its own for temporary files does not tidy up those of every earlier run of tests.
    quiet = {**_QUIET, "PYTEST_DEBUG_TEMPROOT": str(tmp_path_factory.mktemp("of-runs"))}

    def run_in(folder: Path, module: str, /, *arguments: str | Path, **environment: str) -> CompletedProcess[str]:
        hidden = ("PYTEST_", "GITHUB_", "LM_", "OPENAI_", "CI", "BUILD_NUMBER")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        return run(module, *arguments, folder=folder, environment={**inherited, **quiet, **environment})

    return run_in


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, fork_server: ForkServer
) -> Project:
    """Provide an empty project; what surrounds this test run does not reach the runs inside it.

    Runs are forks of a server, for speed; those of tests that are marked ``command_line`` are the real command.
    """
    if runs_are_forks(request.node):
        monkeypatch.setattr(pytester, "popen", partial(fork_server.popen, pytester.popen))
    for name in [name for name in os.environ if name.startswith(("PYTEST_XDIST", "GITHUB_", "LM_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    # Where CI is set, pytest cuts no line of its summary.
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _QUIET.items():
        monkeypatch.setenv(name, value)
    return Project(pytester)
