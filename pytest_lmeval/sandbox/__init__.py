"""Run untrusted programs and return their values, but never a verdict.

Each program runs in a separate process, in an empty private working folder and without the user's environment
variables. The sandbox limits CPU time, memory, files and processes. The process receives one request at a time, and
answers with plain data on a dedicated pipe. The caller compares the values with the expected answers, which never enter
the program's process. The exit status and the output of the process never decide a score. A ``check(candidate)`` runs
in a second process that shares nothing with the program.

At the level ``confined``, the kernel also denies network access, access to other processes, and process creation. The
only files that a confined program may access are in its working folder, the standard library and the libraries that it
needs. Levels other than ``confined`` have only the separate process and the limits. ``docs/sandbox.md`` lists the
attacks that each level does not stop.
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
"""The name that ``ProgramRun`` had in version 0.1.1."""
