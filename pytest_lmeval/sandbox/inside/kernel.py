"""Calls into the kernel that Python has no function for."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
# All seven, always: a pointer that is passed as an int would lose its upper half.
_syscall.argtypes = [ctypes.c_long] * 7
_syscall.restype = ctypes.c_long
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def syscall(number: int, *arguments: int) -> int:
    """Make a system call; raise OSError if it fails."""
    result: int = _syscall(number, *arguments, *[0] * (6 - len(arguments)))
    if result < 0:
        _fail(f"system call {number}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Make the system call prctl; raise OSError if it fails."""
    result: int = _prctl(option, *arguments, *[0] * (4 - len(arguments)))
    if result < 0:
        _fail(f"prctl {option}")
    return result


def _fail(what: str) -> None:
    error = ctypes.get_errno()
    raise OSError(error, f"{what}: {os.strerror(error)}")
