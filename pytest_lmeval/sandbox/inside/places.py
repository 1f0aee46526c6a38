"""Which files a confined program may reach: the standard library, the libraries it needs, and its working folder.

There are two sets of rules. The server's are precise, a thousand of them, and are put on once. The program's, on top,
are a dozen folders that hold the same and hide the working folders of the others; what both grant is granted.
"""

from __future__ import annotations

import os
import sys

from . import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def of_server(root: str, packages: Sequence[str]) -> list[landlock.Rule]:
    """Return the rules of the server, whose working folders are below ``root``."""
    rules = [landlock.rule(path, landlock.LIST) for path in _standard_library()]
    rules += [landlock.rule(path, landlock.READ) for path in _readable(packages)]
    # The server looks at what its programs hold open.
    rules += [landlock.rule(os.devnull, landlock.DEVICE), landlock.rule("/proc", landlock.READ)]
    # When the parent is killed, the server removes them all.
    rules.append(landlock.rule(os.path.dirname(root), landlock.REMOVE_DIR))
    return _found([*rules, landlock.rule(root, landlock.WORK)])


def of_program(links: str, packages: Sequence[str]) -> list[landlock.Rule]:
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
