"""What judges said in a run, by example: in the details of results, and in the steps of eval functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.functions import answered_requests, steps_of
from pytest_lmeval.records.ledger_lines import read_ledger
from pytest_lmeval.records.recorded import recorded_exchanges


@dataclass(frozen=True, slots=True)
class Judgements:
    """What judges said about one example.

    ``entries`` are (name of the judge, key of the question, reply), in the order in which they were asked;
    ``exchanges`` are the records of what an eval function asked.
    """

    entries: tuple[tuple[str, str, str], ...] = ()
    exchanges: tuple[Mapping[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries or self.exchanges)


def judge_entries(details: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of judges that have a key and a reply in the details of a result, those of repeats too."""
    repeats = details.get("repeats", ())
    for each in (details, *(repeats if isinstance(repeats, list | tuple) else ())):
        found = each.get("judge", ()) if isinstance(each, Mapping) else ()
        for entry in found if isinstance(found, list | tuple) else ():
            if isinstance(entry, Mapping) and all(isinstance(entry.get(name), str) for name in ("key", "output")):
                yield entry


def judge_keys(details: Mapping[str, Any]) -> set[str]:
    """Return the ``adapter_key`` of every judge that the details of a result have replies of."""
    steps = (step for steps in steps_of(details) for step in steps)
    return {str(each["adapter_key"]) for each in (*judge_entries(details), *steps) if "adapter_key" in each}


def read_judgements(path: Path) -> Iterator[tuple[str, str, Judgements]]:
    """Yield task, id and what judges said of each example; raise UsageError for a file that holds no such thing."""
    # Every run imports this module; few replay a judge.
    from pytest_lmeval.records.recording import board_records, recording_data

    data = recording_data(path)
    ledger = read_ledger(BytesIO(data), path, _judged)
    if ledger is not None and ledger.runs:
        found = [(*key, said) for run in ledger.runs for key, said in run.results.items() if said]
    else:
        found = [(task, id, said) for task, id, record in board_records(data, path) if (said := _judged(record))]
    if not found:
        raise UsageError(
            f"replay:{path}: holds no reply of a judge; name the ledger of a run with a judge, or its leaderboard.json "
            "that was written with --lm-include-per-example"
        )
    yield from found


def _judged(record: Mapping[str, Any]) -> Judgements:
    details = record.get("details")
    if not isinstance(details, Mapping):
        return Judgements()
    entries = [(str(each.get("judge", "")), each["key"], each["output"]) for each in judge_entries(details)]
    return Judgements(tuple(entries), recorded_exchanges(answered_requests(details, "judge")))
