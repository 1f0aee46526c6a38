"""Define the limits of a program, and the results of running it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from pytest_lmeval.errors import UsageError

CodeStatus = Literal["pass", "assertion_fail", "syntax_error", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that one program may use.

    ``cpu_s`` is the main limit: the CPU seconds of the program and of the processes that it starts. ``wall_s`` only
    guards against programs that wait forever; its default, ``10 * cpu_s + 10`` seconds, allows for a busy machine. If
    ``/proc`` exists, the sandbox also ends a program that sleeps for ``cpu_s`` plus two seconds without a break, or for
    twice as long in total. ``memory_bytes`` limits the address space unless it is None. ``memory_bytes``,
    ``file_bytes`` and ``open_files`` apply to each process. The sandbox records only the last ``output_bytes`` of
    each of stdout and stderr. ``processes`` applies at levels that let a program start processes. ``disk_bytes`` limits
    the total size of a program's files at the level ``confined``.
    """

    cpu_s: float = 3.0
    wall_s: float | None = None
    memory_bytes: int | None = 512 * 1024 * 1024
    output_bytes: int = 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024
    open_files: int = 128
    processes: int = 64
    disk_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        for name, value in self.by_name().items():
            if not 0 < value < math.inf:
                raise UsageError(f"sandbox limit {name}={value!r}: expected a finite number above 0")

    def by_name(self) -> dict[str, float]:
        """Return the limits that are not None, by name."""
        values = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in values if value is not None}

    @property
    def idle_s(self) -> float:
        """The wall seconds that a program may wait without a break; such a program neither uses nor needs CPU time."""
        return self.cpu_s + 2

    @property
    def waits_s(self) -> float:
        """The wall seconds that a program may sleep or wait in total."""
        return 2 * self.idle_s

    @property
    def hang_guard_s(self) -> float:
        """The wall seconds after which the sandbox ends a program."""
        return 10 * self.cpu_s + 10 if self.wall_s is None else self.wall_s


@dataclass(frozen=True, slots=True)
class Answer:
    """The program's answer to one request.

    ``kind`` is ``value`` if ``value`` holds the result, in the tagged form of `inside.wire`. ``kind`` is ``raised`` if
    the program raised an exception, ``unfit`` if the result is not plain data, and ``none`` if the program ended first.
    ``text`` has details.
    """

    kind: Literal["value", "raised", "unfit", "none"]
    value: Any = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The outcome of running one program.

    ``status`` is ``pass`` if the sandbox detected no failure; the caller must check the values. ``answers`` has one
    entry per request, except after ``check``, which has no requests. ``stdout`` and ``stderr`` are the ends of the
    streams; ``stdout_whole`` is true if ``stdout`` is complete. ``forgeable`` is true if the program could have
    influenced its tests.
    """

    status: CodeStatus
    answers: tuple[Answer, ...] = ()
    stdout: str = ""
    stderr: str = ""
    reason: str = ""
    stdout_whole: bool = True
    forgeable: bool = False


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The outcome of running a script.

    ``success`` is true if the script reached its end without an uncaught exception; a script that calls ``sys.exit()``
    does not reach its end. ``error`` is a line such as ``ZeroDivisionError: division by zero``, or None.
    """

    success: bool
    stdout: str
    stderr: str
    error: str | None = None
    timeout: bool = False
    memory_exceeded: bool = False
