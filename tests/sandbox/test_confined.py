"""What a confined program cannot do, and what it is told."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.sandbox import CodeStatus, Limits, ProgramRun, Sandbox, open_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux")
SMALL = Limits(cpu_s=0.5, wall_s=20.0, memory_bytes=192 << 20, disk_bytes=8 << 20)
DENIED = "(the sandbox denies it)"


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "canary"
    path.write_text("canary")
    path.chmod(0o640)
    return path


FILES = {
    "reads": "open({path!r}).read()",
    "writes": "open({path!r}, 'a')",
    "cuts off": "os.truncate({path!r}, 0)",
    "cuts off by opening": "os.open({path!r}, os.O_TRUNC)",
    "renames": "os.rename({path!r}, 'x')",
    "links": "os.link({path!r}, 'x')",
    "follows a link": "os.symlink({path!r}, 'x'); open('x').read()",
    "removes": "os.unlink({path!r})",
    "lists": "os.listdir(os.path.dirname({path!r}))",
    "makes a folder beside": "os.mkdir({path!r} + 'd')",
    "makes a named pipe beside": "os.mkfifo({path!r} + 'p')",
    "changes the mode": "os.chmod({path!r}, 0o777)",
    "changes the mode of its own file": "os.fchmod(os.open('x', os.O_CREAT), 0o777)",
    "changes the owner": "os.chown({path!r}, os.getuid(), os.getgid())",
    "changes the times": "os.utime({path!r})",
    "sets an attribute": "os.setxattr({path!r}, 'user.a', b'b')",
    "reads an attribute": "os.getxattr({path!r}, 'user.a')",
    "runs": "os.execv(sys.executable, ['python'])",
    "reads from /proc": "open('/proc/self/environ').read()",
    "lists the root": "os.listdir('/')",
    "lists the working folders": "os.listdir('..')",
    "writes to the standard library": "open(os.path.dirname(os.__file__) + '/x.py', 'w')",
    "reads an installed package": "open({package!r}).read()",
    "makes a device": "os.mknod('x', 0o600 | 0x2000, 0x103)",
    "mounts": "call('mount', b'none', b'.', b'tmpfs', 0, 0)",
}
OTHERS = {
    "signals its parent": "os.kill(os.getppid(), 0)",
    "signals the first process": "os.kill(1, 0)",
    "signals everyone": "os.kill(-1, 0)",
    "signals pytest": "os.kill({pid}, 0)",
    "stops pytest by pidfd": "os.pidfd_open({pid})",
    "limits pytest": "resource.prlimit({pid}, resource.RLIMIT_CORE)",
    "traces pytest": "call('ptrace', 16, {pid}, 0, 0)",
    "reads the memory of pytest": "call('process_vm_readv', {pid}, 0, 0, 0, 0, 0)",
    "forks": "os.fork() or os._exit(0)",
    "starts a process": "os.posix_spawn('/bin/true', ['true'], {{}})",
    "starts a process through a shell": "os.system('true') and call('vfork')",
    "makes a namespace": "call('unshare', 0x10000000)",
    "outlives its parent": "call('prctl', 1, 0, 0, 0, 0)",
    "has memory of no size": "os.memfd_create('x')",
    "shares memory": "call('shmget', 0, 4096, 0o1600)",
    "gives signals an owner": "__import__('fcntl').fcntl(1, 8, {pid})",
    "types into a terminal": "__import__('fcntl').ioctl(0, 0x5412, b'x')",
    "leaves its processors": "os.sched_setaffinity(0, [0])",
    "changes its user": "os.setuid(65534)",
}
NETWORK = {
    "opens TCP": "socket.socket()",
    "opens UDP": "socket.socket(type=socket.SOCK_DGRAM)",
    "opens IPv6": "socket.socket(socket.AF_INET6)",
    "opens a Unix socket": "socket.socket(socket.AF_UNIX)",
    "opens netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "opens a raw socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "opens vsock": "socket.socket(socket.AF_VSOCK)",
    "pairs datagrams": "socket.socketpair(type=socket.SOCK_DGRAM)",
    "connects a pair": "socket.socketpair()[0].connect('x')",
    "sends to an address": "socket.socketpair()[0].sendto(b'x', 'x')",
    "sends a message to an address": "socket.socketpair()[0].sendmsg([b'x'], [], 0, 'x')",
    "binds a pair": "socket.socketpair()[0].bind('x')",
}
CALL = """
import ctypes, os, resource, socket, sys
def call(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""


MAPPING = """
def fill(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(4):
        os.write(fd, bytes(1 << 20))
    return fd
def map_pages(flags, number, fd):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, number * 4096, 3, flags | 1, fd, 0)
    if address == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "mmap")
    fd == -1 or os.close(fd)
    return address
"""


def _run(confined: Sandbox, body: str, limits: Limits = SMALL) -> ProgramRun:
    return confined.call(f"{CALL}{MAPPING}\ndef f():\n    {body}\n    return 1", "f", [[]], limits)


def _state(path: Path) -> tuple[object, ...]:
    found = path.stat()
    return path.read_text(), found.st_mode, found.st_uid, found.st_mtime_ns, found.st_ctime_ns, found.st_nlink


@pytest.mark.parametrize("act", (FILES | OTHERS | NETWORK).values(), ids=FILES | OTHERS | NETWORK)
def test_a_forbidden_act_is_denied_and_the_reason_tells_so(act: str, canary: Path, confined: Sandbox) -> None:
    before = _state(canary), sorted(os.listdir(canary.parent))
    run = _run(confined, act.format(path=str(canary), pid=os.getpid(), package=pytest.__file__))

    assert "error" == run.status, act
    assert DENIED in run.reason or "OSError: [Errno 18]" in run.reason, run.reason
    assert before == (_state(canary), sorted(os.listdir(canary.parent)))


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    made = []
    # The path of a socket is short by the system's rules, that of a folder for tests may be long.
    short = tempfile.TemporaryDirectory(prefix="lm", dir="/tmp")
    addresses: list[tuple[socket.AddressFamily, socket.SocketKind, Any]] = [
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        (socket.AF_UNIX, socket.SOCK_DGRAM, f"{short.name}/path"),
        (socket.AF_UNIX, socket.SOCK_STREAM, f"\0lmeval-{os.getpid()}"),
    ]
    for family, kind, address in addresses:
        sock = socket.socket(family, kind)
        sock.bind(address)
        sock.settimeout(0.2)
        if kind == socket.SOCK_STREAM:
            sock.listen()
        made.append(sock)
    yield made
    for sock in made:
        sock.close()
    short.cleanup()


def test_no_listener_hears_of_a_program(listeners: list[socket.socket], confined: Sandbox) -> None:
    lines = [
        f"attempt(lambda: dial({sock.family!s}, {sock.type!s}, {sock.getsockname()!r}))".replace("AddressFamily.", "")
        for sock in listeners
    ]
    program = (
        "import socket\nfrom socket import *\n"
        "def dial(family, kind, address):\n    s = socket(family, kind); s.connect(address); s.send(b'x')\n"
        "def attempt(act):\n    try: act()\n    except PermissionError: return 'denied'\n"
        f"def f(): return [{', '.join(lines)}]"
    )
    program = "\n".join(line for line in program.split("\n") if line != "import socket")
    run = confined.call(program.replace("SocketKind.", ""), "f", [[]], SMALL)

    assert ["denied"] * 4 == run.answers[0].value, run
    for sock in listeners:
        with pytest.raises(TimeoutError):
            sock.accept() if sock.type == socket.SOCK_STREAM else sock.recv(9)


LIMITS: dict[str, tuple[str, CodeStatus, str]] = {
    "CPU": ("while True: pass", "timeout", "0.15 s of CPU"),
    "CPU in threads": (
        "import threading\n    def spin():\n        while True: pass\n"
        "    for _ in range(4): threading.Thread(target=spin, daemon=True).start()\n    spin()",
        "timeout",
        "0.15 s of CPU",
    ),
    "CPU, its limit's signal ignored": (
        "import signal\n    signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n    while True: pass",
        "timeout",
        "0.15 s of CPU",
    ),
    "memory": ("bytearray(10**10)", "error", "MemoryError"),
    "memory in shared mappings": ("import mmap\n    [mmap.mmap(-1, 1 << 26) for _ in range(9)]", "error", "OSError"),
    "one large file": ("open('x', 'wb').truncate(10**9)", "error", "File too large"),
    "many files": (
        "data = b'x' * (1 << 20)\n    for n in range(999999):\n        with open(str(n), 'wb') as o: o.write(data)\n"
        "        __import__('time').sleep(0.002)",
        "error",
        "bytes in files",
    ),
    "many files without a name": (
        "kept = []\n    for n in range(200):\n        kept.append(open('x', 'wb')); os.unlink('x')\n"
        "        kept[-1].write(b'x' * (1 << 18)); kept[-1].flush(); __import__('time').sleep(0.005)",
        "error",
        "bytes in files",
    ),
    "files without a name, of which one page is mapped": (
        "page = map_pages(0, 1, fill('x'))\n"
        "    while page: os.unlink('x'); page = map_pages(0, 1, fill('x')); __import__('time').sleep(0.005)",
        "error",
        "bytes in files",
    ),
    "memory that is shared with nobody": ("map_pages(0x20, 1 << 10, -1)", "error", "PermissionError"),
    "many threads": (
        "import threading, time\n    threading.stack_size(1 << 15)\n"
        "    for _ in range(9999): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "    time.sleep(60)",
        "error",
        "thread",
    ),
    "a crash": ("__import__('ctypes').string_at(0)", "error", "signal 11, SIGSEGV"),
    "an abort": ("os.abort()", "error", "signal 6, SIGABRT"),
    "an exit": ("os._exit(3)", "error", "status 3"),
    "its own end": ("os.killpg(0, 9)", "error", "signal 9, SIGKILL"),
    "a closed result pipe": ("os.closerange(3, 9); __import__('time').sleep(60)", "error", "closed the result pipe"),
    "a call of another architecture": ("import ctypes; ctypes.CDLL(None).syscall(0x40000000)", "error", "SIGSYS"),
}


@pytest.mark.parametrize(("body", "status", "reason"), LIMITS.values(), ids=LIMITS)
def test_a_limit_ends_a_program_and_is_named(body: str, status: CodeStatus, reason: str, confined: Sandbox) -> None:
    if "0x40000000" in body and os.uname().machine != "x86_64":
        pytest.skip("only x86-64 has a second interface")
    run = _run(confined, body, replace(SMALL, cpu_s=0.15) if status == "timeout" else SMALL)

    assert status == run.status, run
    assert reason in run.reason


def test_calls_that_the_kernel_does_not_have_yet_are_not_there(confined: Sandbox) -> None:
    body = (
        "l = ctypes.CDLL(None, use_errno=True)\n"
        "    return [(l.syscall(n, 0, 0), ctypes.get_errno()) for n in (435, 470, 9999)]"
    )

    answer = _run(confined, body).answers[0].value

    assert [{"tuple": [-1, 38]}] * 3 == answer


def test_a_program_leaves_its_standard_input_as_it_was(confined: Sandbox) -> None:
    changes = (
        "import fcntl\n    fcntl.flock(0, fcntl.LOCK_EX)\n    before = fcntl.fcntl(0, fcntl.F_GETFL)\n"
        "    fcntl.fcntl(0, fcntl.F_SETFL, before | os.O_NONBLOCK)\n    return before"
    )
    locks = "import fcntl\n    fcntl.flock(os.open(os.devnull, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    first, second = (_run(confined, changes).answers[0].value for _ in range(2))

    assert first == second
    assert "pass" == _run(confined, locks).status


def test_a_program_cannot_fill_the_queue_of_signals(sandbox: Sandbox) -> None:
    program = (
        "import ctypes, os, signal\ndef f():\n    libc = ctypes.CDLL(None)\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])\n"
        "    return sum(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0 for _ in range(1000))"
    )
    queued = sandbox.call(program, "f", [[]], SMALL).answers[0].value

    assert isinstance(queued, int)
    assert queued <= 256


@pytest.fixture
def apart(confined: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Provide a sandbox whose programs have their folders in ``tmp_path``, where no other process makes any."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_sandbox(confined.level) as sandbox:
        yield sandbox


def test_two_programs_at_once_cannot_reach_each_other(apart: Sandbox, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    waiting = (
        "import os, time\nopen('secret', 'w').write('x')\n"
        "def f():\n    while not os.path.exists('go'): time.sleep(0.01)\n    return os.getpid()"
    )
    looking = (
        "import os, time\n"
        "def f():\n    found = []\n    own = os.getcwd()\n    end = time.monotonic() + 0.3\n"
        "    while time.monotonic() < end:\n"
        "        n = int(os.path.basename(own))\n"
        "        for path in [f'../{k}/secret' for k in range(max(0, n - 9), n + 9) if k != n]:\n"
        "            try: found.append(open(path).read())\n            except PermissionError: found.append('denied')\n"
        "            except FileNotFoundError: pass\n"
        "        for pid in range(os.getpid() - 9, os.getpid() + 9):\n"
        "            if pid != os.getpid():\n"
        "                try: os.kill(pid, 9); found.append('killed')\n                except PermissionError: pass\n"
        "        time.sleep(0.02)\n    return sorted(set(found))"
    )
    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(apart.call, waiting, "f", [[]], Limits(wall_s=120))
        while not (found := [*tmp_path.glob("*/*/secret")]) and not waiter.done():
            time.sleep(0.01)
        looker = apart.call(looking, "f", [[]], Limits())
        for path in found:
            path.with_name("go").touch()

    assert ["value"] == [answer.kind for answer in waiter.result().answers]
    assert ["denied"] == looker.answers[0].value


def test_programs_that_together_use_more_than_one_may_all_pass_beside_one_another(confined: Sandbox) -> None:
    from concurrent.futures import ThreadPoolExecutor

    program = (
        "import time\ndef f():\n    end = time.process_time() + 0.08\n"
        "    while time.process_time() < end: pass\n    return 1"
    )
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: confined.call(program, "f", [[]], Limits(cpu_s=0.5)), range(8)))

    assert ["pass"] * 8 == [run.status for run in runs]


def test_output_of_any_size_comes_as_its_end(confined: Sandbox) -> None:
    run = _run(confined, "sys.stdout.write('x' * (8 << 20) + 'end')", Limits())

    assert ("pass", False, True) == (run.status, run.stdout_whole, run.stdout.endswith("xend"))
    assert Limits().output_bytes == len(run.stdout)


def test_a_program_starts_from_the_same_state_each_time(confined: Sandbox) -> None:
    body = "import json, builtins\n    builtins.mark = json.mark = 1\n    return [os.getpid(), hash('x')]"
    before = confined.call(
        "import json, builtins\ndef f(): return hasattr(json, 'mark') or hasattr(builtins, 'mark')", "f", [[]], SMALL
    )
    first, second = (_run(confined, body).answers[0].value for _ in range(2))
    after = confined.call(
        "import json, builtins\ndef f(): return hasattr(json, 'mark') or hasattr(builtins, 'mark')", "f", [[]], SMALL
    )

    assert (False, False) == (before.answers[0].value, after.answers[0].value)
    assert first[0] != second[0]
    assert first[1] == second[1]


def test_random_numbers_differ_between_programs(confined: Sandbox) -> None:
    program = "import random, uuid\ndef f(): return [random.random(), str(uuid.uuid4())]"
    first, second = (confined.call(program, "f", [[]], SMALL).answers[0].value for _ in range(2))

    assert not set(first) & set(second)


HOLDERS = {
    "open": "keep.append(fd)",
    "mapped": "keep.append(libc.mmap(None, 4096, 3, 1, fd, 0)); os.close(fd)",
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_removed_files_count_when_the_first_thread_has_ended(confined: Sandbox, hold: str) -> None:
    program = (
        "import ctypes, os, threading, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n"
        "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
        "def work():\n    time.sleep(0.05); keep = []\n    for number in range(24):\n"
        "        fd = os.open('f', os.O_RDWR | os.O_CREAT); os.unlink('f')\n"
        f"        os.write(fd, bytes(1 << 20)); {hold}\n        time.sleep(0.02)\n"
        "    time.sleep(1)\n    os._exit(0)\n"
        "def f():\n    threading.Thread(target=work).start(); libc.syscall(60, 0)\n"
    )
    ended = confined.call(program, "f", [[]], SMALL)
    assert "over the limit of 8388608 bytes in files" in ended.reason
