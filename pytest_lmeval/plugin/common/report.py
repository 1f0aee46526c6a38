"""Define the report that each worker sends to the controller at its end, in xdist's worker output."""

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
    """A worker's report; empty if the worker crashed.

    ``tasks`` holds each collected TaskInfo's fields, or None after an error. ``foreign`` lists other tests' node ids
    that look like those of examples. ``facts`` (for the manifest) and ``remarks`` map model labels to values.
    ``interrupted`` means that Ctrl-C reached the worker. ``stopped`` is the reason to stop sending requests, if any.
    ``skipped_evals`` counts the evals that were skipped because the run has no adapter. ``is_untouched`` means that
    ``--lm-changed`` deselected all examples. ``cpu_s`` is the CPU time of the thread that ran the items. ``media`` is
    the folder, if any, to which the worker wrote the bytes of media.
    """

    usage_error: str = ""
    interrupted: bool = False
    stopped: str = ""
    tasks: Sequence[Mapping[str, Any]] | None = None
    foreign: Sequence[str] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skipped_evals: int = 0
    is_untouched: bool = False
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_tasks: Mapping[str, str] = field(default_factory=dict)
    cpu_s: float = 0.0
    media: str = ""


def add_to_report(config: pytest.Config, **values: Any) -> None:
    """Add fields of WorkerReport to this worker's report; do nothing in the controller."""
    output = output_to_controller(config)
    if output is not None:
        output.update({_PREFIX + name: json.dumps(value) for name, value in values.items()})


def report_of(worker: object) -> WorkerReport:
    """Return the report of ``worker``, which has ended."""
    output = output_of(worker) or {}
    names = [each.name for each in fields(WorkerReport)]
    return WorkerReport(**{name: json.loads(output[_PREFIX + name]) for name in names if _PREFIX + name in output})


@dataclass(slots=True)
class Notes:
    """Notes on the collection, shown at the end of the run.

    ``bad_files`` lists the node ids of task files with errors, and ``uncollected`` those of other failed collectors.
    """

    bad_files: dict[str, None] = field(default_factory=dict)
    uncollected: dict[str, None] = field(default_factory=dict)
    not_tasks: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    skipped_evals: int = 0
    is_untouched: bool = False

    def add(self, report: WorkerReport) -> None:
        """Add a worker's report."""
        self.not_tasks.update(report.not_tasks)
        self.is_untouched |= report.is_untouched
        self.skipped_evals = max(self.skipped_evals, report.skipped_evals)
        self.remarks.update(dict.fromkeys(remark for remarks in report.remarks.values() for remark in remarks))

    def refuse_bad_files(self) -> None:
        """End the session if collecting a task file failed."""
        if self.bad_files:
            raise pytest.Session.Interrupted(f"{len(self.bad_files)} bad task file(s)")
