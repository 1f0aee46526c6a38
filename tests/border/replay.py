"""The border where a recording answers in place of a model: ``--lm-adapter=replay:PATH``."""

from __future__ import annotations

import json

from tests.border.table import Border, Row, refused_run, run_of_its_own
from tests.conftest import PYTEST_INI

IDS = ("absent", "empty", "large", "escape", "late")
TASK = "".join(
    json.dumps({"id": name, "prompt": name, "targets": ["right"], "metric": "exact_match"}) + "\n" for name in IDS
)
SAID = {"late": "right", "escape": "\x1b[31mright", "large": "x" * 200_000, "empty": ""}


def recording(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def refused(kind: str, what: str, says: str, content: str | bytes, **files: str) -> Row:
    return refused_run(kind, what, says, files={"said.jsonl": content, **files})


SAID_LINES = recording(*({"id": id, "output": text} for id, text in SAID.items()))
INI = f"{PYTEST_INI}addopts = --lm-adapter=replay:said.jsonl\n"
RECORDED = INI.replace("said.jsonl", "said.jsonl --lm-report-dir=recorded")
OF_LEDGER = INI.replace("said.jsonl", "recorded/ledger.jsonl")
BORDER = Border(
    name="a recording",
    files={"tasks/t.jsonl": TASK, "said.jsonl": SAID_LINES, "pytest.ini": INI},
    arguments=(),
    code=3,
    rows=(
        Row(
            kind="absent",
            what="no output for an example",
            fate="refused",
            example="t:absent",
            status="error",
            says="said.jsonl holds no output for 'absent' of task 't'",
        ),
        Row(kind="empty", what="an empty output", example="t:empty", status="failed", score=0.0),
        Row(kind="too large", what="an output of 200,000 characters", example="t:large", status="failed", score=0.0),
        Row(kind="control characters", what="an escape", example="t:escape", status="failed", score=0.0),
        Row(kind="out of order", what="outputs in another order", example="t:late", status="passed", score=1.0),
        refused("wrong type", "a number", "'output' must hold text, got [7]", recording({"id": "late", "output": 7})),
        refused("empty", "an empty line of JSON", 'expected "id" and one of', "{}\n"),
        refused("control characters", "no UTF-8", "cannot be read: not UTF-8", b'{"id": "\xff"}'),
        refused("raising", "no JSON", "not JSON", '{"id": \n'),
        refused(
            "twice",
            "two outputs for an example",
            "two outputs for 'late'",
            recording({"id": "late", "output": "right"}, {"id": "late", "output": "wrong"}),
        ),
        refused(
            "same name",
            "one output for examples of two tasks",
            "'u' have an example 'late'",
            recording({"id": "late", "output": "right"}),
            **{"tasks/u.jsonl": TASK},
        ),
        Row(
            kind="beside",
            never="the file is read once, by the process that the run begins in; nothing else has it open",
        ),
        Row(kind="environment", never="outputs are found by task and id, whatever variables and packages there are"),
        run_of_its_own(
            "changed unseen",
            "a prompt since the recording",
            files={"tasks/t.jsonl": TASK.replace('"prompt": "late"', '"prompt": "later"'), "pytest.ini": OF_LEDGER},
            before={"tasks/t.jsonl": TASK, "pytest.ini": RECORDED},
            code=3,
            example="t:late",
            status="passed",
        ),
        Row(
            kind="earlier run",
            never="a recording in the folder of the reports is read before it is moved: test_previous_reports.py",
        ),
        Row(kind="kept client", never="a request is answered by task and id of its example, whichever client sent it"),
        Row(kind="not finite or negative", never="outputs are texts, and no number of them is read"),
        Row(kind="late", never="the file is read whole before the run begins"),
        Row(kind="cancelled", never="reading a file waits for nothing that could be cancelled"),
        Row(kind="secret", never="replay has no options but the path, and knows no secret"),
    ),
)
