"""A ledger answers what eval functions asked in its run, each request by its equal, while the functions run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.replay import ReplayAdapter
from pytest_lmeval.adapters.resolve import as_judge
from pytest_lmeval.asking.ask import ask
from pytest_lmeval.errors import UsageError
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.types import Completion, Generate
from tests.conftest import Project


def _step(prompt: str, output: str | None, judge: str = "", **fields: Any) -> dict[str, Any]:
    step = {"kind": "judge" if judge else "request", "name": judge or "m.v1", "key": request_hash([Generate(prompt)])}
    return {**step, **({} if output is None else {"output": output}), **fields}


def _adapter(folder: Path, details: Mapping[str, Any], outputs: tuple[str, ...] = ()) -> ReplayAdapter:
    header = {"header": {"schema": "pytest-lmeval/ledger/1", "timestamp": "t", "manifest": {}}}
    function = {} if outputs else {"function": {"name": "test_a", "sha256": "1"}}
    result = {"task": "t", "id": "a", "outputs": outputs, "details": {**details, **function}}
    (folder / "ledger.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (header, result)))
    return ReplayAdapter(str(folder / "ledger.jsonl"))


def _said(adapter: Any, *requests: Generate) -> list[str]:
    return [each.text if isinstance(each, Completion) else str(each) for each in ask(adapter, list(requests))]


def _asked(prompt: str, repeat: int = 0, **fields: Any) -> Generate:
    return Generate(prompt, "t", "a", repeat, **fields)


def test_requests_are_answered_by_what_they_ask_and_how_many_equals_came_before(tmp_path: Path) -> None:
    steps = [_step("q", "1"), _step("p", "2"), _step("q", "3"), _step("empty", ""), {"kind": "tool", "name": "x"}]
    adapter = _adapter(tmp_path, {"steps": steps})
    assert ["2", "1", "", "3"] == _said(adapter, _asked("p"), _asked("q"), _asked("empty"), _asked("q"))


@pytest.mark.parametrize(
    "request_",
    [
        _asked("r"),
        _asked("failed"),
        _asked("left"),
        _asked("q", 1),
        _asked("q", stop=("x",)),
        _asked("q", options={"model": "n"}),
    ],
)
def test_a_request_that_was_not_recorded_is_an_error(tmp_path: Path, request_: Generate) -> None:
    steps = [_step("q", "1"), _step("failed", None, error="server said 500"), _step("left", None)]
    (said,) = _said(_adapter(tmp_path, {"steps": steps}), request_)
    assert "ledger.jsonl holds no answer to this request for 'a' of task 't': its prompt or an earlier" in said


def test_a_judge_has_its_own_answers_whoever_it_was_and_the_model_has_the_model_s(tmp_path: Path) -> None:
    steps = [_step("q", "model's"), _step("polite?", "yes", judge="large.v1"), _step("q", "judge's", judge="small.v1")]
    model = _adapter(tmp_path, {"steps": steps})
    judge = as_judge(model)
    assert ("model's", ["yes", "judge's"]) == (*_said(model, _asked("q")), _said(judge, _asked("polite?"), _asked("q")))
    assert judge is as_judge(judge)
    for adapter, prompt in ((model, "polite?"), (judge, "other")):
        (said,) = _said(adapter, _asked(prompt))
        assert "holds no" in said


def test_steps_that_no_run_writes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"ledger.jsonl:2: not a result: exchanges: expected the texts request and output"
    ):
        _adapter(tmp_path, {"steps": [{**_step("q", "1"), "output": 7}]})


def test_one_output_answers_one_request_of_an_example(tmp_path: Path) -> None:
    adapter = _adapter(tmp_path, {}, ("1",))
    adapter.check_selection([("t", "a")])
    first, again, other = _said(adapter, _asked("q"), _asked("q"), _asked("r"))
    assert ("1", "1") == (first, again)
    assert other.endswith(
        "ledger.jsonl holds one output, but this is a second request, for 'a' of task 't'; replay a run's ledger"
    )


def test_the_next_run_of_an_adapter_may_ask_otherwise(tmp_path: Path) -> None:
    adapter = _adapter(tmp_path, {}, ("1",))
    for prompt in ("q", "r"):
        adapter.check_selection([("t", "a")])
        assert ["1"] == _said(adapter, _asked(prompt))


FUNCTION = """
import asyncio
from pytest_lmeval import eval_task

ROWS = [{"id": name, "said": name} for name in "abcd"]

@eval_task("support", data=ROWS)
async def test_ticket(row, lm):
    async with asyncio.TaskGroup() as group:
        asks = [group.create_task(lm.ask("say: " + said)) for said in (row["said"], "more", "more")]
    found = "".join(ask.result().text for ask in asks)
    lm.score("right", found.startswith(row["said"]))
    lm.note("found", found)
    lm.score("polite", await lm.judge("Polite?", found) == "yes")
"""
COUNTING = """
import itertools

class Model:
    name = "counting.v1"
    numbers = itertools.count()

    def generate(self, prompts):
        return [f"{prompt.rpartition('say: ')[2]}{next(self.numbers)}" for prompt in prompts]

class Judge:
    name = "judge.v1"

    def generate(self, prompts):
        return ["no" if "b" in prompt.partition("<text>")[2][:4] else "yes" for prompt in prompts]
"""


def _facts(project: Project, folder: str) -> Any:
    examples = project.examples(folder)
    notes = {key: [each["notes"] for each in example["details"]["repeats"]] for key, example in examples.items()}
    return project.board(folder)["digest"], notes, {key: each["metrics"] for key, each in examples.items()}


@pytest.mark.parametrize(
    ("ledger", "leaderboard"), [("-n2", "-n0"), pytest.param("-n0", "-n2", marks=pytest.mark.again)]
)
def test_a_run_replayed_has_the_answers_and_the_digest_of_the_run(
    project: Project, ledger: str, leaderboard: str
) -> None:
    project.write("counting.py", COUNTING)
    project.write("test_support.py", FUNCTION)
    options = ("test_support.py", "--lm-gate=tasks", "--lm-include-per-example", "--lm-repeats=2")
    asked = project.run_pytest("--lm-adapter=counting:Model", "--lm-judge=counting:Judge", *options)
    assert 0 == asked.ret

    for recording, processes in (("ledger.jsonl", ledger), ("leaderboard.json", leaderboard)):
        replay = f"replay:reports/{recording}"
        again = (f"--lm-adapter={replay}", f"--lm-judge={replay}", f"--lm-report-dir=from {recording}")
        assert 0 == project.run_pytest(*again, *options, processes).ret
        assert _facts(project, "reports") == _facts(project, f"from {recording}")


def test_a_function_that_asks_otherwise_is_an_error_and_a_plain_recording_holds_one_request(project: Project) -> None:
    project.write("test_support.py", FUNCTION.replace('    lm.score("polite"', "    return\n    lm.score('polite'"))
    project.write("plain.replay.jsonl", '{"task": "support", "id": "a", "output": "aha"}\n')
    project.write("counting.py", COUNTING)
    options = ("test_support.py", "--lm-include-per-example", "-k", "test_ticket[a]", "--lm-judge=counting:Judge")
    assert 3 == project.run_pytest("--lm-adapter=replay:plain.replay.jsonl", *options).ret
    assert "holds one output, but this is a second request" in project.examples()["support:a"]["error"]
