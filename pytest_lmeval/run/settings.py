"""Define the settings of a run, which pytest, the library and ``lmeval test`` share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pytest_lmeval.arguments import THINK_TAGS
from pytest_lmeval.asking.policy import DEFAULT_BATCH_SIZE, Policy
from pytest_lmeval.compare.gate import MODES
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.redaction import Scrubber

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import CacheSettings


def today() -> str:
    """Return today's date in UTC, as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def timestamp() -> str:
    """Return the current time in UTC to the second, in RFC 3339 format."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def fingerprint(adapter: str, options: Mapping[str, Any], repeats: int) -> str:
    """Return a hash of the settings that affect a model's answers; the hash reveals no secrets."""
    content = json.dumps([adapter, options, repeats], sort_keys=True, default=str)
    return sha256(content.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run, with the same defaults as the command line.

    ``default_thresholds`` override the examples' thresholds, and ``thresholds`` override both. ``gate`` is the gate's
    mode, which decides whether an example under its threshold is ``failed`` or ``below``. ``sandbox`` is a sandbox
    level. ``concurrency`` and ``max_cost`` apply to the whole run; ``share`` is the number of processes in the run.
    ``passthrough`` holds the exceptions that stop the run. ``may_crash`` means that the current example is blamed if
    this process dies, so the run sends only its batch. ``reuses`` means that the run reuses answers from an earlier
    ledger. ``adapter`` is the model's name until the model is created. In results, ``scrubber`` hides secrets that
    adapter options hold. ``think_tags`` enclose the thoughts at the start of a model's text; None keeps text unchanged.
    ``cache`` holds the settings of the answer cache. ``quarantine`` lists examples that cannot affect the outcome.
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
    adapter: str = ""
    scrubber: Scrubber = field(default_factory=Scrubber)
    cache: CacheSettings | None = None
    think_tags: tuple[str, str] | None = THINK_TAGS
    quarantine: Quarantine = field(default_factory=lambda: Quarantine(today()))

    def __post_init__(self) -> None:
        """Raise UsageError for an unknown gate mode, or for a number out of range."""
        if self.gate not in MODES:
            raise UnknownName("gate", self.gate, MODES)
        if self.repeats < 1 or self.batch_size < 1 or not self.timeout_s > 0:
            raise UsageError(
                "expected repeats and batch_size of at least 1 and a timeout above 0, got "
                f"{self.repeats!r}, {self.batch_size!r} and {self.timeout_s!r}"
            )
        for name, threshold in self.thresholds.items():
            if not 0 <= threshold <= 1:
                raise UsageError(f"threshold of {name!r}: expected a number from 0 to 1, got {threshold!r}")

    def policy(self, spent: float) -> Policy:
        """Return the limits for one process's requests in a run that has already ``spent`` part of its budget."""
        return Policy(
            batch_size=self.batch_size,
            concurrency=max(1, self.concurrency // self.share),
            timeout_s=self.timeout_s,
            retries=self.retries,
            max_cost=None if self.max_cost is None else max(0.0, self.max_cost - spent) / self.share,
            share=self.share,
            passthrough=self.passthrough,
            think_tags=self.think_tags,
        )

    @property
    def think_tags_text(self) -> str:
        """The think tags in the format of ``--lm-think-tags``."""
        return "none" if self.think_tags is None else ",".join(self.think_tags)
