"""The client in a process of its own: the same answers, and no way for it to keep a run waiting."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.hosting import HelperProcess, HostedTransport, Spares
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate

ADAPTERS = """
import asyncio, os, time

class Echo:
    name = "echo"
    hostable = True

    async def complete(self, request):
        await asyncio.sleep(0)
        if request.text == "die":
            os._exit(7)
        if request.text == "block":
            time.sleep(60)
        if request.text == "raise":
            raise ValueError("boom")
        return f"{os.getpid()} {request.text}"
"""

CUT_OFF = """
class CutOff:
    name = "cut off"
    hostable = True

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        raise EOFError("the vocabulary is cut off")
"""

Ask = Callable[..., list[str]]


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "hosted_adapters.py").write_text(ADAPTERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("pytest_lmeval.asking.hosting._GRACE_S", 0.5)
    return importlib.import_module("hosted_adapters").Echo()


@pytest.fixture
def ask(echo: Any) -> Ask:
    """Provide a function from prompts to answers, or error texts, over a helper process."""

    def answers(*prompts: str, timeout_s: float = 20.0) -> list[str]:
        engine = Engine(echo, Policy(concurrency=64, timeout_s=timeout_s, retries=0))
        assert isinstance(engine._sender._transport, HostedTransport)
        numbers = iter(range(len(prompts)))
        engine.plan([range(len(prompts))], lambda: next(numbers, None))
        texts = []
        for number in range(len(prompts)):
            try:
                (response,) = engine.respond(number, lambda key: [Generate(prompts[key])])
            except AdapterError as error:
                texts.append(str(error))
            else:
                assert isinstance(response, Completion)
                texts.append(response.text)
        engine.close()
        return texts

    return answers


def test_many_answers_come_back_in_order_from_one_other_process(ask: Ask) -> None:
    prompts = [f"p{number}" for number in range(3000)]
    answers = [answer.split() for answer in ask(*prompts)]

    assert prompts == [text for _, text in answers]
    (process,) = {process for process, _ in answers}
    assert str(os.getpid()) != process


def test_a_helper_that_is_closed_has_ended(echo: Any) -> None:
    transport, job = HostedTransport(echo, Policy(), inbox := Inbox()), Job([Generate("p")])
    transport.submit([job])
    assert inbox.wait(job, 20.0)
    transport.close()
    assert transport._helper is not None
    assert 0 == transport._helper.process.returncode


def test_a_helper_that_hangs_is_ended_when_it_is_closed(echo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.asking.hosting._GRACE_S", 0.1)
    transport = HostedTransport(echo, Policy(), Inbox())
    transport.submit([Job([Generate("p")])])
    assert transport._helper is not None
    transport._helper.process.send_signal(signal.SIGSTOP)
    transport.close()
    assert -signal.SIGKILL == transport._helper.process.returncode


def test_what_an_adapter_raises_is_the_error_of_its_request(ask: Ask) -> None:
    first, second = ask("raise", "fine")

    assert "adapter echo raised ValueError: boom (hosted_adapters.py:15 in complete) (1 attempt)" == first
    assert second.endswith(" fine")


def test_a_helper_that_dies_is_an_error_of_what_it_owed_and_is_replaced(ask: Ask) -> None:
    # More than a window: what was not sent yet goes to the next helper.
    answers = ask("die", *[f"p{number}" for number in range(600)])

    assert "the helper process that sends the requests ended with status 7" == answers[0]
    assert answers[-1].endswith(" p599")


def test_a_loop_that_is_blocked_in_the_helper_does_not_keep_the_run_waiting(ask: Ask) -> None:
    answers = ask("block", *[f"p{number}" for number in range(600)], timeout_s=4.0)

    assert "the helper process that sends the requests does not respond" in answers[0]
    assert answers[-1].endswith(" p599")


@pytest.fixture
def spares() -> Iterator[Spares]:
    """Provide one helper process that was begun ahead."""
    begun = Spares([["json", "no.such.module"]])
    yield begun
    begun.close()


def _answer(spares: Spares, adapter: Any) -> tuple[str, HelperProcess]:
    """Return what a helper answers that is taken from the spares, and the helper."""
    taken: list[HelperProcess] = []

    def take() -> HelperProcess:
        taken.append(spares.take())
        return taken[0]

    transport, job = HostedTransport(adapter, Policy(), inbox := Inbox(), take), Job([Generate("p")])
    transport.submit([job])
    assert inbox.wait(job, 20.0)
    transport.close()
    (answer,) = job.answers or ()
    assert isinstance(answer, Completion)
    return answer.text, taken[0]


def _ignored(pid: int, number: int) -> bool:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:")]
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)


def test_a_helper_that_was_begun_ahead_asks_and_finds_what_came_on_the_path_since(spares: Spares, echo: Any) -> None:
    (begun,) = spares._left
    # As Ctrl-C while pytest collects, which the parent decides about.
    deadline = time.monotonic() + 60
    while not _ignored(begun.process.pid, signal.SIGINT):
        assert begun.process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    begun.process.send_signal(signal.SIGINT)

    text, used = _answer(spares, echo)

    assert (f"{begun.process.pid} p", begun) == (text, used)


def test_a_helper_that_has_died_is_not_taken(spares: Spares, echo: Any) -> None:
    (begun,) = spares._left
    begun.process.kill()
    begun.process.wait()

    text, used = _answer(spares, echo)

    assert begun is not used
    assert f"{used.process.pid} p" == text


@pytest.mark.parametrize("what", ["variable", "folder"])
def test_a_helper_is_not_taken_where_a_new_one_would_find_something_else(
    spares: Spares, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    (begun,) = spares._left
    if what == "variable":
        monkeypatch.setenv("OPENAI_API_KEY", "another")
    else:
        monkeypatch.chdir(tmp_path)

    (taken := spares.take()).close()

    assert begun is not taken
    assert -signal.SIGKILL == begun.process.returncode


def test_the_name_of_the_test_that_runs_is_no_reason_to_start_another(spares: Spares) -> None:
    (begun,) = spares._left
    os.environ["PYTEST_CURRENT_TEST"] = "the second (call)"
    (taken := spares.take()).close()
    assert begun is taken


def test_where_no_process_can_be_started_ahead_one_is_started_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, echo: Any
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", refuses)
        spares = Spares([[], []])

    text, used = _answer(spares, echo)
    assert f"{used.process.pid} p" == text


def test_a_helper_that_dies_before_its_first_message_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/bin/false")
        spares = Spares([[]])
    (begun,) = spares._left
    begun.process.wait()
    begun.send("more than it will read")

    (taken := spares.take()).close()

    assert (1, -signal.SIGKILL) == (begun.process.returncode, taken.process.returncode)


def test_an_adapter_that_the_helper_cannot_read_is_no_quiet_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut_off_adapters.py").write_text(CUT_OFF, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    adapter: Any = importlib.import_module("cut_off_adapters").CutOff()
    transport, job = HostedTransport(adapter, Policy(), inbox := Inbox()), Job([Generate("p")])
    transport.submit([job])
    assert inbox.wait(job, 20.0)
    transport.close()
    assert "EOFError: the vocabulary is cut off" in capfd.readouterr().err
