"""The server that forks programs: how it starts, dies, is replaced, and ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.sandbox import Limits, Sandbox, open_sandbox, scratch
from pytest_lmeval.sandbox.forkserver import _Server
from pytest_lmeval.sandbox.levels import Ends
from tests.descriptors import descriptors_by_target

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux")
WHO = "import os\ndef f(): return [os.getppid(), os.getcwd()]"
SLEEP = "import time\nopen('alive', 'w').close()\ntime.sleep(600)"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Provide a sandbox of this test alone, whose folders are below ``tmp_path``."""
    open_sandbox("confined").close()  # it takes over what a probe may have started
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_sandbox("confined") as sandbox:
        yield sandbox


def test_the_first_sandbox_goes_on_with_the_process_that_the_probe_started() -> None:
    code = (
        "import subprocess, sys\n"
        "from pytest_lmeval.sandbox import Limits, open_sandbox, probe_level\n"
        "started, start = [], subprocess.Popen.__init__\n"
        "subprocess.Popen.__init__ = lambda *a, **k: (started.append(a[1][0]), start(*a, **k))[1]\n"
        "missing = probe_level('confined')\n"
        "for _ in 'ab':\n"
        "    with open_sandbox('confined') as sandbox:\n"
        "        answers = sandbox.call('def f(): return 1', 'f', [[]], Limits()).answers\n"
        "        print(answers[0].value, started.count(sys.executable))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ["1 1", "1 2"] == done.stdout.splitlines()


def _who(sandbox: Sandbox) -> tuple[int, Path]:
    server, folder = sandbox.call(WHO, "f", [[]], Limits()).answers[0].value
    return server, Path(folder)


def _await(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listing.read_text(encoding="ascii").split())
    return found


def test_all_programs_come_from_one_server_and_leave_nothing(own: Sandbox, tmp_path: Path) -> None:
    (first, folder), (second, other) = _who(own), _who(own)

    assert first == second
    assert folder != other
    assert [folder.parent] == list(tmp_path.iterdir())
    assert {"canary", "packages", "stderr"} == set(os.listdir(folder.parent))


def test_nothing_is_left_after_the_end_and_it_may_be_started_again(own: Sandbox, tmp_path: Path) -> None:
    before = descriptors_by_target()
    server, _ = _who(own)
    own.close()
    left = list(tmp_path.iterdir()), descriptors_by_target() - before
    again, _ = _who(own)

    assert ([], set()) == left
    assert _gone(server)
    assert again != server


def test_a_sandbox_that_is_forgotten_ends_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server, _ = _who(open_sandbox("confined"))

    _await(lambda: _gone(server))
    assert [] == list(tmp_path.iterdir())


def test_a_server_that_died_is_replaced(own: Sandbox) -> None:
    server, _ = _who(own)
    os.kill(server, signal.SIGKILL)
    _await(lambda: _gone(server))

    assert server != _who(own)[0]


def test_a_server_that_dies_under_a_program_costs_it_nothing(own: Sandbox, tmp_path: Path) -> None:
    server, _ = _who(own)
    program = "import time\nopen('alive', 'w').close()\ndef f():\n    time.sleep(1)\n    return 42"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(own.call, program, "f", [[]], Limits())
        _await(lambda: list(tmp_path.glob("*/*/alive")))
        [child] = _children(server)
        os.kill(server, signal.SIGKILL)
        answer = running.result().answers[0].value

    assert 42 == answer
    assert _gone(child)


def test_a_server_that_dies_twice_is_an_error_of_the_sandbox(own: Sandbox) -> None:
    server, _ = _who(own)
    running = threading.Event()
    running.set()

    def kill() -> None:
        killed: set[int] = set()
        while running.is_set():
            for child in set(_children(os.getpid())) - killed:
                with contextlib.suppress(OSError):
                    if b"_lmeval_inside" in Path(f"/proc/{child}/cmdline").read_bytes() and _children(child):
                        os.kill(child, signal.SIGKILL)
                        killed.add(child)
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(SandboxError, match=r"server (died|is gone)"):
            own.script(SLEEP, Limits())
    finally:
        running.clear()
        killer.join()
    assert _gone(server)


HARNESS = """
import threading
from pytest_lmeval.sandbox import Limits, open_sandbox
sandbox = open_sandbox("confined")
for _ in range(2):
    threading.Thread(target=sandbox.script, args=({program!r}, Limits())).start()
"""


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Provide a process with a server below it, and two programs that run below that."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", HARNESS.format(program=SLEEP)], env=environment)
    _await(lambda: len(list(tmp_path.glob("*/*/alive"))) == 2)
    yield process
    process.kill()
    process.wait()


def test_a_killed_harness_leaves_no_process_and_no_file(harness: subprocess.Popen[bytes], tmp_path: Path) -> None:
    [server] = _children(harness.pid)
    programs = _children(server)
    harness.kill()
    harness.wait()

    _await(lambda: all(map(_gone, [server, *programs])))
    assert 2 == len(programs)
    _await(lambda: not list(tmp_path.iterdir()))


def test_the_next_start_removes_what_was_killed_together_with_its_server(
    harness: subprocess.Popen[bytes], own: Sandbox, tmp_path: Path
) -> None:
    [server] = _children(harness.pid)
    [folder] = tmp_path.iterdir()
    programs = _children(server)
    _who(own)
    kept = folder.exists()
    own.close()
    os.kill(harness.pid, signal.SIGSTOP)
    # The stop takes time: until then the harness could still tidy up after its server.
    os.waitpid(harness.pid, os.WUNTRACED)
    os.kill(server, signal.SIGKILL)
    harness.kill()
    harness.wait()
    _await(lambda: all(map(_gone, programs)))
    litter = folder.exists()
    _who(own)

    assert (True, True) == (kept, litter)
    assert not folder.exists()


def test_a_forked_process_has_a_server_of_its_own(own: Sandbox) -> None:
    server, _ = _who(own)
    inlet, outlet = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of threads, of which this process may have some.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.write(outlet, str(_who(own)[0]).encode())
            own.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(outlet)
    with os.fdopen(inlet) as file:
        theirs = int(file.read())

    assert server != theirs
    assert _gone(theirs)
    assert server == _who(own)[0]


def test_a_server_that_is_gone_when_a_program_is_handed_over_is_an_error_of_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server = _Server(())
    server._process.kill()
    server._process.wait()
    with open(os.devnull) as null, pytest.raises(SandboxError, match="server is gone"):
        server.start(Limits(), Ends(*[null.fileno()] * 4))
    server.close()


def test_no_room_for_a_scratch_folder_is_an_error_of_the_sandbox(own: Sandbox) -> None:
    _, folder = _who(own)
    os.chmod(folder.parent, 0o500)
    if os.geteuid() == 0:
        # The rights of a folder say nothing to root; that it is none does.
        folder.parent.rename(folder.parent.with_name("moved"))

    with pytest.raises(SandboxError, match="no scratch folder"):
        own.call(WHO, "f", [[]], Limits())
    if os.geteuid() == 0:
        folder.parent.with_name("moved").rename(folder.parent)
    os.chmod(folder.parent, 0o700)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Provide a folder on a disk that has room for a few files only."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=12", "none", str(disk)], check=False)
    if done.returncode:
        pytest.skip("this root cannot mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_an_error_of_the_program_and_then_of_the_sandbox(
    full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(full_disk))
    with open_sandbox("confined") as sandbox:
        fills = sandbox.call("def f(): open('x', 'wb').write(bytes(1 << 20))", "f", [[]], Limits())
        works = sandbox.call("def f(): return 1", "f", [[]], Limits())
        with contextlib.suppress(OSError):
            for number in range(12):
                (full_disk / str(number)).touch()
        with pytest.raises(SandboxError, match=r"no scratch folder.*No space left"):
            sandbox.call("def f(): return 1", "f", [[]], Limits())

    assert ("error", True) == (fills.status, "No space left" in fills.reason)
    assert "pass" == works.status


def test_a_server_that_cannot_start_is_an_error_that_quotes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: Sandbox
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no libpython' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    with pytest.raises(SandboxError, match=r"did not start: exit status 127; no libpython"):
        own.call(WHO, "f", [[]], Limits())
    assert [broken] == list(tmp_path.iterdir())


def test_no_more_programs_run_at_a_time_than_are_said_to(own: Sandbox, tmp_path: Path) -> None:
    program = (
        "import os, time\nopen('alive', 'w').close()\ndef f():\n    while not os.path.exists('go'): time.sleep(0.01)"
    )
    with ThreadPoolExecutor(9) as pool:
        running = [pool.submit(own.call, program, "f", [[]], Limits(wall_s=120)) for _ in range(9)]
        _await(lambda: own.parallel <= len(list(tmp_path.glob("*/*/alive"))))
        time.sleep(0.3)  # for one more to begin, if it may
        most = len(list(tmp_path.glob("*/*/alive")))
        while not all(future.done() for future in running):
            for path in tmp_path.glob("*/*/alive"):
                with contextlib.suppress(FileNotFoundError):
                    path.with_name("go").touch()
            time.sleep(0.01)

    assert own.parallel == most
    assert ["pass"] * 9 == [future.result().status for future in running]


def test_workers_share_the_cpus_out() -> None:
    cpus = len(os.sched_getaffinity(0))

    assert cpus + 1 == open_sandbox("confined").parallel
    assert 2 == open_sandbox("confined", workers=cpus).parallel == open_sandbox("process", workers=999).parallel


def test_a_folder_in_use_is_not_swept_and_one_that_is_not_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used = scratch.make()
    left = tmp_path / f"{scratch.PREFIX}left"
    (left / "deep").mkdir(parents=True)
    (left / "deep").chmod(0)
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(tmp_path)
    (tmp_path / "other").mkdir()
    scratch.sweep()

    assert {Path(used.path).name, f"{scratch.PREFIX}link", "other"} == set(os.listdir(tmp_path))
    used.remove()
    assert not os.path.exists(used.path)
