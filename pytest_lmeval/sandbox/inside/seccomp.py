"""Filter system calls; deny every call that is not listed.

A filter is a program for the kernel's classic packet filter. A binary search finds the range that contains the call's
number; each range has one action.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import kernel
from .syscalls import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .syscalls import Machine

    # A test passes if the masked word at an offset is one of the values; a check is a list of tests.
    Test = tuple[int, int, tuple[int | str, ...]]
    Action = int | tuple[Test, ...]
    Instruction = tuple[int, int, int, int | str]

ALLOW = 0x7FFF0000
KILL = 0x80000000
DENY = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS

LOAD, AND, RETURN, JUMP, IF_EQUAL, IF_AT_LEAST = 0x20, 0x54, 0x06, 0x05, 0x15, 0x35
NUMBER, ARCHITECTURE = 0, 4
# This bit selects the x32 interface of a 64-bit kernel.
X32 = 0x40000000
WHOLE = 0xFFFFFFFF
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

SELF, GROUP = "self", "group"


def _argument(number: int, *values: int | str, mask: int = WHOLE, half: int = 0) -> tuple[Test, ...]:
    return ((16 + 8 * number + 4 * half, mask, values),)


THREAD = 0x3D0F00
DETACHED, NONBLOCK, CLOEXEC = 0x400000, 0x800, 0x80000
CHECKED: Mapping[str, Action] = {
    # Allow only the creation of threads, which needs exactly these flags. Some C libraries add a flag that has no
    # effect.
    "clone": _argument(0, THREAD, mask=WHOLE ^ DETACHED),
    # Deny the flag that gives a thread a separate table of descriptors, because no limit would count them.
    "close_range": _argument(2, 0, 4),
    # The flags of clone3 are in memory that a filter cannot read. Without clone3, C libraries use clone.
    "clone3": ABSENT,
    # Deny the commands that set a file's owner, the process that receives signals about the file.
    "fcntl": _argument(1, 0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032),
    # Allow requests for a terminal's attributes and size, bytes to read, non-blocking mode and close-on-exec.
    "ioctl": _argument(1, 0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451),
    "kill": _argument(0, SELF, 0, GROUP),
    # Deny shared memory without a file: its unmapped parts stay allocated, but the memory limit does not count them.
    "mmap": _argument(3, 0, 1, 0x20, mask=0x21),
    # Allow access to the thread's name, bounding set and no-new-privileges flag, and to names of memory areas.
    "prctl": _argument(0, 15, 16, 23, 39, 0x53564D41),
    "prlimit64": _argument(0, 0, SELF),
    "rt_sigqueueinfo": _argument(0, SELF),
    "rt_tgsigqueueinfo": _argument(0, SELF),
    # Deny addresses: with an address, a datagram could reach any socket that has a path.
    "sendto": _argument(4, 0) + _argument(4, 0, half=1),
    # Allow only Unix stream sockets.
    "socketpair": _argument(0, 1) + _argument(1, 1, mask=WHOLE ^ NONBLOCK ^ CLOEXEC),
    "tgkill": _argument(0, SELF),
    "tkill": _argument(0, SELF),
}
# The server also needs these calls to fork, end, watch and confine its children. Its filter stays on the children, so
# only their own filters can restrict the calls that depend on the process id.
SERVER = """
clone kill landlock_add_rule landlock_create_ruleset landlock_restrict_self pidfd_open prctl prlimit64 recvmsg
rt_sigqueueinfo rt_tgsigqueueinfo setsid tgkill tkill
"""


class Filter:
    """A filter that is built once; each process that installs it inserts its process id."""

    def __init__(self, more: str = "", here: Machine | None = None) -> None:
        here = here or machine()
        policy: dict[str, Action] = {name: ALLOW for name in here.numbers if name not in SERVER.split()}
        policy |= {**CHECKED, **dict.fromkeys(more.split(), ALLOW)}
        program: list[Instruction] = [
            (LOAD, 0, 0, ARCHITECTURE),
            (IF_EQUAL, 1, 0, here.token),
            (RETURN, 0, 0, KILL),
            (LOAD, 0, 0, NUMBER),
            *_search(_regions(here, policy)),
        ]
        self._holes = [(8 * place + 4, line[3]) for place, line in enumerate(program) if isinstance(line[3], str)]
        self._code = b"".join(
            struct.pack("HBBI", *line[:3], 0 if isinstance(line[3], str) else line[3]) for line in program
        )

    def code(self, pid: int) -> bytes:
        """Return the filter's program for the process ``pid``."""
        code = bytearray(self._code)
        for offset, number in self._holes:
            struct.pack_into("I", code, offset, pid if number == SELF else -pid & WHOLE)
        return bytes(code)

    def install(self) -> None:
        """Install the filter in this process and its future forks; raise OSError if that fails."""
        code = self.code(os.getpid())
        kept = ctypes.create_string_buffer(code, len(code))
        program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(kept)))
        kernel.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))


def _regions(here: Machine, policy: Mapping[str, Action]) -> list[tuple[int, Action]]:
    """Return the first number and the action of each range of system calls with the same action."""
    named = {here.numbers[name]: action for name, action in policy.items() if name in here.numbers}
    found: list[tuple[int, Action]] = []
    for number in range(here.ranges[-1][1] + 2):
        used = any(first <= number <= last for first, last in here.ranges)
        action = named.get(number, DENY if used else ABSENT)
        if not found or found[-1][1] != action:
            found.append((number, action))
    return [*found, (X32, KILL)]


def _search(regions: Sequence[tuple[int, Action]]) -> list[Instruction]:
    """Return code that finds the range that contains the call's number, and applies the range's action."""
    if len(regions) == 1:
        action = regions[0][1]
        return [(RETURN, 0, 0, action)] if isinstance(action, int) else [*_tests(action), (RETURN, 0, 0, ALLOW)]
    half = len(regions) // 2
    low, high = _search(regions[:half]), _search(regions[half:])
    # A conditional jump can skip at most 255 instructions.
    return [(IF_AT_LEAST, 0, 1, regions[half][0]), (JUMP, 0, 0, len(low)), *low, *high]


def _tests(tests: Iterable[Test]) -> Iterable[Instruction]:
    for offset, mask, values in tests:
        yield LOAD, 0, 0, offset
        if mask != WHOLE:
            yield AND, 0, 0, mask
        for left, value in zip(range(len(values), 0, -1), values, strict=True):
            yield IF_EQUAL, left, 0, value
        yield RETURN, 0, 0, DENY
