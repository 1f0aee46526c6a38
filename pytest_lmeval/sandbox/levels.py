"""The levels of confinement, each a name and the layers that its child puts on before it is given a program.

A layer is a function in `inside.layers` and, here, a probe: a program whose ``f()`` is True where the layer holds.
The probe tests behaviour, because a kernel may accept a call and not act on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["LEVELS", "Layer", "Level"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One kind of confinement: its name in `inside.layers`, and the source of a program that tests it."""

    name: str
    probe: str


@dataclass(frozen=True, slots=True)
class Level:
    """A named set of layers, in the order in which the child puts them on."""

    name: str
    layers: tuple[Layer, ...]


LIMITS = Layer(
    "limits",
    """
def f():
    import resource
    try:
        bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])
    except (MemoryError, OverflowError):
        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return False
""",
)

TREE = Layer(
    "tree",
    """
def f():
    import os
    start, go = os.pipe()
    back, tell = os.pipe()
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setsid()
            os.read(start, 1)
            os.write(tell, str(os.getppid()).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    os.write(go, b".")
    return int(os.read(back, 20)) == os.getppid()
""",
)

PROCESS = (LIMITS, TREE)

LEVELS: Mapping[str, Level] = {level.name: level for level in (Level("container", PROCESS), Level("process", PROCESS))}
