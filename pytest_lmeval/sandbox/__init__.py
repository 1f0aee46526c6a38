"""Run untrusted programs and return their values, never a verdict.

Each program runs in its own process, without the user's environment, in an empty private working folder, with limits on
CPU time, memory, files and processes. The process receives one request at a time and answers with plain data on a
dedicated pipe. The caller compares values with the expected answers, which never enter that process. The exit status
and the output never decide a score. A ``check(candidate)`` runs in a second process that shares nothing with the
program.

At the level ``confined``, the kernel also denies the program the network, access to other processes, new processes, and
every file except the standard library and its working folder. The other levels have only the separate process and the
limits. ``docs/sandbox.md`` lists what each level does not stop.
"""

from __future__ import annotations

from pytest_lmeval.sandbox.core import Sandbox
from pytest_lmeval.sandbox.opening import best_level, execute_code, open_sandbox, probe_level, require_level
from pytest_lmeval.sandbox.results import Answer, CodeStatus, ExecutionResult, Limits, ProgramRun

__all__ = [
    "Answer",
    "CodeStatus",
    "ExecutionResult",
    "Limits",
    "ProgramRun",
    "Run",
    "Sandbox",
    "best_level",
    "execute_code",
    "open_sandbox",
    "probe_level",
    "require_level",
]

Run = ProgramRun
"""The name of ``ProgramRun`` in version 0.1.1."""
