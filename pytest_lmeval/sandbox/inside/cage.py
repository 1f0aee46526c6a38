"""The confinement of the server and, on top of it, of each program."""

from __future__ import annotations

import os

from . import kernel, landlock, layers, places, privileges, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

# A program has stdin, stdout, stderr, requests and results.
ENDS = 5
CLOSE_RANGE = 436


class Cage:
    """Everything about the confinement that can be made ready once, by the server, for all its programs."""

    def __init__(self, root: str, links: str, packages: Sequence[str]) -> None:
        self._root = root
        self._packages = packages
        self._links = links

    def close_server(self) -> list[tuple[str, str]]:
        """Confine this process for good; return the layers that could not be put on, and why."""
        steps = {"capabilities": self._capabilities, "landlock": self._landlock, "seccomp": self._seccomp}
        return [failed for name, step in steps.items() if (failed := _try(name, step))]

    def close_program(self, folder: str, limits: Mapping[str, Any], server: int) -> tuple[str, str] | None:
        """Confine this process to one working folder for good; return the first layer that failed, and why."""

        def inner_landlock() -> None:
            own = landlock.rule(folder, landlock.WORK)
            landlock.restrict(self._abi, [*self._rules, *([own] if own else [])])

        return (
            layers.prepare(["tree"], limits)
            or _try("tree", lambda: _still_below(server))
            or _try("landlock", inner_landlock)
            or _try("descriptors", _close_all_but_ends)
            or layers.prepare(["limits"], limits)
            or _try("seccomp", self._filter.put_on)
        )

    def _capabilities(self) -> None:
        privileges.drop(os.uname().machine)

    def _landlock(self) -> None:
        self._abi = landlock.abi()
        self._rules = places.of_program(self._links, self._packages)
        rules = places.of_server(self._root, self._packages)
        landlock.restrict(self._abi, rules)
        for fd, _ in rules:
            os.close(fd)

    def _seccomp(self) -> None:
        self._filter = seccomp.Filter()
        seccomp.Filter(seccomp.SERVER).put_on()


def _try(name: str, step: Callable[[], None]) -> tuple[str, str] | None:
    try:
        step()
    except (KeyError, OSError) as error:
        return name, f"{type(error).__name__}: {error}"
    return None


def _still_below(server: int) -> None:
    # Had it died before this process asked to be told, nobody would tell.
    if os.getppid() != server:
        raise OSError("the server is gone")


def _close_all_but_ends() -> None:
    kernel.syscall(CLOSE_RANGE, ENDS, (1 << 32) - 1)
