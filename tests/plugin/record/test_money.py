"""Costs as the provider charges them: cached tokens, a stated cost, and attempts that were made again."""

from __future__ import annotations

from typing import Any

import pytest

from tests import needs
from tests.adapters.openai.scripted_server import chat, json_reply, serving
from tests.conftest import Project

USAGE = {"prompt_tokens": 100_000, "completion_tokens": 100, "total_tokens": 100_100}
PRICED = ("--lm-adapter-arg=price_input=1", "--lm-adapter-arg=price_output=1")


def cost(project: Project, usage: dict[str, Any], *options: str) -> Any:
    project.task("tasks/t.jsonl", project.record("a", "Say yes", "yes"))
    with serving([json_reply({**chat("yes"), "usage": usage})]) as server:
        result = project.run(
            "tasks", "--lm-adapter=openai:m", f"--lm-adapter-arg=base_url={server.base_url}",
            "--lm-adapter-arg=api_key_env=''", *options,
        )  # fmt: skip
    assert 0 == result.ret, result.stdout.str() + result.stderr.str()
    return project.board()["usage"].get("cost")


@pytest.mark.parametrize(
    ("told", "options", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 99_000}}, PRICED, 0.1001),
        ({"prompt_tokens_details": {"cached_tokens": 99_000}}, (*PRICED, "price_cached=0.1"), 0.011),
        ({"prompt_cache_hit_tokens": 99_000}, (*PRICED, "price_cached=0.1"), 0.011),
        ({"prompt_tokens_details": {"cached_tokens": 10**9}}, (*PRICED, "price_cached=0"), 0.0001),
        ({"prompt_tokens_details": None}, (*PRICED, "price_cached=0.1"), 0.1001),
        ({"cost": 0.25}, (), 0.25),
        ({"cost": 0.25}, PRICED, 0.1001),
        ({"cost": None}, (), None),
        ({"cost": -1}, (), None),
        ({"cost": "0.25"}, (), None),
    ],
)
def test_a_cost_has_the_price_of_cached_tokens_or_is_what_the_server_states(
    project: Project, told: dict[str, Any], options: tuple[str, ...], expected: float | None
) -> None:
    options = tuple(each if each.startswith("--") else f"--lm-adapter-arg={each}" for each in options)
    found = cost(project, {**USAGE, **told}, *options)
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_price_of_cached_tokens_alone_is_refused(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "Say yes", "yes"))
    result = project.run("tasks", "--lm-adapter=openai:m", "--lm-adapter-arg=price_cached=1")
    assert "option price_cached expected price_input and price_output" in result.stderr.str()


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_attempts_that_are_made_again_are_in_the_counts_the_cost_and_the_ledger(
    project: Project, workers: tuple[str, ...]
) -> None:
    needs.installed("pytest_rerunfailures")
    project.write(
        "model.py",
        "from pytest_lmeval import Completion\n"
        "class Model:\n    name = 'stub'\n"
        "    async def complete(self, request):\n"
        "        return Completion('x', prompt_tokens=3, completion_tokens=1, cost=0.5)\n",
    )
    project.write(
        "tests/test_x.py",
        "import pathlib\nfrom pytest_lmeval import eval_task\n"
        "@eval_task('x', data=[{'id': 'a'}, {'id': 'b'}])\ndef test_x(row, lm):\n    lm.ask('q')\n"
        "    with open(row['id'], 'a') as file: file.write('x')\n"
        "    assert row['id'] == 'b' or pathlib.Path('a').stat().st_size == 3\n",
    )
    options = ("-p", "pytest_rerunfailures", "--reruns=3", "--lm-adapter=model:Model", *workers)
    result = project.run("tests", *options)
    assert 0 == result.ret, result.stdout.str()
    board = project.board()
    assert {"prompt_tokens": 12, "completion_tokens": 4, "cost": 2.0} == board["usage"]
    assert {"prompt_tokens": 6, "completion_tokens": 2, "cost": 1.0} == board["manifest"]["rerun_usage"]
    flaky, steady = project.ledger()["x:a"], project.ledger()["x:b"]
    attempts = flaky["details"]["failed_attempts"]
    assert [("failed", 0.0)] * 2 == [(each["status"], each["score"]) for each in attempts]
    assert [["x"]] * 2 == [[step["output"] for step in each["details"]["steps"]] for each in attempts]
    assert ("passed", False) == (flaky["status"], "failed_attempts" in steady["details"])


@pytest.mark.parametrize(("task", "lower_bound"), [("records", True), ("function", True), ("priced", False)])
def test_a_judge_without_prices_is_named_once_with_the_setting_to_add(
    project: Project, task: str, lower_bound: bool
) -> None:
    if task == "function":
        project.write(
            "tasks/test_t.py",
            "from pytest_lmeval import eval_task\n"
            "@eval_task('t', data=[{'id': 'a'}, {'id': 'b'}])\ndef test_t(row, lm):\n"
            "    lm.score('right', lm.grade('Is it kind?', lm.ask('hi').text).score)\n",
        )
    else:
        rubric = {"metric": "rubric", "extras": {"rubric": "Is it kind?"}}
        project.task("tasks/t.jsonl", *[{**project.record(id, "Say yes", "yes"), **rubric} for id in "ab"])
    if task == "priced":
        project.write("pyproject.toml", "[tool.lmeval.prices.big]\nprice_input = 1\nprice_output = 1\n")
    said = {**chat('{"reason": "it is", "score": 1}'), "usage": USAGE}
    with serving([json_reply(said)]) as server:
        at = (f"{option}={value}" for option in ("--lm-adapter-arg", "--lm-judge-arg")
              for value in (f"base_url={server.base_url}", "api_key_env=''"))  # fmt: skip
        result = project.run("tasks", "--lm-adapter=openai:m", "--lm-judge=openai:big", *at, *PRICED)
    assert 0 == result.ret, result.stdout.str() + result.stderr.str()
    line = (
        "the cost is a lower bound: no prices for big (judge or simulated user); add price_input and "
        "price_output to pyproject.toml, under [tool.lmeval.prices.MODEL]"
    )
    shown = " ".join(result.stdout.str().split())
    assert (int(lower_bound), lower_bound) == (shown.count(line), "cost at least" in shown), result.stdout.str()
