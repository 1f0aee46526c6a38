"""Sum up what a judge said over many examples: how often it could be read, and how often people agree with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.judging.agreement import agreement


@dataclass(frozen=True, slots=True)
class Replies:
    """What one judge said with one prompt: ``verdicts`` are pairs of its own and a person's, None without one."""

    judge: str
    prompt_hash: str
    repaired: int
    unread: int
    verdicts: Sequence[tuple[Any, Any]]

    def note(self) -> dict[str, Any]:
        """Return what a board has of them: ``unread`` replies made their examples errors, and count as rows."""
        pairs = [(person, judge) for judge, person in self.verdicts if judge is not None and person not in (None, "")]
        return {
            "judge": self.judge,
            "prompt_hash": self.prompt_hash,
            "rows": len(self.verdicts) + self.unread,
            "repaired": self.repaired,
            "unparsed": sum(judge is None for judge, _ in self.verdicts) + self.unread,
            **agreement([person for person, _ in pairs], [judge for _, judge in pairs]),
        }


def measures_of(notes: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return agreement as metrics, by judge: ``NAME.agreement``, a share, and ``NAME.kappa``, Cohen's, in [-1, 1]."""
    kinds = ("agreement", "kappa")
    return {
        f"{name}.{kind}": note[kind] for name, note in notes.items() for kind in kinds if note.get(kind) is not None
    }
