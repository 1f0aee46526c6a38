"""Define the levels of confinement and the probes of their layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Level:
    """A level of confinement; ``layers`` maps layers to their probes, in the order in which the child applies them."""

    name: str
    layers: Mapping[str, str]


# A probe is a program whose ``f()`` returns True if the layer works. It tests behaviour, because a kernel may accept a
# call but ignore it.
LIMITS = """\
def f():
    import resource
    try:
        bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])
    except (MemoryError, OverflowError):
        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return False
"""

TREE = """\
def f():
    import os
    start, go = os.pipe()
    back, tell = os.pipe()
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setsid()
            os.read(start, 1)
            os.write(tell, str(os.getppid()).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    os.write(go, b".")
    return int(os.read(back, 20)) == os.getppid()
"""

CAPABILITIES = """\
def f():
    import ctypes
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    no_new_privileges = libc.prctl(39, 0, 0, 0, 0) == 1
    return no_new_privileges and libc.capget(header, sets) == 0 and not any(sets)
"""

LANDLOCK = """\
import os

def f():
    return all(map(denied, [
        lambda: os.listdir("/"),
        lambda: os.listdir(".."),
        lambda: open("/etc/passwd"),
        lambda: open("../canary"),
        lambda: open("../canary", "ab"),
        lambda: os.truncate("../canary", 0),
        lambda: os.rename("../canary", "stolen"),
        lambda: os.link("../canary", "stolen"),
        lambda: os.unlink("../canary"),
        lambda: os.mkdir("../folder"),
        lambda: open(os.__file__, "ab"),
    ]))

def denied(act):
    try:
        act()
    except OSError as error:
        return error.errno in (1, 13, 18)
    return False
"""

SECCOMP = """\
import os, resource, signal, socket

def f():
    return all(map(denied, [
        lambda: os.fork() or os._exit(0),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        lambda: os.chmod("../canary", 0o644),
        lambda: os.chown("../canary", os.getuid(), os.getgid()),
        lambda: os.utime("../canary"),
        lambda: os.setxattr("../canary", "user.a", b"b"),
        lambda: os.kill(os.getppid(), 0),
        lambda: os.kill(1, 0),
        lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
        lambda: os.memfd_create("a"),
    ]))

def denied(act):
    try:
        act()
    except PermissionError:
        return True
    return False
"""

PROCESS = {"limits": LIMITS, "tree": TREE}
CONFINED = {"limits": LIMITS, "capabilities": CAPABILITIES, "landlock": LANDLOCK, "seccomp": SECCOMP}

LEVELS: Mapping[str, Level] = {
    level.name: level for level in (Level("confined", CONFINED), Level("container", PROCESS), Level("process", PROCESS))
}


class Ends(NamedTuple):
    """The program's ends of its four pipes; the caller must close them."""

    request: int
    result: int
    stdout: int
    stderr: int
