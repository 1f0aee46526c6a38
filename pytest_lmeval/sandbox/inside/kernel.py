"""Make system calls for which Python has no function, and drop root's capabilities permanently."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
# Without this declaration, a pointer passed as an int would lose its upper half.
_syscall.argtypes = [ctypes.c_long] * 7
_syscall.restype = ctypes.c_long
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4

PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAP_SETPCAP = 8
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPGET = {"x86_64": 125, "aarch64": 90}
VERSION_3 = 0x20080522
MOST = 64


def syscall(number: int, *arguments: int) -> int:
    """Make a system call; raise OSError if it fails."""
    return _checked(_syscall(number, *arguments, *[0] * (6 - len(arguments))), f"system call {number}")


def prctl(option: int, *arguments: int) -> int:
    """Make the ``prctl`` system call; raise OSError if it fails."""
    return _checked(_prctl(option, *arguments, *[0] * (4 - len(arguments))), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def drop_capabilities() -> None:
    """Drop all capabilities, including the bounding set's if possible, and keep this process from gaining others."""
    machine = os.uname().machine
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    # The effective, permitted and inheritable sets: 32 bits of each, then the other 32 bits.
    sets = (ctypes.c_uint32 * 6)()
    syscall(CAPGET[machine], ctypes.addressof(header), ctypes.addressof(sets))
    for capability in range(MOST if sets[0] >> CAP_SETPCAP & 1 else 0):
        try:
            prctl(PR_CAPBSET_READ, capability)
        except OSError:
            # The kernel has no further capabilities.
            break
        prctl(PR_CAPBSET_DROP, capability)
    ctypes.memset(sets, 0, ctypes.sizeof(sets))
    syscall(CAPSET[machine], ctypes.addressof(header), ctypes.addressof(sets))
