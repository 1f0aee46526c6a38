"""Programs that try to harm the run or to take more than they may, where only the design stops them."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.sandbox import CodeStatus, Limits, ProgramRun, open_sandbox
from tests.descriptors import descriptors_by_target

SANDBOX = open_sandbox("process")
SMALL = Limits(cpu_s=0.5, wall_s=20.0, memory_bytes=128 << 20)
# For what ends by it.
BRIEF = replace(SMALL, cpu_s=0.15)
LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux")


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no test leaves a scratch folder, a descriptor or a child."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    children = _children()
    before = descriptors_by_target()
    yield
    assert [] == glob.glob(str(tmp_path / "lmeval-*"))
    # Those of an earlier test may be closed meanwhile, by the garbage collector or by a thread: only new ones count.
    assert set() == descriptors_by_target() - before
    assert children == _children()


def _children() -> set[int]:
    """Return the children of this process, where the kernel lists them."""
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task") if os.path.exists("/proc/self/task") else ():
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as listing:
            found.update(map(int, listing.read().split()))
    return found


def run(program: str, limits: Limits = SMALL) -> ProgramRun:
    return SANDBOX.call(program, "f", [[1]], limits)


ENDINGS: dict[str, tuple[str, CodeStatus, str]] = {
    "a spin": ("def f(x):\n    while True: pass", "timeout", "CPU"),
    "a spin while loading": ("while True: pass", "timeout", "CPU"),
    "a spin in C": ("def f(x): return sum(range(10**12))", "timeout", "CPU"),
    "a spin in one long number": ("def f(x): return len(str(7 ** (10**7)))", "timeout", "CPU"),
    "a spin that ignores signals": (
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "def f(x):\n    while True: pass",
        "timeout",
        "CPU",
    ),
    "a spin in threads": (
        "import threading\ndef spin():\n    while True: pass\ndef f(x):\n"
        "    for _ in range(4): threading.Thread(target=spin).start()\n    spin()",
        "timeout",
        "CPU",
    ),
    "a spin in a grandchild": (
        "import os\ndef f(x):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\n    os.wait()",
        "timeout",
        "CPU",
    ),
    "a spin in an orphan": (
        "import os, time\ndef f(x):\n    if os.fork() == 0:\n        if os.fork() == 0:\n            os.setsid()\n"
        "            while True: pass\n        os._exit(0)\n    time.sleep(60)",
        "timeout",
        "CPU",
    ),
    "much memory": ("def f(x): return len(bytearray(10**10))", "error", "MemoryError"),
    "memory bit by bit": (
        "def f(x):\n    kept = []\n    while True: kept.append(bytearray(10**7))",
        "error",
        "MemoryError",
    ),
    "endless recursion": ("def f(x): return f(x)", "error", "RecursionError"),
    "a large file": (
        "def f(x):\n    with open('large', 'wb') as file:\n        file.truncate(10**9)\n        return 1",
        "error",
        "File too large",
    ),
    "many open files": (
        "def f(x): return len([open('/dev/null') for _ in range(10**4)])",
        "error",
        "Too many open files",
    ),
    "a fork bomb": (
        "import os, time\ndef f(x):\n    for _ in range(7): os.fork()\n    time.sleep(60)",
        "error",
        "processes",
    ),
    "a crash": ("import ctypes\ndef f(x): ctypes.string_at(0)", "error", "signal 11"),
    "an abort": ("import os\ndef f(x): os.abort()", "error", "signal 6"),
    "an exit": ("import os\ndef f(x): os._exit(3)", "error", "status 3"),
    "a killed supervisor": (
        "import os\ndef f(x):\n    os.kill(os.getppid(), 9)\n    while True: pass",
        "error",
        "supervisor",
    ),
    "a killed process group": ("import os\ndef f(x): os.killpg(0, 9)", "error", "signal 9"),
    "a terminated session": ("import os\ndef f(x): os.killpg(os.getsid(0), 15)", "error", "signal 15"),
    "a closed result pipe": (
        "import os, time\ndef f(x):\n    os.closerange(3, 64)\n    time.sleep(60)",
        "error",
        "closed",
    ),
}


@LINUX
@pytest.mark.parametrize(("program", "status", "reason"), ENDINGS.values(), ids=ENDINGS)
def test_an_attack_ends_with_a_status_and_a_reason(program: str, status: CodeStatus, reason: str) -> None:
    ended = run(program, BRIEF if status == "timeout" else SMALL)

    assert status == ended.status, ended
    assert reason in ended.reason
    assert 1 == len(ended.answers)
    assert "value" != ended.answers[0].kind


def test_a_sleeper_is_ended_by_the_hang_guard() -> None:
    ended = run("import time\ndef f(x): time.sleep(600)", Limits(wall_s=0.5))

    assert ("timeout", "no end after 0.5 s of wall time") == (ended.status, ended.reason)


def test_a_stopped_supervisor_is_ended_by_the_hang_guard() -> None:
    ended = run("import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)", Limits(wall_s=0.5))

    assert "timeout" == ended.status


def test_a_program_that_reads_no_request_does_not_block_the_parent() -> None:
    program = "import time\ndef f(x): time.sleep(600)"

    ended = SANDBOX.call(program, "f", [["x" * 10**7]] * 2, Limits(wall_s=0.5))

    assert ("timeout", ["none", "none"]) == (ended.status, [answer.kind for answer in ended.answers])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_neither_blocks_nor_fills_the_parent(stream: str) -> None:
    ended = run(f"import sys\ndef f(x):\n    while True: sys.{stream}.write('spam' * 5000)", BRIEF)

    assert "timeout" == ended.status
    assert Limits().output_bytes == len(getattr(ended, stream))


def test_much_output_fails_no_value() -> None:
    ended = run("def f(x):\n    print('spam' * 10**6)\n    return x")

    assert ("pass", False) == (ended.status, ended.stdout_whole)
    assert 1 == ended.answers[0].value


@pytest.mark.parametrize(
    "value",
    [
        "(lambda d: [d := [d] for _ in range(101)][-1])([])",
        "(lambda d: [d := (d,) for _ in range(99999)][-1])(())",
        "10 ** 4214",
        "-10 ** 10000",
        "'x' * (4 * 1024 * 1024)",
        "['x' * 1024] * 5000",
        "(lambda d: d.append(d) or d)([])",
        "object()",
        "1j",
        "{1: object()}",
        "(n for n in [1])",
        "type('T', (type,), {'__name__': property(lambda s: 1 / 0)})('U', (), {})()",
        "__import__('decimal').Decimal(1)",
    ],
)
def test_a_value_that_is_not_plain_data_is_a_failed_answer_and_no_more(value: str) -> None:
    ended = SANDBOX.evaluate("x = 1", [value, "x"], SMALL)

    assert ("pass", ["unfit", "value"]) == (ended.status, [answer.kind for answer in ended.answers])
    assert ended.answers[0].text


@pytest.mark.parametrize("value", ["10 ** 4214 - 1", "'x' * (4 * 1024 * 1024 - 100)", "{'a': [(1, {2}), b'x', None]}"])
def test_a_value_at_the_limits_crosses(value: str) -> None:
    assert ["value"] == [answer.kind for answer in SANDBOX.evaluate("", [value], SMALL).answers]


CHMODS = {
    "itself": "os.chmod('.', 0)",
    "folders inside": "os.makedirs('a/b/c'); open('a/b/c/d', 'w').close(); os.chmod('a/b', 0); os.chmod('a', 0)",
    "very deep folders": "[(os.mkdir('dddd'), os.chdir('dddd')) for _ in range(1100)]",
    "many files": "[open(str(n), 'w').close() for n in range(500)]",
    "odd names": "open('a\\nb', 'w').close(); open(b'\\xff', 'w').close(); open('-rf', 'w').close()",
    "its own removal": "import shutil; shutil.rmtree(os.getcwd())",
}


@pytest.mark.parametrize("action", CHMODS.values(), ids=CHMODS)
def test_scratch_is_removed_whatever_the_program_left(action: str) -> None:
    ended = run(f"import os\ndef f(x):\n    {action}\n    return 1")

    # The fixture looks at what is left.
    assert "pass" == ended.status, ended.reason


def test_links_out_of_scratch_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o755)
    (precious / "file").write_text("kept")
    mode = precious.stat().st_mode

    ended = run(
        f"import os\ndef f(x):\n    os.symlink({str(precious)!r}, 'link')\n    os.mkdir('d')\n    os.chmod('d', 0)"
    )

    assert "pass" == ended.status
    assert ("kept", mode) == ((precious / "file").read_text(), precious.stat().st_mode)


SURVIVORS = {
    "a child": "if os.fork() == 0: stay()",
    "a child in a session of its own": "if os.fork() == 0: os.setsid(); stay()",
    "a daemon": "if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: stay()\n"
    "        os._exit(0)\n    os.wait()",
    "another program": "subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "one that ignores signals": "signal.signal(15, signal.SIG_IGN)\n    if os.fork() == 0: stay()",
    "one that kills the supervisor": "if os.fork() == 0: os.setsid(); stay()\n    os.kill(os.getppid(), 9)",
}
# Each takes its name along, by which it is looked for, and nothing else that tells where it is from.
STRAYS = {
    "in the working folder": "pass",
    "with a file in it": "os.set_inheritable(os.open('kept', os.O_CREAT | os.O_RDWR), True); os.chdir('/')",
    "of a program in it": "program = shutil.copy(program, 'copy'); program = os.path.abspath(program); os.chdir('/')",
}


@LINUX
@pytest.mark.parametrize("action", SURVIVORS.values(), ids=SURVIVORS)
def test_no_process_outlives_the_run(action: str, tmp_path: Path) -> None:
    run(
        "import os, signal, subprocess, time\ndef stay():\n    while True: time.sleep(600)\n"
        f"def f(x):\n    {action}\n    return 1"
    )

    # What was killed last may be gone a moment later.
    deadline = time.monotonic() + 60
    while _started_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [] == _started_in(tmp_path)


@LINUX
@pytest.mark.parametrize("action", STRAYS.values(), ids=STRAYS)
def test_a_process_that_left_its_session_parent_and_environment_does_not_outlive_the_run(
    action: str, tmp_path: Path
) -> None:
    name = f"stray-of-{tmp_path.name}"
    # The end of the pipe says that the other program runs.
    run(
        "import fcntl, os, shutil\n"
        "def f(x):\n    out, into = os.pipe()\n    into = [into, fcntl.fcntl(into, fcntl.F_DUPFD_CLOEXEC, 50)]\n"
        "    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            null = os.open('/dev/null', os.O_RDWR)\n            [os.dup2(null, fd) for fd in range(9)]\n"
        f"            program = shutil.which('sleep', path='/bin:/usr/bin')\n            {action}\n"
        f"            os.execve(program, [{name!r}, '600'], {{}})\n        os._exit(0)\n"
        "    list(map(os.close, into))\n    os.wait()\n"
        "    os.read(out, 1)\n    os.kill(os.getppid(), 9)\n    while True: pass"
    )
    deadline = time.monotonic() + 60
    while _named(name) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = _named(name)
    for pid in left:
        os.kill(pid, 9)
    assert [] == left


def _named(name: str) -> list[int]:
    """Return the processes whose first argument is ``name``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes().startswith(name.encode() + b"\0"):
                found.append(int(process.name))
    return found


def _started_in(folder: Path) -> list[str]:
    """Return what the kernel tells of each process whose environment names ``folder``, where scratch folders lie."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in (process / "environ").read_bytes():
                found.append((process / "status").read_text())
    return found


@LINUX
def test_a_run_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    script = (
        "from pytest_lmeval.sandbox import Limits, open_sandbox\n"
        'program = \'import time\\nopen("alive", "w").close()\\ntime.sleep(600)\'\n'
        "open_sandbox('process').script(program, Limits())\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen([sys.executable, "-c", script], env=environment)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("lmeval-*/alive")) and time.monotonic() < deadline:
        time.sleep(0.01)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    while (list(tmp_path.iterdir()) or _started_in(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert [] == list(tmp_path.iterdir())
    assert [] == _started_in(tmp_path)


_LETS_GO = """
import os, threading, time
from pytest_lmeval.sandbox import Limits, fresh, open_sandbox

launch = fresh.FreshLauncher.launch

def launched(*arguments):
    child = launch(*arguments)
    threading.Thread(target=let_go, args=[child]).start()
    return child

def let_go(child):
    while not os.path.exists(os.path.join(child._scratch.path, "alive")):
        time.sleep(0.01)
    os.close(child._control)

fresh.FreshLauncher.launch = launched
try:
    open_sandbox("process").script("import time; open('alive', 'w').close(); time.sleep(600)", Limits())
finally:
    time.sleep(600)
"""


@LINUX
def test_a_process_that_has_lost_its_pipes_is_gone_though_it_has_children_still(tmp_path: Path) -> None:
    import subprocess
    import sys

    # As in the moment of its death, between the end of its descriptors and that of its place as a parent.
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen([sys.executable, "-c", _LETS_GO], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline, was_there = time.monotonic() + 120, False
        while not was_there and time.monotonic() < deadline:
            time.sleep(0.001)
            # It may be gone a moment later.
            was_there = any(tmp_path.iterdir())
        assert was_there
        while list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [] == list(tmp_path.iterdir())
    finally:
        harness.kill()
        harness.wait()
