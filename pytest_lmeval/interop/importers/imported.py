"""What came of an import: the files, and what has no counterpart here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.interop.files import NewFiles


@dataclass(frozen=True, slots=True)
class Remark:
    """Something of the source that became nothing, or something with another meaning.

    ``file`` and ``line`` are its place, ``what`` is its name there, and ``why`` says what to do in its place.
    """

    file: str
    line: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class Imported:
    """The files to write, by path; what was left out, what differs, and the commands that come next."""

    files: NewFiles
    left_out: Sequence[Remark] = ()
    differs: Sequence[Remark] = ()
    next_steps: Sequence[str] = ()

    def listed(self) -> Iterator[str]:
        """Yield a line for each remark, in the order of their places."""
        yield from (f"left out: {remark}" for remark in _sorted(self.left_out))
        yield from (f"differs: {remark}" for remark in _sorted(self.differs))


def _sorted(remarks: Sequence[Remark]) -> list[Remark]:
    # A mark on what two tests have in common is one.
    return sorted({*remarks}, key=lambda each: (each.file, each.line, each.what, each.why))
