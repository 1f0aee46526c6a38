"""Whether what examples say of their repeats goes with the repeats of the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_lmeval.errors import UsageError

if TYPE_CHECKING:
    from pytest_lmeval.run.plan import Unit


def check_repeats(units: Iterable[Unit], given: int | None) -> None:
    """Raise UsageError for tasks with other repeats than those ``given`` for the run, and with too few to pass."""
    others: dict[str, int] = {}
    for unit in units:
        policy = unit.example.policy
        repeats = given or 1 if policy.repeats is None else policy.repeats
        passes = 1 if policy.passes is None else policy.passes
        for name, count in (("repeats", repeats), ("passes", passes)):
            # Those of a file were checked when it was read.
            if not isinstance(count, int) or count < 1:
                raise UsageError(f"{unit.task.name}: {unit.example.id}: {name}: expected 1 or more, got {count!r:.60}")
        if given is not None and repeats != given:
            others[unit.task.name] = repeats
        if passes > repeats:
            raise UsageError(
                f"{unit.task.name}: {unit.example.id}: of {repeats} repeat{'s' if repeats > 1 else ''} {passes} cannot "
                "pass: set its repeats, or --lm-repeats"
            )
    if others:
        named = ", ".join(f"{task} ({repeats})" for task, repeats in sorted(others.items()))
        raise UsageError(f"--lm-repeats={given}: tasks have other repeats of their own: {named}; leave the option out")
