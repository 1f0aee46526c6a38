"""What the terminal would say several times over it says once; other reports have each failure in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.plugin.record.records import Records

_ATTEMPTS = re.compile(r" \(\d+ attempts?\)$")


def say_once(reports: Iterable[Any], records: Records) -> None:
    """Shorten, of failed ``reports`` that the terminal will show, what it says under the leaderboard or has said.

    That is the gate's reasons, and why an example could not be scored.
    """
    first: dict[str, str] = {}
    for report in reports:
        if hasattr(report, "lm_gate"):
            report.longrepr = f"{_first_line(report)}\n  the reasons are under the leaderboard"
        elif cause := _cause(report.nodeid, records):
            said = "the reason is under the leaderboard" if _is_reason(cause, records) else ""
            if not said and (earlier := first.setdefault(cause, report.nodeid)) != report.nodeid:
                said = f"as {earlier}"
            if said and isinstance(report.longrepr, str):
                report.longrepr = "\n".join(_shortened(report.longrepr, said))


def _cause(nodeid: str, records: Records) -> str:
    record = records.of(nodeid)
    result = record.received.results.get(nodeid) if record is not None else None
    return _ATTEMPTS.sub("", result.error) if result is not None and result.is_error else ""


def _is_reason(cause: str, records: Records) -> bool:
    return any(cause in reason for record in records.all for reason in record.gate.get("reasons", ()))


def _shortened(text: str, said: str) -> Iterator[str]:
    """Yield the first line up to the reason, with what is ``said`` in its place, and how to run the example again."""
    lines = text.split("\n")
    head, colon, _ = lines[0].partition("could not be scored (")
    status = lines[0][len(head) + len(colon) :].partition(")")[0]
    yield f"{head}{colon}{status}): {printable(said, keep='')}" if colon else lines[0]
    yield from (line for line in lines[1:] if line.startswith("  rerun: "))


def _first_line(report: Any) -> str:
    return str(report.longrepr).partition("\n")[0]
