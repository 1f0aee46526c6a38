"""What a worker tells the controller, in the output that pytest-xdist brings over at the worker's end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pytest

from pytest_lmeval.plugin.private import output_of, output_to_controller

_PREFIX = "lmeval_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a worker has told so far; nothing of one that crashed.

    ``tasks`` are the fields of each TaskInfo that it collected, None where it got no further than an error. ``foreign``
    are the node ids that look like examples and are none. ``facts`` is what only a process that ran examples knows.
    ``interrupted`` says that Ctrl-C reached it, ``stopped`` why nothing more should be asked. ``skipped_evals`` counts
    the evals that had no adapter; ``remarks`` are sentences for the end of the run, by the model's label.
    """

    usage_error: str = ""
    interrupted: bool = False
    stopped: str = ""
    tasks: Sequence[Mapping[str, Any]] | None = None
    foreign: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    skipped_evals: int = 0
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_tasks: Mapping[str, str] = field(default_factory=dict)


def tell(config: pytest.Config, **facts: Any) -> None:
    """Add ``facts``, named as the fields of Told, to what this worker tells; elsewhere there is nobody to tell."""
    output = output_to_controller(config)
    if output is not None:
        output.update({_PREFIX + name: json.dumps(value) for name, value in facts.items()})


def told_by(worker: object) -> Told:
    """Return what ``worker``, which has ended, told."""
    output = output_of(worker) or {}
    names = [each.name for each in fields(Told)]
    return Told(**{name: json.loads(output[_PREFIX + name]) for name in names if _PREFIX + name in output})
