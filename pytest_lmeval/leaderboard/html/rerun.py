"""How to run one example again: what of a run's arguments has to be said again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["rerun_arguments"]

_REPEATED = frozenset(
    {"--lm-adapter", "--lm-adapter-arg", "--lm-threshold", "--lm-repeats", "--lm-sandbox", "--lm-config", "--rootdir"}
)
_HIDDEN = "***"


def rerun_arguments(argv: Sequence[object]) -> str:
    """Return, quoted for a shell, the arguments of a run that another one needs; none with a hidden value."""
    given = [str(argument) for argument in argv]
    taken = []
    for number, argument in enumerate(given):
        name, equals, _ = argument.partition("=")
        if name in _REPEATED and (equals or number + 1 < len(given)):
            taken.append(argument if equals else f"{name}={given[number + 1]}")
    return shlex.join(argument for argument in taken if _HIDDEN not in argument)
