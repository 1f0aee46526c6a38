"""Build the command and the environment that start a sandboxed interpreter."""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any

from pytest_lmeval.sandbox.inside import wire

# The folder `inside` becomes a separate package, so that the child imports no other part of this package.
BOOT = """\
import sys
package = type(sys)("_lmeval_inside")
package.__path__ = [sys.argv[1]]
sys.modules["_lmeval_inside"] = package
from _lmeval_inside.{module} import main
main(*map(int, sys.argv[2:]))
"""
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
# A relocated interpreter needs these variables to find its libraries.
KEPT = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH")


def command(module: str, *descriptors: int) -> list[str]:
    """Return the command that calls ``main`` in a module of `inside`, with open descriptors as its arguments."""
    # -I would ignore PYTHONHASHSEED, so use other flags; -P keeps the current folder out of sys.path.
    flags = ["-s", "-S", "-P", "-c", BOOT.format(module=module), INSIDE]
    return [sys.executable, *flags, *map(str, descriptors)]


def environment(folder: str) -> dict[str, str]:
    """Return the child's complete environment; it differs between machines only in paths."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "HOME": folder,
        "LANG": "C.UTF-8",
        # Each arena takes 64 MiB of the limited address space, and each thread takes a stack and a buffer.
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
    """Encode a message to the child as a frame."""
    return wire.frame(marshal.dumps(message))
