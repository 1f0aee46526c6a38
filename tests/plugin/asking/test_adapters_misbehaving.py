"""What an adapter does wrong is an error of the examples it was asked for: named, never scored, never fatal."""

from __future__ import annotations

import pytest

from tests.conftest import Project

WHOLE_BATCH = {
    "one too few": "1 response(s) for 2 request(s)",
    "one too many": "3 response(s) for 2 request(s)",
    "none at all": "NoneType",
    "a generator": "generator",
    "times out": "TimeoutError: 60 s",
}
ONE_ANSWER = {
    "raises": "RuntimeError: out of tokens",
    "raises nothing to say": "ValueError",
    "exits": "SystemExit: 5",
}


@pytest.fixture
def rogue(project: Project) -> Project:
    """Provide one task a misbehaviour: in batches of two, a spoilt pair and a pair that is fine."""
    project.copy("misbehaving_adapters", "model.py")
    for how in [*WHOLE_BATCH, *ONE_ANSWER]:
        prompts = ["fine", how, "fine", "fine"]
        records = [
            {"id": f"e{n}", "prompt": prompt, "targets": ["fine"], "metric": "exact_match"}
            for n, prompt in enumerate(prompts)
        ]
        project.task(f"tasks/{how.replace(' ', '-')}.jsonl", *records)
    return project


def test_a_spoilt_call_is_an_error_of_its_examples_and_one_that_raised_of_those_that_raise_alone(
    rogue: Project,
) -> None:
    result = rogue.run("--lm-batch-size=2", "--lm-include-per-example")
    assert 3 == result.ret
    examples = rogue.examples()
    expected = {}
    for how in WHOLE_BATCH:
        kind = "timeout" if how == "times out" else "error"
        expected.update({(how, 0): kind, (how, 1): kind, (how, 2): "passed", (how, 3): "passed"})
    for how in ONE_ANSWER:
        expected.update({(how, 0): "passed", (how, 1): "error", (how, 2): "passed", (how, 3): "passed"})
    statuses = {(how, n): examples[f"{how.replace(' ', '-')}:e{n}"]["status"] for how, n in expected}
    assert expected == statuses
    for how, reason in {**WHOLE_BATCH, **ONE_ANSWER}.items():
        record = examples[f"{how.replace(' ', '-')}:e1"]
        assert record["score"] is None
        assert "rogue.v1" in record["error"]
        assert reason in record["error"]
        result.stdout.fnmatch_lines([f"*could not be scored*rogue.v1*{reason.split('(')[0]}*"])
    board = rogue.board()
    assert not board["complete"]
    assert 2 == board["counts"]["timeouts"]
    assert 2 * (len(WHOLE_BATCH) - 1) + len(ONE_ANSWER) == board["counts"]["errors"]


def test_errors_do_not_pull_a_score_down(rogue: Project) -> None:
    rogue.run("--lm-batch-size=2", "tasks/raises.jsonl")
    (row,) = rogue.board()["tasks"]
    assert (1.0, 3, 1, 4) == (row["score"], row["correct"], row["errors"], row["total"])
    rogue.run("--lm-batch-size=2", "tasks/none-at-all.jsonl")
    (row,) = rogue.board()["tasks"]
    assert (1.0, 2, 2, 4) == (row["score"], row["correct"], row["errors"], row["total"])


def test_so_many_errors_may_be_allowed(rogue: Project) -> None:
    args = ["--lm-batch-size=2", "tasks/none-at-all.jsonl", "tasks/raises.jsonl"]
    assert 0 == rogue.run(*args, "--lm-max-errors=3").ret
    board = rogue.board()
    assert board["complete"]
    assert 1.0 == board["overall_score"]
    assert 3 == rogue.run(*args, "--lm-max-errors=2").ret
    assert 0 == rogue.run(*args, "--lm-max-errors=40%").ret
    assert 3 == rogue.run(*args, "--lm-max-errors=30%").ret


def test_shards_processes_and_sizes_of_batches_make_no_other_examples_errors(project: Project) -> None:
    project.copy("misbehaving_adapters", "model.py")
    prompts = ["raises" if number in (3, 4, 10) else "fine" for number in range(16)]
    project.task(
        "tasks/t.jsonl", *[{**project.record(f"e{n}", "fine"), "prompt": prompt} for n, prompt in enumerate(prompts)]
    )

    def failed(*args: str) -> set[str]:
        assert 3 == project.run(*args, "--lm-include-per-example").ret
        return {name for name, example in project.examples().items() if example["status"] == "error"}

    whole = failed()
    assert {"t:e3", "t:e4", "t:e10"} == whole
    assert 16 == project.board()["usage"]["retries"]
    assert whole == failed("--lm-shard=1/2") | failed("--lm-shard=2/2")
    assert whole == failed("-n2", "--lm-batch-size=3")
    assert whole == failed("--lm-resume", "--lm-batch-size=5")


def test_an_empty_answer_is_an_answer(project: Project) -> None:
    mute = "class Model:\n    name = 'mute.v1'\n    def generate(self, prompts): return [''] * len(prompts)\n"
    project.write("model.py", mute)
    project.small_tasks()
    result = project.run()
    assert 1 == result.ret
    result.assert_outcomes(failed=5)
    board = project.board()
    assert board["complete"]
    assert 0.0 == board["overall_score"]
    assert (5, 5, 0) == tuple(board["counts"][key] for key in ("collected", "scored", "errors"))


ASYNC = """
import asyncio
from pytest_lmeval import Completion

class Model:
    name = "patient.v1"

    async def complete(self, request):
        await asyncio.sleep(0)
        text = request.prompt.rpartition("say: ")[2]
        if text == "bad":
            raise RuntimeError("one of many")
        if text == "late":
            raise TimeoutError
        return Completion(text) if text != "plain" else 17
"""


def test_one_bad_request_of_an_async_adapter_spoils_only_itself(project: Project) -> None:
    project.write("model.py", ASYNC)
    project.task("tasks/t.jsonl", *[project.record(said, said) for said in ("good", "bad", "late", "plain", "fine")])
    result = project.run("--lm-include-per-example", "--lm-retries=0")
    assert 3 == result.ret
    statuses = {id: record["status"] for id, record in project.examples().items()}
    expected = {"t:good": "passed", "t:bad": "error", "t:late": "timeout", "t:plain": "error", "t:fine": "passed"}
    assert expected == statuses


REQUESTS = """
from pytest_lmeval import Completion

class Model:
    name = "requests.v1"

    def generate(self, prompts):
        raise AssertionError("generate_requests comes first")

    def generate_requests(self, requests):
        return [Completion(f"{request.task}/{request.id}", latency_ms=12.5) for request in requests]
"""


def test_an_adapter_may_see_task_and_id_and_tell_its_own_latency(project: Project) -> None:
    project.write("model.py", REQUESTS)
    project.task("tasks/en/qa.jsonl", project.spec("a", "x", target="en/qa/a"))
    project.run().assert_outcomes(passed=1)
    assert 12.5 == project.board()["tasks"][0]["latency_ms"]


def test_a_model_without_a_name_goes_by_its_class(project: Project) -> None:
    project.write("model.py", "class Model:\n    def generate(self, prompts): return list(prompts)\n")
    project.task("tasks/t.jsonl", project.record("a", "x", target="say: x"))
    project.run().assert_outcomes(passed=1)
    assert "Model" == project.board()["adapter"]
