"""What a run is allowed, and what comes back from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from pytest_lmeval.errors import UsageError

CodeStatus = Literal["pass", "assertion_fail", "syntax_error", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use.

    ``cpu_s`` is CPU seconds of the program and the processes it starts, the limit that counts. ``wall_s`` only
    guards against programs that wait for ever; by default it is ten times ``cpu_s`` and ten seconds, so that a
    machine with too much to do does not make a program fail. A program that only sleeps is given up earlier, where
    ``/proc`` exists: after ``cpu_s`` and two seconds at a stretch, after twice as long in all. ``memory_bytes``
    (address space), ``file_bytes`` and ``open_files`` hold for each process; None is no memory limit. ``output_bytes``
    is how much of the end of stdout and of stderr is kept. ``processes`` counts where a program may start any,
    ``disk_bytes``, all its files together, at the level ``confined``.
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
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"sandbox limit {name}={value!r}: expected a finite number above 0")

    @property
    def idle_s(self) -> float:
        """Wall seconds after which a run is given up in which the program used no CPU time and wanted none."""
        return self.cpu_s + 2

    @property
    def waits_s(self) -> float:
        """Wall seconds that a run may sleep or wait in all, whatever it does in between."""
        return 2 * self.idle_s

    @property
    def hang_guard_s(self) -> float:
        """Wall seconds after which a run is given up."""
        return 10 * self.cpu_s + 10 if self.wall_s is None else self.wall_s


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request to the program brought.

    ``kind`` is ``value``, with the value in the tagged form of `inside.wire`; ``raised``, when the program raised;
    ``unfit``, when the value is not plain data; or ``none``, when the program ended first. ``text`` says more.
    """

    kind: Literal["value", "raised", "unfit", "none"]
    value: Any = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What became of one program.

    ``status`` is ``pass`` where nothing went wrong that the sandbox can see; whether the values are right is for the
    caller to say. ``answers`` has one entry per request, always. ``stdout`` and ``stderr`` are their ends, and
    ``stdout_whole`` says whether nothing is missing from it. ``forgeable`` is true where the caller's tests took
    the program's word for something that they then relied on.
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
    """What became of a program that was run for its effect.

    ``success`` is whether it ran to its end without an uncaught exception; ``sys.exit()``, whatever its status, is
    not the end. ``error`` is one line such as ``ZeroDivisionError: division by zero``, or None.
    """

    success: bool
    stdout: str
    stderr: str
    error: str | None = None
    timeout: bool = False
    memory_exceeded: bool = False
