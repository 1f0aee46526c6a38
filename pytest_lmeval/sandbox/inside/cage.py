"""Confine the server, and confine each program more tightly.

A confined program may access the standard library, the libraries that it needs, and its working folder. The server
applies a thousand precise rules once. Each program adds a dozen rules that name whole folders, and deny access to the
working folders of other programs. The kernel grants access only if both sets of rules grant it.
"""

from __future__ import annotations

import os
import sys

from . import kernel, landlock, layers, seccomp
from .layers import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# A program has the descriptors stdin, stdout, stderr, requests and results.
ENDS = 5
CLOSE_RANGE = 436

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")
INSTALLED = ("dist-packages", "site-packages")
# Files that the standard library reads for random numbers, library paths, file types, locales, OpenSSL and time zones.
DATA = """
/dev/random /dev/urandom /dev/zero /etc/ld.so.cache /etc/mime.types /etc/ssl/openssl.cnf /usr/lib/locale
/usr/lib/ssl/openssl.cnf /usr/share/locale/locale.alias /usr/share/zoneinfo
"""


class Cage:
    """The confinement that the server prepares once for all of its programs."""

    def __init__(self, root: str, links: str, packages: Sequence[str]) -> None:
        self._root = root
        self._packages = packages
        self._links = links

    def close_server(self) -> list[tuple[str, str]]:
        """Confine this process permanently; return each layer that failed, with the reason."""
        steps = {"capabilities": kernel.drop_capabilities, "landlock": self._landlock, "seccomp": self._seccomp}
        return [failed for name, step in steps.items() if (failed := attempt(name, step))]

    def close_program(self, folder: str, limits: Mapping[str, float], server: int) -> tuple[str, str] | None:
        """Confine this process permanently to one working folder; return the first layer that failed, and why."""
        return (
            layers.prepare(["tree"], limits)
            or attempt("tree", _check_parent, server)
            or attempt("landlock", self._landlock_program, folder)
            or attempt("descriptors", kernel.syscall, CLOSE_RANGE, ENDS, (1 << 32) - 1)
            or layers.prepare(["limits"], limits)
            or attempt("seccomp", self._filter.install)
        )

    def _landlock_program(self, folder: str) -> None:
        landlock.restrict(self._abi, [*self._rules, *_found([landlock.rule(folder, landlock.WORK)])])

    def _landlock(self) -> None:
        self._abi = landlock.abi()
        self._rules = rules_of_program(self._links, self._packages)
        rules = rules_of_server(self._root, self._packages)
        landlock.restrict(self._abi, rules)
        for fd, _ in rules:
            os.close(fd)

    def _seccomp(self) -> None:
        self._filter = seccomp.Filter()
        seccomp.Filter(seccomp.SERVER).install()


def _check_parent(server: int) -> None:
    # If the server died before this process requested the death signal, the signal will never come.
    if os.getppid() != server:
        raise OSError("the server is gone")


def rules_of_server(root: str, packages: Sequence[str]) -> list[landlock.Rule]:
    """Return the rules for the server; ``root`` contains the programs' working folders."""
    rules = [landlock.rule(path, landlock.LIST) for path in _standard_library()]
    rules += [landlock.rule(path, landlock.READ) for path in _readable(packages)]
    # The server looks up the files that its programs have open.
    rules += [landlock.rule(os.devnull, landlock.DEVICE), landlock.rule("/proc", landlock.READ)]
    # If the parent is killed, the server removes ``root``.
    rules.append(landlock.rule(os.path.dirname(root), landlock.REMOVE_DIR))
    return _found([*rules, landlock.rule(root, landlock.WORK)])


def rules_of_program(links: str, packages: Sequence[str]) -> list[landlock.Rule]:
    """Return the rules for a program, except the rule for its working folder."""
    folders = [*_standard_library(), *_library_folders(), *DATA.split(), sys.executable, links, *packages]
    rules = [landlock.rule(path, landlock.READ) for path in folders]
    return _found([*rules, landlock.rule(os.devnull, landlock.DEVICE)])


def _found(rules: Iterable[landlock.Rule | None]) -> list[landlock.Rule]:
    return [rule for rule in rules if rule]


def _readable(packages: Sequence[str]) -> Iterable[str]:
    yield from (*DATA.split(), sys.executable, *packages)
    for folder in _standard_library():
        # Installed packages may contain tasks and their answers, so allow only the requested packages.
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
    # Many of these folders are links to each other.
    found = {os.path.realpath(os.path.join(folder, part)) for folder in folders for part in ("", triplet)}
    return sorted(filter(os.path.isdir, found))


def _entries(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in os.listdir(folder)]
