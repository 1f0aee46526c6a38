"""Secrets that a run knows reach the application, the metric and the judge, and nothing that is shown or kept."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_lmeval.types import Completion
from tests.border.table import Border, Row, check, refused_run, run_of_its_own
from tests.conftest import BOTH, NEEDLESS, RunModule
from tests.sources import source

KEY = "sk-PLANTED-0123456789abcdef"
RECORDS = """
{"id": "plain", "prompt": "hello", "targets": ["x"], "metric": "exact_match"}
{"id": "metric", "prompt": "exactly the key", "targets": ["sk-PLANTED-0123456789abcdef"], "metric": "exact_match"}
{"id": "raises", "prompt": "raise", "targets": ["x"], "metric": "exact_match"}
{"id": "refuses", "prompt": "refuse", "targets": ["x"], "metric": "exact_match"}
"""
FILES = {
    "model.py": source("border_secrets/model.py"),
    "pytest.ini": "[pytest]\n",
    "tests/test_evals.py": source("border_secrets/tests/test_evals.py"),
    "tests/test_bad.py": "import os\nraise RuntimeError(os.environ['MY_MODEL'])\n",
    "tasks/t.jsonl": RECORDS,
}
LOUD = [
    *("-v", "-rA", "--showlocals", "--tb=long", "--durations=3", "--continue-on-collection-errors"),
    *("--junitxml=out/junit.xml", "--json-report", "--json-report-file=out/report.json"),
    *("--lm-adapter=model:Model", "--lm-adapter-arg=api_key_env=MY_MODEL", "--lm-judge=model:Model"),
    *("--lm-cache=cache", "--lm-include-per-example", "--lm-retries=0"),
]
WRITTEN = ("leaderboard.json", "leaderboard.md", "report.html", "ledger.jsonl", "underway.jsonl")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def leaks(name: str, text: str) -> list[str]:
    """Return the lines in which there is the key, or so much of it as gives it away."""
    pieces = (KEY.lower(), KEY[:8].lower(), KEY[-12:].lower())
    found = [line for line in text.splitlines() if any(piece in line.lower() for piece in pieces)]
    return [f"{name}: {line[:300]}" for line in found]


@pytest.mark.parametrize("processes", BOTH)
def test_a_secret_planted_everywhere_is_in_nothing_that_a_run_leaves(
    tmp_path: Path, run_module: RunModule, processes: str
) -> None:
    write(tmp_path, FILES)
    without = [f"-pno:{name}" for name in NEEDLESS]
    done = run_module(tmp_path, "pytest", *without, "tests", "tasks", *LOUD, processes, MY_MODEL=KEY)
    # Errors leave the run incomplete, and with it the journal of what was paid for.
    assert 3 == done.returncode, done.stdout
    left = {path for folder in ("reports", "cache", "out") for path in (tmp_path / folder).rglob("*") if path.is_file()}
    assert {*WRITTEN, "answers.sqlite", "junit.xml", "report.json"} <= {path.name for path in left}
    found = leaks("terminal", done.stdout + done.stderr)
    for path in left:
        found += leaks(path.name, path.read_bytes().decode("utf-8", "replace"))
    assert [] == found
    assert done.stdout.count("***") > 50
    assert "***" in (tmp_path / "cache" / "answers.sqlite").read_bytes().decode("utf-8", "replace")
    # What decides got the answers as they came.
    assert {"application", "judged", "metric"} == passed_of(tmp_path) & {"application", "judged", "metric"}


def passed_of(folder: Path) -> set[str]:
    """Return the ids of the records, and the tasks of the functions, that passed."""
    board = json.loads((folder / "reports" / "leaderboard.json").read_text("utf-8"))
    records = [(row["task"], record) for row in board["tasks"] for record in row["per_example"]]
    return {record["id"] if task == "t" else task for task, record in records if record["status"] == "passed"}


def test_the_model_of_these_tests_plants_in_every_field_that_holds_text() -> None:
    numbers = {"int | None", "float | None", "bool", "tuple[float, ...]"}
    planted = {"str", "str | None", "tuple[ToolCall, ...]", "Mapping[str, Any]", "Mapping[str, str]", "tuple[str, ...]"}
    # Those of a response that took several requests are made by the run, of answers like these.
    known = {*numbers, *planted, "tuple[Exchange, ...]", "tuple[Mapping[str, Any], ...]"}
    assert set() == {str(each.type) for each in fields(Completion)} - known


# Answers with what follows ``say:``, in which {key} stands for the key.
ECHO = """
import os
from pytest_lmeval import Completion

class Model:
    name = "echo.v1"

    def __init__(self, api_key_env="MY_MODEL", known=None, **options):
        self.said = os.environ.get(api_key_env, "")
        if known is not None:
            self.known_secrets = known

    def generate_requests(self, requests):
        return [self.answer(request.text.rpartition("say: ")[2]) for request in requests]

    def answer(self, text):
        text = text.replace("{key}", self.said)
        if text.startswith("raise"):
            raise RuntimeError(text)
        return Completion(text, finish_reason=f"because {self.said}", thoughts=f"I know {self.said}")
"""


def _line(said: str, target: str = "x") -> str:
    return json.dumps({"id": "e", "prompt": f"say: {said}", "targets": [target], "metric": "exact_match"}) + "\n"


def _row(kind: str, what: str, task: str, said: str, says: str, status: str = "failed") -> Row:
    """Return a row of the shared run whose model says the key in ``said``."""
    return Row(
        kind=kind,
        what=what,
        fate="reported",
        files={f"tasks/{task}.jsonl": _line(said)},
        environment={"MY_MODEL": KEY},
        example=f"{task}:e",
        status=status,
        says=says,
        unsaid=KEY,
        on=("board", "page"),
    )


def _alone(kind: str, what: str, said: str, says: str, unsaid: str, *known: str, **environment: str) -> Row:
    """Return a row with a run of its own, and other secrets."""
    return run_of_its_own(
        kind,
        what,
        *(f"--lm-adapter-arg={one}" for one in known),
        "--lm-cache=cache",
        fate="reported",
        code=1,
        files={"tasks/a.jsonl": _line(said)},
        environment=environment,
        example="a:e",
        status="failed",
        says=says,
        unsaid=unsaid,
        on=("board", "page"),
    )


PARTS = ("left-left-left", "right-right-right")
JOINED = f"known=['{PARTS[0]}:{PARTS[1]}']"
QUOTED = 'pass "word"\\ with <signs>'
BORDER = Border(
    name="secrets",
    files={"model.py": ECHO},
    arguments=("--lm-adapter=model:Model", "--lm-adapter-arg=api_key_env=MY_MODEL"),
    code=3,
    rows=(
        _alone("absent", "the variable is not set", "[{key}]", "[]", KEY, "api_key_env=NOT_SET"),
        _alone("empty", "an empty secret hides nothing", "[a]", "[a]", "***", "known=['', 'abc']"),
        refused_run(
            "wrong type",
            "one text where a list of texts is meant",
            "adapter echo.v1: known_secrets is str; expected a list of texts",
            "--lm-adapter-arg=known=one-text",
            files={"tasks/a.jsonl": _line("x")},
        ),
        _alone("too large", "a key of 6,000 characters", "[{key}]", "[***]", "0abc1abc2", MY_MODEL="0abc1abc2" * 700),
        Row(kind="not finite or negative", never="a secret is a text"),
        _alone(
            "control characters",
            "signs that JSON and HTML write otherwise",
            f"[{QUOTED}]",
            "[***]",
            "with <signs>",
            f"known=['{QUOTED}']",
        ),
        _row("twice", "the key twice in one answer", "twice", "[{key} and {key}]", "[*** and ***]"),
        _alone("late", "what the adapter knows", "[lately-known]", "[***]", "lately-known", "known=['lately-known']"),
        _alone("out of order", "parts of a secret", f"[{PARTS[1]}, {PARTS[0]}]", "[***, ***]", PARTS[0], JOINED),
        Row(
            kind="beside",
            what="a plain test that fails with the key",
            fate="reported",
            files={"test_plain.py": "import os\ndef test_plain():\n    assert os.environ['MY_MODEL'] == 'x'\n"},
            says="AssertionError: assert '***' == 'x'",
            unsaid=KEY,
            on=("terminal", "junit"),
        ),
        Row(
            kind="environment",
            what="a key in a variable that no adapter reads",
            fate="reported",
            files={"tasks/other.jsonl": _line("[tok-of-another-0123]")},
            environment={"MY_API_TOKEN": "tok-of-another-0123"},
            example="other:e",
            status="failed",
            says="[***]",
            unsaid="tok-of-another-0123",
            on=("board", "page"),
        ),
        Row(
            kind="changed unseen",
            never="a key is no part of what is asked or kept, so that another one changes nothing",
        ),
        Row(kind="earlier run", never="nothing that a run leaves has a key: the test of a secret planted everywhere"),
        Row(kind="kept client", never="a client's own key is thrown away: the row own_key of tests/border/endpoint.py"),
        Row(kind="cancelled", never="what a cancelled request would have answered does not arrive"),
        _row(
            "raising", "an exception that quotes the key", "raises", "raise {key}", "RuntimeError: raise ***", "error"
        ),
        _row("secret", "the key in an answer, its thoughts and why it ended", "key", "[{key}]", "[***]"),
        _alone(
            "same name", "a short key that is a word of the answer, too", "[EMPTY]", "[EMPTY]", KEY, MY_MODEL="EMPTY"
        ),
    ),
)


def test_the_border(tmp_path: Path, run_module: RunModule) -> None:
    check(BORDER, tmp_path, run_module)
