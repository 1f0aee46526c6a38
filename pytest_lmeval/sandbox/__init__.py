"""Runs programs that nobody trusts, and returns values, never verdicts.

A program gets a process of its own, started afresh, without the user's environment, with an empty private working
folder and limits on CPU time, memory, files and processes. It is sent one request at a time and answers with plain
data on a dedicated pipe. What it should have answered is not in that process: the caller compares. Its exit status
and what it prints mean nothing. A ``check(candidate)`` runs in a second process that the program shares nothing with.

At the level ``confined`` the kernel keeps the program from every file but the standard library and its working
folder, from the network, from other processes and from starting any. The other levels have the design above and
limits, no more. ``docs/sandbox.md`` says what each does not stop.
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
"""Its name in version 0.1.1."""
