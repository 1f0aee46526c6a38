"""How a run asks and scores: the same settings for every front end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_lmeval.engine.policy import DEFAULT_BATCH_SIZE, Policy

__all__ = ["RunSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run; the defaults are those of the command line.

    ``thresholds`` override what an example asks for, ``default_thresholds`` come after every one of them.
    ``gate`` is the gate's mode: it decides whether an example under its threshold is ``failed`` or ``below``.
    ``sandbox`` is a level. ``concurrency`` and ``max_cost`` are those of the whole run, of which each of ``share``
    processes takes its part. ``passthrough`` are exceptions that stop the run. ``may_crash`` says that the death of
    this process is blamed on the example at its turn: no batch but that example's is asked. ``reuses`` says that
    answers of an earlier ledger are used again.
    """

    batch_size: int = DEFAULT_BATCH_SIZE
    concurrency: int = 16
    timeout_s: float = 60.0
    retries: int = 4
    max_cost: float | None = None
    repeats: int = 1
    thresholds: Mapping[str, float] = field(default_factory=dict)
    default_thresholds: Mapping[str, float] = field(default_factory=dict)
    gate: str = "examples"
    sandbox: str = "confined"
    packages: Sequence[str] = ()
    share: int = 1
    passthrough: tuple[type[BaseException], ...] = ()
    may_crash: bool = False
    reuses: bool = False

    def policy(self, spent: float) -> Policy:
        """Return the limits on asking for a run that has ``spent`` part of its cost already."""
        return Policy(
            batch_size=self.batch_size,
            concurrency=self.concurrency,
            timeout_s=self.timeout_s,
            retries=self.retries,
            max_cost=None if self.max_cost is None else max(0.0, self.max_cost - spent),
            share=self.share,
            passthrough=self.passthrough,
        )
