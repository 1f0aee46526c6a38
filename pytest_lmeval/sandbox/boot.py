"""Build the command and the environment that start an interpreter of the sandbox."""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any

from pytest_lmeval.sandbox.inside import wire

# The folder `inside` becomes a separate package, so that the child imports nothing else from this one.
BOOT = """\
import sys
package = type(sys)("_lmeval_inside")
package.__path__ = [sys.argv[1]]
sys.modules["_lmeval_inside"] = package
from _lmeval_inside.{module} import main
main(*map(int, sys.argv[2:]))
"""
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
# A relocated interpreter finds its libraries by these variables.
KEPT = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH")


def command(module: str, *descriptors: int) -> list[str]:
    """Return the command that runs ``main`` of a module of `inside` with open descriptors as its arguments."""
    # Not -I, which would ignore PYTHONHASHSEED; -P keeps the current folder out of sys.path.
    flags = ["-s", "-S", "-P", "-c", BOOT.format(module=module), INSIDE]
    return [sys.executable, *flags, *map(str, descriptors)]


def environment(folder: str) -> dict[str, str]:
    """Return the child's complete environment, which is the same on every machine except for the paths of libraries."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "HOME": folder,
        "LANG": "C.UTF-8",
        # Each arena takes 64 MiB of the limited address space, and each thread a stack and a buffer.
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": os.defpath,
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONUTF8": "1",
        "TMPDIR": folder,
        "TZ": "UTC",
    }


def frame(message: Any) -> bytes:
    """Return a message to the child as bytes to send."""
    return wire.frame(marshal.dumps(message))
