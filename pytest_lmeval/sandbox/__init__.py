"""Runs programs that nobody trusts, and returns values, never verdicts.

A program gets a process of its own, started afresh, without the user's environment, with an empty private working
folder and limits on CPU time, memory, files and processes. It is sent one request at a time and answers with plain
data on a dedicated pipe. What it should have answered is not in that process: the caller compares. Its exit status
and what it prints mean nothing. A ``check(candidate)`` runs in a second process that the program shares nothing with.

What the level ``process`` does not stop, and ``container`` leaves to the container: a program may read and write
whatever the user may, the task file with the expected values among it; fill the disk, up to the size limit of each
file; use the network; signal, and where the system allows it trace, every process of the user, pytest included. Its
limits on memory and files hold for each process, and it may start up to 64. CPU time of processes that it does not
wait for counts only as far as the supervisor saw it, every 20 ms. Where ``/proc`` does not exist, processes that
leave the session of the program outlive it. Site packages are not there for programs: only the standard library is.
"""

from __future__ import annotations

from pytest_lmeval.sandbox.core import Sandbox, open_sandbox
from pytest_lmeval.sandbox.execute import execute_code
from pytest_lmeval.sandbox.results import Answer, CodeStatus, ExecutionResult, Limits, Run

__all__ = ["Answer", "CodeStatus", "ExecutionResult", "Limits", "Run", "Sandbox", "execute_code", "open_sandbox"]
