"""When a program counts as one that only waits."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from pytest_lmeval.sandbox import Limits, ProgramRun, Sandbox, idle
from pytest_lmeval.sandbox.idle import LOOK_S, Idleness

linux_only = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
MOST_S = 2.0
LOOKS = int(MOST_S / LOOK_S)


class Clock:
    """A program as `look` sees it, and a clock that goes on by itself."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.used_s = 0.0
        self.states = b"S"
        self.written = 0

    def idle_after(
        self,
        looks: int,
        used_s: float = 0.0,
        passed_s: float = LOOK_S,
        written: int = 0,
        most_in_all_s: float = math.inf,
    ) -> bool:
        """Whether one of so many looks, between which that much happens, finds that the program only waits."""
        watch = Idleness(MOST_S, most_in_all_s)
        for _ in range(looks):
            self.now += passed_s
            self.used_s += used_s
            self.written += written
            if watch.look([1], self.written):
                return True
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(idle, "_look", lambda pid: (clock.used_s, frozenset(clock.states)))
    yield clock
    # pytest reads the real one.
    monkeypatch.undo()


def test_a_program_that_sleeps_is_idle_after_the_limit_and_not_before(clock: Clock) -> None:
    assert (False, True) == (clock.idle_after(LOOKS), clock.idle_after(LOOKS + 1))


@pytest.mark.parametrize("states", [b"R", b"SSR", b"D", b"Z", b"X", b""], ids=repr)
def test_a_program_that_wants_the_cpu_or_a_disk_or_has_ended_is_not_idle(states: bytes, clock: Clock) -> None:
    clock.states = states

    assert not clock.idle_after(10 * LOOKS)


@pytest.mark.parametrize("states", [b"T", b"SZ", b"St"], ids=repr)
def test_a_program_that_stopped_itself_or_left_threads_behind_is_idle(states: bytes, clock: Clock) -> None:
    clock.states = states

    assert clock.idle_after(LOOKS + 1)


def test_a_little_cpu_time_is_what_waiting_costs_and_more_is_work(clock: Clock) -> None:
    assert clock.idle_after(3 * LOOKS, used_s=0.004 * LOOK_S)
    assert not clock.idle_after(10 * LOOKS, used_s=0.1 * LOOK_S)


def test_a_program_that_writes_is_not_idle(clock: Clock) -> None:
    assert not clock.idle_after(10 * LOOKS, written=1)


def test_what_a_program_does_in_between_does_not_give_it_more_time_to_wait_in_all(clock: Clock) -> None:
    most = partial(clock.idle_after, used_s=0.1 * LOOK_S, written=1, most_in_all_s=2 * MOST_S)

    assert (False, True) == (most(2 * LOOKS - 1), most(2 * LOOKS))
    clock.states = b"SR"
    assert not most(10 * LOOKS)


def test_a_time_in_which_nobody_looked_counts_as_a_short_one(clock: Clock) -> None:
    assert not clock.idle_after(3, passed_s=3600.0)


def test_a_new_question_starts_anew(clock: Clock) -> None:
    watch = Idleness(MOST_S)
    found = []
    for _ in range(3):
        watch.restart()
        for _ in range(LOOKS):
            clock.now += LOOK_S
            found.append(watch.look([1], 0))

    assert not any(found)


def test_a_program_of_which_nothing_is_known_is_not_idle() -> None:
    watch = Idleness(1e-9)

    assert not any([watch.look([], 0), watch.look([], 0), watch.look([2**22 + 1], 0), watch.look([2**22 + 1], 0)])


@linux_only
def test_the_state_and_the_time_of_a_process_are_read_whatever_its_name_is() -> None:
    program = "open('/proc/self/comm', 'w').write(') R 1 (x'); sum(range(10**7)); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while (found := idle._look(process.pid))[1] != frozenset(b"S"):
            pass
        process.communicate(b"\n")

    assert 0.03 < found[0] < 60.0


# More than a hundredth of a CPU, or a byte, begins a new stretch of waiting.
BUSY_WAITERS = {
    "uses the CPU now and then": "while True:\n        time.sleep(0.3)\n"
    "        end = time.process_time() + 0.008\n        while time.process_time() < end: pass",
    "writes now and then": "while True: time.sleep(0.2); print('.', flush=True)",
}
WAITERS = {
    "sleeps": "time.sleep(600)",
    "sleeps in small steps": "while True: time.sleep(0.25)",  # on a busy machine waking up is work
    "waits in a thread that is not the first": "threading.Thread(target=lock.acquire).start()\n    lock.acquire()",
    "stops itself": "os.kill(os.getpid(), 19)",
}


@pytest.fixture(scope="module")
def ended(sandbox: Sandbox) -> dict[str, ProgramRun]:
    """Run what waits side by side: it takes time and needs no CPU."""
    waits = "import os, threading, time\nlock = threading.Lock()\nlock.acquire()\ndef f():\n    "
    begun: dict[str, Callable[[], ProgramRun]] = {
        "a nap": partial(
            sandbox.call, "import time\ndef f(x): time.sleep(1); return x", "f", [[1], [2], [3]], Limits(cpu_s=0.4)
        ),
        "a slow script": partial(
            sandbox.script,
            "import time\nfor n in range(6):\n    time.sleep(0.6)\n    print(n, flush=True)",
            Limits(cpu_s=0.4),
        ),
    }
    if os.path.isdir("/proc/self/task"):
        begun |= {
            act: partial(sandbox.call, waits + act, "f", [[]], Limits(cpu_s=0.2))
            for act in (*WAITERS.values(), *BUSY_WAITERS.values())
        }
    with ThreadPoolExecutor(len(begun)) as pool:
        return dict(zip(begun, pool.map(lambda begin: begin(), begun.values()), strict=True))


@linux_only
@pytest.mark.parametrize("act", WAITERS.values(), ids=WAITERS)
def test_a_program_that_only_waits_is_given_up_early(act: str, ended: dict[str, ProgramRun]) -> None:
    run = ended[act]

    assert ("timeout", "used no CPU time for 2.2 s: it slept or waited") == (run.status, run.reason)


@linux_only
@pytest.mark.parametrize("act", BUSY_WAITERS.values(), ids=BUSY_WAITERS)
def test_a_program_that_does_a_little_while_it_waits_is_given_up_before_the_guard(
    act: str, ended: dict[str, ProgramRun]
) -> None:
    run = ended[act]

    assert ("timeout", "slept or waited for 4.4 s in all") == (run.status, run.reason)


def test_a_program_that_sleeps_for_a_while_passes(ended: dict[str, ProgramRun]) -> None:
    assert [1, 2, 3] == [answer.value for answer in ended["a nap"].answers]


def test_a_script_that_sleeps_and_prints_goes_on(ended: dict[str, ProgramRun]) -> None:
    run = ended["a slow script"]

    assert ("pass", "0\n1\n2\n3\n4\n5\n") == (run.status, run.stdout), run
