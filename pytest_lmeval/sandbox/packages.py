"""Find the installed packages that programs may import."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

from pytest_lmeval.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class Package:
    """A file or folder that programs may read, and the name by which they import it."""

    name: str
    path: str


def find(names: Sequence[str]) -> tuple[Package, ...]:
    """Return the packages of the named distributions and their dependencies; raise `UsageError` for unknown names.

    A name may also be a module's name, such as ``yaml``.
    """
    waiting = [found for name in names for found in _distributions(name)]
    seen: dict[str, metadata.Distribution] = {}
    while waiting:
        distribution = waiting.pop()
        if distribution.name not in seen:
            seen[distribution.name] = distribution
            waiting += _needed(distribution)
    found = {package.path: package for distribution in seen.values() for package in _top_level(distribution)}
    return tuple(sorted(found.values(), key=lambda package: package.name))


def _distributions(name: str) -> list[metadata.Distribution]:
    try:
        return [metadata.distribution(name)]
    except (metadata.PackageNotFoundError, ValueError):
        imported = metadata.packages_distributions()
        if name in imported:
            return list(map(metadata.distribution, imported[name]))
    raise UsageError(f"sandbox package {name!r} is not installed{nearest(name, imported)}")


def _needed(distribution: metadata.Distribution) -> Iterator[metadata.Distribution]:
    for requirement in distribution.requires or ():
        name = re.match(r"[\w.-]+", requirement)
        if name is None or re.search(r";.*\bextra\b", requirement):
            continue
        try:
            yield metadata.distribution(name[0])
        except metadata.PackageNotFoundError:
            # The requirement may be for another platform or Python version; if it is not, the program's import fails.
            continue


def _top_level(distribution: metadata.Distribution) -> Iterable[Package]:
    names = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    for name in names:
        path = os.path.realpath(str(distribution.locate_file(name)))
        if os.path.exists(path):
            yield Package(name, path)
