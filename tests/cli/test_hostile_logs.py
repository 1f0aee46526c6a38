"""No text from outside gives an order to the machine that runs a job, whichever command prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.cli import COMMANDS
from tests.cli.conftest import Evaluate, Lmeval
from tests.cli.yaml_project import TASK, write_project
from tests.conftest import MadeOnce
from tests.runner_log import ORDERS, commands_in

FOLDER = "::error::b\n::error::c ##[group]"
"""The name of a folder for output; who starts a command names it."""
MODEL = f"""
import os

class Model:
    name = "m{FOLDER}"

    def generate(self, prompts):
        return [prompt if prompt.startswith("good") else prompt + os.environ.get("WRONG", "") for prompt in prompts]
""".replace("\n::", "\\n::")
ANSWER = f"""
class Model:
    name = "m"

    def generate(self, prompts):
        return [{ORDERS[0]!r} + {ORDERS[2]!r} for prompt in prompts]

class Broken:
    def generate(self, prompts):
        raise ValueError({"".join(ORDERS)!r})
"""


@dataclass(frozen=True)
class Runs:
    """Two runs of the same tasks, the later one worse, and the ledgers of the earlier one in two parts."""

    before: Path
    after: Path
    shards: tuple[Path, Path]

    @property
    def ledgers(self) -> tuple[Path, Path]:
        return self.before / "ledger.jsonl", self.after / "ledger.jsonl"


@pytest.fixture(scope="session")
def runs(made_once: MadeOnce, evaluate: Evaluate) -> Runs:
    """Provide reports as a stranger may have sent them: every text that a report names by itself gives orders."""
    folder = made_once("hostile-runs", partial(make_runs, evaluate))
    first, second = (folder / f"part-{part}/ledger.jsonl" for part in (1, 2))
    return Runs(folder / "before", folder / "after", (first, second))


def make_runs(evaluate: Evaluate, folder: Path) -> None:
    (folder / "model.py").write_text(MODEL)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "tasks").mkdir()
    records = [
        {"id": f"{number} {text}", "prompt": text + "x", "targets": [text + "x"], "metric": "exact_match"}
        for number, text in enumerate(ORDERS * 2)
    ]
    for name in ("one", "two"):
        (folder / f"tasks/{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks")
    before = evaluate(folder, "before", *options)
    after = evaluate(folder, "after", *options, wrong=ORDERS[0])
    for part in (1, 2):
        evaluate(folder, f"part-{part}", *options, f"--lm-shard={part}/2")
    for report in (before, after):  # merge would see that somebody has changed a shard
        ledger = report / "ledger.jsonl"
        written: list[dict[str, Any]] = [_renamed(json.loads(line)) for line in ledger.read_text().splitlines()]
        # The digest is of the names, too, and a baseline whose digest is another's is refused.
        written[-1]["footer"].pop("digest")
        ledger.write_text("".join(json.dumps(record) + "\n" for record in written))


def _renamed(value: Any) -> Any:
    """Return ``value`` with another name of the task ``one`` wherever it is mentioned."""
    if isinstance(value, dict):
        return {_renamed(key): _renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    return ORDERS[0] + ORDERS[2] if value == "one" else value


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path)
    (tmp_path / "answer.py").write_text(ANSWER)
    hostile = TASK.replace("Pick the first", json.dumps("".join(ORDERS))[1:-1]).replace("the-first", "hostile")
    (tmp_path / "tasks/hostile.yaml").write_text(hostile)
    block = "  actions: []\nnotes: |\n  ::error::b\n"
    (tmp_path / "tasks/orders.yaml").write_text(TASK.replace("the-first", "orders") + block)
    bad = [{text: text, "id": text, "prompt": text, "targets": [text], "metric": text} for text in ORDERS]
    lines = [json.dumps(record) + "\n" for record in bad]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/bad.jsonl").write_text("".join(lines))
    (tmp_path / "bad/bad.yaml").write_text(
        f"definition: {json.dumps(ORDERS[0])}\nkey: 1\n{json.dumps(ORDERS[1])}: {{}}\n"
    )
    (tmp_path / "bad/changed.yaml").write_text(TASK.replace("First", json.dumps(ORDERS[0] + ORDERS[2])))
    for name in ("::error file=a::x", "a\n::error::b"):
        (tmp_path / f"bad/{name}.jsonl").write_text("{}\n")
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps({"question": "q", "ground_truth": "a", FOLDER: {}}) + "\n")
    (tmp_path / "good-gsm8k.jsonl").write_text(json.dumps({"question": "q", "ground_truth": "A: 1"}) + "\n")
    (tmp_path / "broken.jsonl").write_text(json.dumps({"header": {"schema": "".join(ORDERS)}}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for module in ("answer", "picker"):
        monkeypatch.delitem(sys.modules, module, raising=False)


Call = tuple[str | Path, ...]
CALLS: dict[str, Callable[[Runs], list[Call]]] = {
    "validate": lambda runs: [("bad",), ("bad", "--lint"), ("bad", "--format=json"), (FOLDER,)],
    "schema": lambda runs: [("leaderboard",), (FOLDER,)],
    "init": lambda runs: [(FOLDER,), (FOLDER,), ("x", "--model", FOLDER), ("x", "--from", f"{FOLDER}.csv")],
    "convert": lambda runs: [
        ("gsm8k", "gsm8k.jsonl", "-o", "out"),
        ("gsm8k", "good-gsm8k.jsonl", "-o", FOLDER),
        (FOLDER, "gsm8k.jsonl", "-o", "out"),
    ],
    "diff": lambda runs: [
        *[(*runs.ledgers, f"--format={form}", "--limit=99") for form in ("table", "json", "markdown")],
        (runs.before, "broken.jsonl"),
        ("broken.jsonl", FOLDER),
    ],
    "history": lambda runs: [
        *[(*runs.ledgers, f"--format={form}") for form in ("table", "json", "markdown")],
        (".", FOLDER, "--html=history.html"),
        (runs.ledgers[0], f"--task={FOLDER}"),
        ("broken.jsonl",),
    ],
    "plan": lambda runs: [
        *[("--from", runs.before, "--drop=0.1", f"--format={form}") for form in ("text", "json")],
        ("bad", "--drop=0.1"),
        (FOLDER, "--drop=0.1"),
        ("--from", FOLDER, "--drop=0.1"),
    ],
    "rank": lambda runs: [
        *[(*runs.ledgers, f"--format={form}") for form in ("table", "json", "markdown")],
        (runs.ledgers[0], runs.ledgers[0]),
        ("broken.jsonl", FOLDER),
    ],
    "merge": lambda runs: [
        (*runs.shards, "-o", FOLDER),
        (*runs.shards, "-o", "whole", "--baseline", runs.ledgers[1]),
        (*runs.shards, "-o", "again", "--baseline", runs.ledgers[0], "--strict", f"--min-score={FOLDER}=1"),
        (*runs.ledgers, "-o", "x"),
        (runs.shards[0], runs.shards[0], "-o", "x"),
    ],
    "baseline": lambda runs: [
        ("show", runs.before / "ledger.jsonl"),
        ("show", runs.before / "ledger.jsonl", "--format=json"),
        ("accept", runs.before / "ledger.jsonl", "-o", f"{FOLDER}.json"),
        ("accept", runs.after / "ledger.jsonl", "-o", f"{FOLDER}.json"),
        ("accept", runs.shards[0], "-o", FOLDER),
        ("show", "broken.jsonl"),
        (FOLDER, "broken.jsonl"),
    ],
    "calibrate": lambda runs: [
        (*runs.ledgers, "--rounds=2"),
        (*runs.ledgers, "--rounds=2", "--format=json"),
        ("broken.jsonl", "broken.jsonl"),
    ],
    "report": lambda runs: [
        (runs.ledgers[0], "-o", "::error::b::c.html"),
        (runs.ledgers[0], "--baseline", runs.ledgers[1]),
        ("broken.jsonl",),
    ],
    "publish": lambda runs: [
        ("eee", runs.ledgers[0], "-o", "::error::b::c.json"),
        ("otel", runs.ledgers[0], "-o", "::error::b::c.json"),
        ("otel", "broken.jsonl", "-o", "x"),
    ],
    "tasks": lambda runs: [(), ("bad",), ("bad", "--format=json"), (FOLDER,)],
    "test": lambda runs: [
        ("hostile", "--lm-adapter=answer:Model"),
        ("hostile", "--lm-adapter=answer:Broken"),
        ("hostile", f"--lm-adapter=answer:{FOLDER}"),
        ("bad/bad.yaml", "--lm-adapter=toy"),
        ("bad/bad.jsonl", "--lm-adapter=toy"),
        (FOLDER, "--lm-adapter=toy", f"--lm-adapter-arg={FOLDER}"),
    ],
    "add": lambda runs: [
        ("-f", "bad/bad.yaml"),
        ("-f", "bad/changed.yaml"),
        ("-f", "bad/*.yaml", "bad/*.jsonl"),
        ("-f", FOLDER),
    ],
    "export": lambda runs: [("hostile",), ("orders",), ("orders", "-o", "::error::b::c.yaml"), (FOLDER,)],
    "delete": lambda runs: [("hostile",), (FOLDER,)],
    "cache": lambda runs: [("list", FOLDER), ("clear", "bad/bad.yaml"), ("prune", FOLDER, "--older-than", FOLDER)],
    "import": lambda runs: [("promptfoo", "bad/bad.yaml", "-o", "imported"), ("promptfoo", FOLDER, "-o", "imported")],
    # What pytest itself prints is tried in the runs of other tests.
    "run": lambda runs: [("--lm-adapter=no:such\n::set-output name=a::b", "nowhere")],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_an_order(command: str, lmeval: Lmeval, runs: Runs) -> None:
    for arguments in CALLS[command](runs):
        status, out, err = lmeval(command, *arguments)
        assert status in (0, 1, 2, 3, 4), arguments
        assert ([], []) == (commands_in(out), commands_in(err)), arguments
        assert "Traceback" not in err
        assert not set(out + err) & set("\x1b\r\u2028\x85\xa0"), arguments


def test_what_gave_orders_can_be_read(lmeval: Lmeval, runs: Runs) -> None:
    assert "    \\x3a:set-output name=a::b" in lmeval("diff", *runs.ledgers)[1]
    assert "said\\n::set-output name=a::btext \\x23#[group]more" in lmeval("rank", *runs.ledgers)[1]
    assert "::error::c \\x23#[group]" in lmeval("test", FOLDER, "--lm-adapter=toy")[2]
    merged = lmeval("merge", *runs.shards, "-o", "whole", "--baseline", runs.ledgers[1])
    assert "wrote whole/ledger.jsonl" in merged[1], merged[2]


def test_json_means_the_same(lmeval: Lmeval) -> None:
    text = lmeval("validate", "bad/bad.jsonl", "--format=json")[1]
    assert "##" not in text
    assert "##[group]" in str(json.loads(text))


def test_a_task_that_would_give_orders_is_exported_to_a_file_alone(lmeval: Lmeval) -> None:
    status, out, err = lmeval("export", "orders")
    assert (2, "") == (status, out)
    assert "write it to a file with -o FILE" in err
    assert 0 == lmeval("export", "orders", "-o", "out.yaml")[0]
    assert Path("tasks/orders.yaml").read_bytes() == Path("out.yaml").read_bytes()
