"""The powers of root, given up for good."""

from __future__ import annotations

import ctypes

from . import kernel

PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAP_SETPCAP = 8
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPGET = {"x86_64": 125, "aarch64": 90}
VERSION_3 = 0x20080522
MOST = 64


def drop(machine: str) -> None:
    """Drop every capability, from the bounding set too where that is allowed; forbid to gain any."""
    kernel.prctl(PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    # Effective, permitted and inheritable, 32 bits at a time.
    sets = (ctypes.c_uint32 * 6)()
    kernel.syscall(CAPGET[machine], ctypes.addressof(header), ctypes.addressof(sets))
    if sets[0] >> CAP_SETPCAP & 1:
        _empty_bounding_set()
    ctypes.memset(sets, 0, ctypes.sizeof(sets))
    kernel.syscall(CAPSET[machine], ctypes.addressof(header), ctypes.addressof(sets))


def _empty_bounding_set() -> None:
    for capability in range(MOST):
        try:
            kernel.prctl(PR_CAPBSET_READ, capability)
        except OSError:
            # Beyond the last that this kernel has.
            return
        kernel.prctl(PR_CAPBSET_DROP, capability)
