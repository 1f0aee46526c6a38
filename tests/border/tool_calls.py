"""The border "calls of tools": what a model asks for, against the schemas and the calls that a record expects."""

from __future__ import annotations

import json
from typing import Any

from tests.border.table import Border, Row, refused_run

# The prompt is what the model asks for: a list of [name, arguments as text].
CALLER = """
import json
from pytest_lmeval import Completion

class Caller:
    name = "caller.v1"

    def __init__(self, api_key=""):
        self.key = api_key

    def generate_requests(self, requests):
        return [self.answer(json.loads(request.text)) for request in requests]

    def answer(self, asked):
        if isinstance(asked, str):
            raise RuntimeError(asked)
        return Completion("", tool_calls=[("", name, given.replace("@key", self.key)) for name, given in asked])
"""
SECRET = "kept-hushed-000-secret"
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1},
        "on": {"type": "string", "format": "date"},
    },
    "required": ["city"],
}
TOOLS = [{"name": "weather", "parameters": PARAMETERS}, {"name": "now"}]
RIGA = {"name": "weather", "arguments": {"city": "Riga"}}
NOW = {"name": "now"}


def _record(asked: Any, *calls: dict[str, Any], **extras: Any) -> str:
    said = {"tools": TOOLS, "calls": [*calls], **extras}
    return json.dumps({"id": "a", "prompt": json.dumps(asked), "metric": "tool_calls", "extras": said}) + "\n"


def _row(kind: str, name: str, asked: Any, *calls: dict[str, Any], says: str = "", **fields: Any) -> Row:
    """Return the row of an example of the task ``name``; it passes, unless its failure ``says`` why."""
    extras = {key: fields.pop(key) for key in ("arguments", "text", "tools") if key in fields}
    expected = {"status": "failed", "score": 0.0, "on": ("terminal", "board")} if says else {"score": 1.0}
    files = {f"tasks/{name}.jsonl": _record(asked, *calls, **extras)}
    given = {"status": "passed", **expected, **fields}
    return Row(kind=kind, what=json.dumps(asked)[:60], files=files, example=f"{name}:a", says=says, **given)


def _bad(kind: str, name: str, says: str, *calls: dict[str, Any], **extras: Any) -> Row:
    """Return the row of a record that no call can be right by."""
    files = {f"tasks/{name}.jsonl": _record([], *calls, **extras)}
    return refused_run(kind, json.dumps(calls), says, code=2, files=files)


def _asked(**given: Any) -> list[list[str]]:
    return [["weather", json.dumps(given)]]


BORDER = Border(
    name="calls of tools",
    files={"caller.py": CALLER},
    arguments=("--lm-adapter=caller:Caller", f"--lm-adapter-arg=api_key={SECRET}"),
    code=3,
    rows=(
        _row("absent", "no_call", [], RIGA, says='no call of weather(city="Riga")'),
        _row("absent", "without", [["weather", "{}"]], RIGA, says="argument city: it is required, and missing"),
        _row("empty", "nothing", [["now", ""]], NOW),
        _row("empty", "null", [["now", "null"]], NOW),
        _row(
            "wrong type", "list", [["weather", "[1]"]], RIGA, says="call of weather: arguments that are no JSON object"
        ),
        _row("wrong type", "number", _asked(city=7), RIGA, says="argument city: expected string, got 7"),
        _row("wrong type", "choice", _asked(city="Riga", unit="K"), RIGA, says="argument unit: expected one of"),
        _row(
            *("wrong type", "bogus", _asked(city="Riga", bogus=1), RIGA),
            says="argument bogus: there is no parameter 'bogus'",
            arguments="subset",
        ),
        _row("too large", "long", _asked(city="R" * 100_000), RIGA, says="is against maxLength 40"),
        _row(
            *("too large", "deep", [["weather", '{"city": ' + "[" * 100_000]], RIGA),
            says="arguments that are no JSON object",
        ),
        _row("not finite or negative", "nan", [["weather", '{"city": NaN}']], RIGA, says="arguments that are no JSON"),
        _row("not finite or negative", "minus", _asked(city="Riga", days=-1), RIGA, says="-1 is against minimum 1"),
        _row(
            "control characters",
            "escape",
            _asked(city="\x1b[2J\ud800"),
            RIGA,
            says="call of weather: argument city: ex",
        ),
        _row("twice", "again", [*_asked(city="Riga"), *_asked(city="Riga")], RIGA, says="a call too many: weather("),
        _row("twice", "key", [["weather", '{"city": "Rome", "city": "Riga"}']], RIGA),
        Row(kind="late", never="calls come with their answer; the time of a pattern is in metrics/test_tool_calls.py"),
        _row("out of order", "order", [["now", "{}"], *_asked(city="Riga")], RIGA, NOW),
        Row(kind="cancelled", never="a call is only written down: nothing is carried out that could be cancelled"),
        _row("raising", "raising", "no luck", RIGA, says="raised RuntimeError: no luck", status="error", score=None),
        _row("secret", "secret", _asked(city="@key"), RIGA, says="argument city: expected", unsaid=SECRET),
        _row(
            "same name",
            "same",
            [*_asked(city="Rome"), *_asked(city="Riga")],
            RIGA,
            says='a call too many: weather(city="Ro',
        ),
        _row("empty", "left_out", _asked(city="Riga"), {**RIGA, "accept": {"unit": ["C"]}, "optional": ["unit"]}),
        _row("wrong type", "spelt", _asked(city="RIGA."), RIGA, text="bfcl"),
        Row(
            kind="absent",
            what="a keyword of a schema that is not looked at",
            fate="reported",
            says="these keywords of the tools' schemas are not checked: format",
        ),
        Row(kind="beside", never="a call is compared with its record alone, and carries nothing out"),
        Row(
            kind="environment", never="schemas are checked by the package itself, without a library that may be missing"
        ),
        Row(
            kind="changed unseen",
            never="tools and calls are parts of a record: its change is told, as in test_task_file.py",
        ),
        Row(kind="earlier run", never="calls are parts of an answer, and come back with it from a cache or a ledger"),
        Row(
            kind="kept client",
            never="calls of an application's own client are its own to make, and no record expects any",
        ),
        _bad("absent", "bad", "argument city: it is required, and missing", {"name": "weather", "arguments": {}}),
        _bad("wrong type", "bad", "argument city: expected string, got 7", {**RIGA, "arguments": {"city": 7}}),
        _bad("same name", "bad", "two tools are called 'now'", NOW, tools=[NOW, NOW]),
        _bad("not finite or negative", "bad", "-1 is against minimum 1", {**RIGA, "accept": {"days": [-1]}}),
    ),
)
