"""What a level has to provide: a process that runs one program, and the means to end it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_lmeval.sandbox.results import Limits


@dataclass(frozen=True, slots=True)
class Ends:
    """The program's ends of its four pipes, which stay the caller's to close."""

    request: int
    result: int
    stdout: int
    stderr: int


class ChildProcess(Protocol):
    """The process of one program."""

    # What the child has to read before the first request.
    preamble: bytes
    # Whether some of what the user may do is denied to it.
    denies: bool

    @property
    def returncode(self) -> int | None:
        """What `poll` returned last."""

    def processes(self) -> list[int]:
        """Return the numbers of the program's processes; none where they are not known."""

    def poll(self) -> int | None:
        """Return how the program ended, a number of `inside.exits` or below; None while it runs."""

    def wait(self, timeout_s: float) -> int | None:
        """Wait at most that long for the end; return what `poll` would."""

    def stop(self) -> None:
        """Ask for the end of the program and of all that it started, without waiting."""

    def close(self) -> None:
        """Make sure that nothing runs any more, and remove what the program left; call it once, after `stop`."""


class Launcher(Protocol):
    """The way in which a level starts programs; safe to share between threads."""

    def launch(self, limits: Limits, ends: Ends) -> ChildProcess:
        """Start a process for one program; raise `SandboxError` if there can be none."""

    def close(self) -> None:
        """Give up what is kept between programs; another `launch` gets it anew."""
