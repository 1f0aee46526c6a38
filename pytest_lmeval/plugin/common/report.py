"""What a worker reports to the controller at its end, in the output that pytest-xdist brings over, and notes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any

import pytest

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.plugin.private.workers import output_of, output_to_controller

_PREFIX = "lmeval_"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """What a worker has reported; nothing of one that crashed.

    ``tasks`` are the fields of each TaskInfo that it collected, None where it got no further than an error. ``foreign``
    are the node ids that look like examples and are not. ``facts`` is what only a process that ran examples knows, and
    ``remarks`` are sentences for the end of the run, both by the model's label. ``interrupted`` says that Ctrl-C
    reached the worker, ``stopped`` why nothing more should be asked. ``skipped_evals`` counts the evals that had no
    adapter. ``cpu_s`` is the CPU time of the thread that ran the items, since they were planned.
    """

    usage_error: str = ""
    interrupted: bool = False
    stopped: str = ""
    tasks: Sequence[Mapping[str, Any]] | None = None
    foreign: Sequence[str] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skipped_evals: int = 0
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_tasks: Mapping[str, str] = field(default_factory=dict)
    cpu_s: float = 0.0


def add_to_report(config: pytest.Config, **values: Any) -> None:
    """Add ``values``, named as the fields of WorkerReport, to what this worker reports; other processes report none."""
    output = output_to_controller(config)
    if output is not None:
        output.update({_PREFIX + name: json.dumps(value) for name, value in values.items()})


def report_of(worker: object) -> WorkerReport:
    """Return what ``worker``, which has ended, reported."""
    output = output_of(worker) or {}
    names = [each.name for each in fields(WorkerReport)]
    return WorkerReport(**{name: json.loads(output[_PREFIX + name]) for name in names if _PREFIX + name in output})


@dataclass(slots=True)
class Notes:
    """What collecting left to say at the end: what could not be collected, what is no task, and remarks.

    ``bad_files`` and ``uncollected`` are node ids: of task files, and of anything else that may hold evals.
    """

    bad_files: dict[str, None] = field(default_factory=dict)
    uncollected: dict[str, None] = field(default_factory=dict)
    not_tasks: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    skipped_evals: int = 0

    def add(self, report: WorkerReport) -> None:
        """Note what a worker reported."""
        self.not_tasks.update(report.not_tasks)
        self.skipped_evals = max(self.skipped_evals, report.skipped_evals)
        self.remarks.update(dict.fromkeys(remark for remarks in report.remarks.values() for remark in remarks))

    def refuse_bad_files(self) -> None:
        """End the session where a task file could not be collected."""
        if self.bad_files:
            raise pytest.Session.Interrupted(f"{len(self.bad_files)} bad task file(s)")
