"""The confinement of the server and, on top of it, of each program.

A confined program may reach the standard library, the libraries it needs, and its working folder. There are two sets
of rules. The server's are precise, a thousand of them, and are put on once. The program's, on top, are a dozen folders
that hold the same and hide the working folders of the others; what both grant is granted.
"""

from __future__ import annotations

import os
import sys

from . import kernel, landlock, layers, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

# A program has stdin, stdout, stderr, requests and results.
ENDS = 5
CLOSE_RANGE = 436

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")
INSTALLED = ("dist-packages", "site-packages")
# What the standard library reads: random numbers, where libraries are, types of files, locales, OpenSSL, time zones.
DATA = (
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc/ld.so.cache",
    "/etc/mime.types",
    "/etc/ssl/openssl.cnf",
    "/usr/lib/locale",
    "/usr/lib/ssl/openssl.cnf",
    "/usr/share/locale/locale.alias",
    "/usr/share/zoneinfo",
)


class Cage:
    """Everything about the confinement that can be made ready once, by the server, for all its programs."""

    def __init__(self, root: str, links: str, packages: Sequence[str]) -> None:
        self._root = root
        self._packages = packages
        self._links = links

    def close_server(self) -> list[tuple[str, str]]:
        """Confine this process for good; return the layers that could not be put on, and why."""
        steps = {"capabilities": kernel.drop_capabilities, "landlock": self._landlock, "seccomp": self._seccomp}
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

    def _landlock(self) -> None:
        self._abi = landlock.abi()
        self._rules = rules_of_program(self._links, self._packages)
        rules = rules_of_server(self._root, self._packages)
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
    # Had it died before this process asked for the signal, nobody would send it.
    if os.getppid() != server:
        raise OSError("the server is gone")


def _close_all_but_ends() -> None:
    kernel.syscall(CLOSE_RANGE, ENDS, (1 << 32) - 1)


def rules_of_server(root: str, packages: Sequence[str]) -> list[landlock.Rule]:
    """Return the rules of the server, whose working folders are below ``root``."""
    rules = [landlock.rule(path, landlock.LIST) for path in _standard_library()]
    rules += [landlock.rule(path, landlock.READ) for path in _readable(packages)]
    # The server looks at what its programs hold open.
    rules += [landlock.rule(os.devnull, landlock.DEVICE), landlock.rule("/proc", landlock.READ)]
    # When the parent is killed, the server removes them all.
    rules.append(landlock.rule(os.path.dirname(root), landlock.REMOVE_DIR))
    return _found([*rules, landlock.rule(root, landlock.WORK)])


def rules_of_program(links: str, packages: Sequence[str]) -> list[landlock.Rule]:
    """Return the rules of a program, but for its working folder."""
    folders = [*_standard_library(), *_library_folders(), *DATA, sys.executable, links, *packages]
    rules = [landlock.rule(path, landlock.READ) for path in folders]
    return _found([*rules, landlock.rule(os.devnull, landlock.DEVICE)])


def _found(rules: Iterable[landlock.Rule | None]) -> list[landlock.Rule]:
    return [rule for rule in rules if rule]


def _readable(packages: Sequence[str]) -> Iterable[str]:
    yield from (*DATA, sys.executable, *packages)
    for folder in _standard_library():
        # Packages may bring tasks along, with the answers: none but those asked for.
        yield from (entry for entry in _entries(folder) if os.path.basename(entry) not in INSTALLED)
    for folder in _library_folders():
        yield from (entry for entry in _entries(folder) if ".so" in os.path.basename(entry))


def _standard_library() -> list[str]:
    return [path for path in sys.path if os.path.isdir(path)]


def _library_folders() -> list[str]:
    own = [os.path.join(prefix, "lib") for prefix in (sys.base_prefix, sys.base_exec_prefix)]
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders = [*SYSTEM, *own, *filter(os.path.isabs, named)]
    triplet = getattr(sys.implementation, "_multiarch", "")
    # Once each: many of these are links to one another.
    found = {os.path.realpath(os.path.join(folder, part)) for folder in folders for part in ("", triplet)}
    return sorted(filter(os.path.isdir, found))


def _entries(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in os.listdir(folder)]
