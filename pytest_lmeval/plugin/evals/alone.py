"""What it cost that examples of ``def`` functions ran one at a time, though they need not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_lmeval.report.wording import duration

if TYPE_CHECKING:
    from pytest_lmeval.functions.runner import Running

_WORTH_A_NOTE_S = 1.0


class RanAlone:
    """How many examples of each task ran alone, and how long that took."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[int, float]] = {}

    def note(self, task: str, running: Running) -> None:
        """Note an example that ran alone."""
        count, seconds = self._tasks.get(task, (0, 0.0))
        self._tasks[task] = count + 1, seconds + sum(outcome.seconds for outcome in running.outcomes)

    def lines(self, concurrency: int) -> Iterator[str]:
        """Yield a line for each task where it took more than a second; ``concurrency`` could have run at once."""
        for task, (count, seconds) in self._tasks.items():
            if count > 1 and seconds >= _WORTH_A_NOTE_S:
                took = f"{count} examples of a def function ran one at a time ({duration(seconds)})"
                yield f"{task}: {took}; threads=True runs {concurrency} at once"
