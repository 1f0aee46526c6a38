"""The process that works under a time limit: what it answers, when it is killed, and when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.worker import MetricWorker, TookTooLong
from tests import needs

ENDLESS = ('{"pattern": "^(a+)+$"}', ["a" * 60 + "!"])


@pytest.fixture
def worker() -> Iterator[MetricWorker]:
    worker = MetricWorker(cpu_limit_s=0.3)
    yield worker
    worker.close()


def _pid(worker: MetricWorker) -> int:
    assert worker._process is not None
    return worker._process.pid


def test_a_question_without_end_is_killed_and_the_next_is_answered(worker: MetricWorker) -> None:
    needs.installed("jsonschema")
    with pytest.raises(TookTooLong, match=r"^json_schema took more than 0\.3 s of CPU time$"):
        worker.ask("json_schema", *ENDLESS)
    assert ["valid", True] == worker.ask("json_schema", '{"pattern": "^(a+)+$"}', ["aaa"])


def test_one_process_answers_one_question_after_the_other(worker: MetricWorker) -> None:
    assert 1 == worker.ask("rouge_l", ["a"], ["a", "b"])
    first = _pid(worker)
    assert 2 == worker.ask("rouge_l", ["a", "b"], ["a", "b"])
    assert first == _pid(worker)


def test_a_process_that_was_killed_between_questions_costs_none(worker: MetricWorker) -> None:
    assert 1 == worker.ask("rouge_l", ["a"], ["a"])
    os.kill(_pid(worker), signal.SIGKILL)
    assert worker._process is not None
    worker._process.wait()
    assert 1 == worker.ask("rouge_l", ["a"], ["a"])


def test_a_process_that_ends_over_a_question_is_an_error_and_no_verdict(
    worker: MetricWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> tuple[list[object], ...]:
        os.kill(_pid(worker), signal.SIGKILL)
        return [worker._process], [], []

    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.select.select", kill)
    with pytest.raises(ScoringError, match="json_schema: its process was killed") as error:
        worker.ask("json_schema", *ENDLESS)
    assert not isinstance(error.value, TookTooLong)


def test_a_job_that_raises_is_an_error_with_its_text(worker: MetricWorker) -> None:
    needs.installed("jsonschema")
    with pytest.raises(ScoringError, match=r"^json_schema raised JSONDecodeError: Expecting value"):
        worker.ask("json_schema", "no schema", [1])


def test_threads_get_each_its_own_answer(worker: MetricWorker) -> None:
    def ask(length: int) -> Any:
        return worker.ask("rouge_l", ["a"] * length, ["a"] * 100)

    with ThreadPoolExecutor(8) as pool:
        assert [*range(100)] == list(pool.map(ask, range(100)))


def test_an_interrupted_question_leaves_no_answer_to_the_next(
    worker: MetricWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert 1 == worker.ask("rouge_l", ["a"], ["a"])
    with monkeypatch.context() as patched:
        patched.setattr("pytest_lmeval.metrics.parts.worker.select.select", interrupt)
        with pytest.raises(KeyboardInterrupt):
            worker.ask("rouge_l", ["a"] * 7, ["a"] * 7)
    assert 1 == worker.ask("rouge_l", ["a"], ["a"])


def test_the_process_ends_with_its_worker() -> None:
    worker = MetricWorker()
    assert 1 == worker.ask("rouge_l", ["a"], ["a"])
    process = worker._process
    assert process is not None
    del worker
    assert process.poll() is not None


_FORK = """
import os, sys
from pytest_lmeval.metrics.parts.worker import shared_worker

def ask():
    assert 1 == shared_worker().ask("rouge_l", ["a"], ["a"])
    return shared_worker()._process.pid

ours = ask()
shared_worker()._lock.acquire()  # as a thread has it that is asking just then
child = os.fork()
if child == 0:
    theirs = ask()
    sys.exit(0 if theirs != ours else 1)
assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
shared_worker()._lock.release()
assert ours == ask()
print(ours)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_has_its_own_and_the_process_ends_with_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=300)
    assert (0, "") == (done.returncode, done.stderr)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


_INTRUDER = """
import socket, subprocess, sys

def parse(text, **_):
    tries = {"file": lambda: open(text, "w"), "net": lambda: socket.create_connection(("127.0.0.1", 9)),
             "program": lambda: subprocess.run([sys.executable, "-V"])}
    for name, act in tries.items():
        try:
            act()
        except PermissionError:
            continue
        raise ValueError(name + " was open")
    return [text]

def verify(*_, **__):
    return True
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's; elsewhere the limits alone hold")
def test_the_process_writes_no_file_reaches_no_network_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: MetricWorker
) -> None:
    package = tmp_path / "math_verify"
    package.mkdir()
    package.joinpath("__init__.py").write_text(_INTRUDER)
    package.joinpath("parser.py").write_text("extract_match = LatexExtractionConfig = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "equal" == worker.ask("math_equal", str(tmp_path / "x"), "1")
    assert not (tmp_path / "x").exists()
