"""Import other tools' files for ``lmeval import KIND``.

To add a kind, write a module with a function ``bring_in(source, destination) -> Imported``, and add it to ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.interop.files import NewFiles

__all__ = ["KINDS", "Imported", "Importer", "Kind", "Remark", "importer"]


@dataclass(frozen=True, slots=True)
class Remark:
    """A part of the source that has no counterpart in this package, or has a different meaning.

    ``file`` and ``line`` are the part's location, ``what`` is its name in the source, and ``why`` gives the reason and
    a remedy.
    """

    file: str
    line: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class Imported:
    """The files to write, by path; remarks about skipped and changed parts; and the commands to run next."""

    files: NewFiles
    left_out: Sequence[Remark] = ()
    differs: Sequence[Remark] = ()
    next_steps: Sequence[str] = ()

    def listed(self) -> Iterator[str]:
        """Yield a line for each remark, ordered by location."""
        yield from (f"left out: {remark}" for remark in _sorted(self.left_out))
        yield from (f"differs: {remark}" for remark in _sorted(self.differs))

    def nothing(self, source: Path, part: str) -> UsageError:
        """Return the error for a source in which no ``part``, such as a test, has a counterpart."""
        lines = "".join(f"\n{each}" for each in self.listed())
        return UsageError(f"{source}: no {part} of it has a counterpart, so nothing was written{lines}")


Importer = Callable[[Path, Path], Imported]


class Kind(NamedTuple):
    """A kind's source and destination, as the command's help shows them, and the module with ``bring_in``."""

    source: str
    destination: str
    module: str


KINDS: Mapping[str, Kind] = {
    "promptfoo": Kind(
        "a promptfoo config, YAML or JSON", "the folder of the data files and profiles", "promptfoo.bring_in"
    ),
    "openai-evals": Kind(
        "an eval of OpenAI Evals, registry/evals/NAME.yaml", "the folder of the data files", "openai_evals"
    ),
    "lm-eval": Kind(
        "a folder that lm_eval wrote with --log_samples, or one results_*.json in it",
        "the ledger of the run, such as reports/ledger.jsonl",
        "lm_eval",
    ),
}


def importer(name: str) -> Importer:
    """Import a kind's module, and return its function."""
    function: Importer = import_module(f"pytest_lmeval.interop.importers.{KINDS[name].module}").bring_in
    return function


def _sorted(remarks: Sequence[Remark]) -> list[Remark]:
    # Two tests may share the part that a remark is about, so drop duplicates.
    return sorted({*remarks}, key=lambda each: (each.file, each.line, each.what, each.why))
