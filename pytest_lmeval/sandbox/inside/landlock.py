"""Limit the files that a process may access, with the kernel's Landlock.

Landlock hides neither the existence of a file nor the result of ``stat``, and does not prevent ``chdir``. The system
call filter denies changes to modes, owners, times and attributes.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
GET_VERSION = 1
PATH_BENEATH = 1
# This flag keeps denied calls out of the machine's audit log.
QUIET = 1

WRITE_FILE, READ_FILE, LIST, TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_FIFO, MAKE_SYM, REFER = (1 << n for n in (4, 5, 7, 8, 10, 12, 13))
# The rights that a rule for a file may grant. The first right is execution, and the last is ioctl on a device.
OF_FILES = 1 << 0 | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15

READ = READ_FILE | LIST
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
WORK = READ | DEVICE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_FIFO | MAKE_SYM | REFER

# The number of file rights, by the version of the kernel's interface.
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
NEWEST_RIGHTS = 16
BIND_AND_CONNECT = 3
SIGNALS_AND_SOCKETS = 3

Rule = tuple[int, int]


def abi() -> int:
    """Return the kernel's version of Landlock; raise OSError if the kernel has no Landlock."""
    return kernel.syscall(CREATE_RULESET, 0, 0, GET_VERSION)


def rule(path: str, rights: int) -> Rule | None:
    """Return a rule granting ``rights`` to ``path`` and everything below it, or None if ``path`` cannot be opened."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    return fd, rights if os.path.isdir(path) else rights & OF_FILES


def restrict(version: int, rules: Iterable[Rule]) -> None:
    """Deny this process and its forks all access that no rule grants; raise OSError if that fails.

    If the kernel supports it, also deny TCP, connections to abstract sockets of other processes, and signals to
    other processes.
    """
    handled = (1 << RIGHTS.get(version, NEWEST_RIGHTS)) - 1
    # An older kernel accepts zeros in fields that it does not recognize.
    attributes = _buffer("QQQ", handled, BIND_AND_CONNECT * (version >= 4), SIGNALS_AND_SOCKETS * (version >= 6))
    ruleset = kernel.syscall(CREATE_RULESET, ctypes.addressof(attributes), len(attributes), 0)
    try:
        for fd, rights in rules:
            grant = _buffer("=Qi", rights & handled, fd)
            kernel.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.addressof(grant), 0)
        kernel.syscall(RESTRICT_SELF, ruleset, QUIET * (version >= 7))
    finally:
        os.close(ruleset)


def _buffer(layout: str, *fields: int) -> ctypes.Array[ctypes.c_char]:
    data = struct.pack(layout, *fields)
    return ctypes.create_string_buffer(data, len(data))
