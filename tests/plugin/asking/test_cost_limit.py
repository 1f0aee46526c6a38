"""What a run costs stands on the board, and a limit on it is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.openai.scripted_server import ScriptedServer, says, serving
from tests.conftest import BOTH, Project

# The scripted server counts 11 and 7 tokens for every request: half a unit of money each.
PROFILE = """
[tool.lmeval.adapters.priced]
adapter = "openai:m"
base_url = "{base_url}"
price_input = {price}
price_output = {price}
"""
PRICE = 0.5 * 1e6 / 18
EXAMPLES = 20


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving([says("yes")]) as server:
        yield server


@pytest.fixture
def priced(project: Project, server: ScriptedServer) -> Project:
    project.write("pyproject.toml", PROFILE.format(base_url=server.base_url, price=PRICE))
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}", target="yes") for n in range(EXAMPLES)])
    return project


def test_the_board_shows_tokens_and_cost(priced: Project) -> None:
    assert 0 == priced.run_pytest("--lm-adapter=priced").ret
    expected = {"prompt_tokens": 11 * EXAMPLES, "completion_tokens": 7 * EXAMPLES, "cost": 0.5 * EXAMPLES}
    assert pytest.approx(expected) == priced.board()["usage"]


def test_without_prices_tokens_alone_are_shown(priced: Project, server: ScriptedServer) -> None:
    priced.run_pytest("--lm-adapter=openai:m", f"--lm-adapter-arg=base_url='{server.base_url}'")
    assert {"prompt_tokens": 11 * EXAMPLES, "completion_tokens": 7 * EXAMPLES} == priced.board()["usage"]


@pytest.mark.parametrize("option", ["-n0", "-n2", "--lm-repeats=3", "--lm-gate=none"])
def test_a_run_stops_before_it_costs_more_than_it_may(priced: Project, server: ScriptedServer, option: str) -> None:
    result = priced.run_pytest("--lm-adapter=priced", "--lm-max-cost=3.6", option)
    assert 3 == result.ret
    assert 1 <= len(server.requests) <= 7
    board = priced.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert "incomplete" == board["gate"]["verdict"]
    assert board["usage"]["cost"] <= 3.6
    assert EXAMPLES == board["counts"]["collected"]
    result.stdout.fnmatch_lines(["*--lm-max-cost*"])


def test_a_stopped_run_can_be_completed_and_shows_what_all_of_it_cost(priced: Project, server: ScriptedServer) -> None:
    priced.run_pytest("--lm-adapter=priced", "--lm-max-cost=3.6")
    assert 0 == priced.run_pytest("--lm-adapter=priced", "--lm-resume").ret
    assert EXAMPLES == len(server.requests)
    assert pytest.approx(0.5 * EXAMPLES) == priced.board()["usage"]["cost"]


@pytest.mark.parametrize("amount", ["0", "much"])
def test_an_amount_that_makes_no_sense_is_a_usage_error(project: Project, amount: str) -> None:
    project.small_tasks()
    result = project.run(f"--lm-max-cost={amount}")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*--lm-max-cost: expected a number > 0*"])


ASKS = """
from pytest_lmeval import eval_task

@eval_task("asks", data=[{"prompt": "f0"}, {"prompt": "f1"}])
def test_asks(row, lm):
    assert lm.ask(row["prompt"]).text == "yes"
"""


@pytest.mark.parametrize("processes", BOTH)
def test_a_function_does_not_wait_for_what_records_ahead_of_their_turn_may_cost(
    priced: Project, server: ScriptedServer, processes: str
) -> None:
    priced.write("tasks/test_asks.py", ASKS)
    priced.task("tasks/z.jsonl", *[priced.record(f"z{n}", f"w{n}", target="yes") for n in range(EXAMPLES)])
    files = ["tasks/t.jsonl::e0", "tasks/t.jsonl::e1", "tasks/test_asks.py", "tasks/z.jsonl"]
    result = priced.run_pytest("--lm-adapter=priced", "--lm-max-cost=3.6", *files, processes, timeout=60)
    assert 3 == result.ret
    assert len(server.requests) <= 7
    assert (0, EXAMPLES + 4) == (
        priced.run_pytest("--lm-adapter=priced", "--lm-resume", *files, processes).ret,
        len(server.requests),
    )


ASKS_ALL = """
from pytest_lmeval import eval_task

@eval_task("asks", data=[{"n": n} for n in range(%d)])
async def test_asks(row, lm):
    assert (await lm.ask(f"f{row['n']}")).text == "yes"
"""
KINDS = ["tasks/t.jsonl", "tasks/test_asks.py"]


@pytest.fixture
def dearer(project: Project) -> Project:
    project.copy("limit_on_cost")
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}", target="yes") for n in range(EXAMPLES)])
    project.write("tasks/test_asks.py", ASKS_ALL % EXAMPLES)
    return project


def spent(project: Project) -> list[float]:
    return [float(line) for line in (project.path / "spent.txt").read_text().split()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_is_passed_by_what_was_in_flight_and_not_by_what_was_queued(dearer: Project, kind: str) -> None:
    result = dearer.run_pytest("--lm-adapter=dearer:soon", "--lm-max-cost=1", "--lm-concurrency=4", kind)
    assert (3, "incomplete") == (result.ret, dearer.board()["gate"]["verdict"])
    assert 5 < len(spent(dearer)) <= 5 + 4
    result.stdout.fnmatch_lines([f"*--lm-max-cost: {sum(spent(dearer)):g} was spent, over the limit 1: requests in*"])


@pytest.mark.parametrize(("kind", "adapter"), [(KINDS[0], "late_batch"), (KINDS[1], "late")])
def test_a_complete_run_above_its_limit_fails_in_every_report(dearer: Project, kind: str, adapter: str) -> None:
    says = "--lm-max-cost: 5.19 was spent, over the limit 1: requests in flight cost more than any before them"
    result = dearer.run_pytest(f"--lm-adapter=dearer:{adapter}", "--lm-max-cost=1", kind)
    board = dearer.board()
    assert (1, True, "limit", [says]) == (
        result.ret,
        board["complete"],
        board["gate"]["verdict"],
        board["gate"]["reasons"],
    )
    assert EXAMPLES == len(spent(dearer))
    assert says in (dearer.path / "reports/leaderboard.md").read_text()
    assert says in (dearer.path / "reports/report.html").read_text()
    assert says in dearer.lmeval("report", "reports/ledger.jsonl").stdout.str()


@pytest.mark.again
def test_what_all_workers_and_shards_spend_counts(dearer: Project) -> None:
    dear, workers = ("--lm-adapter=dearer:even", "tasks/t.jsonl"), ("-n2", "--lm-batch-size=1")
    assert 0 == dearer.run_pytest(*dear, *workers, "--lm-max-cost=6").ret
    assert 3.0 == pytest.approx(dearer.board()["manifest"]["max_cost"]["spent"])
    for part in (1, 2):
        options = (f"--lm-shard={part}/2", f"--lm-report-dir=part{part}", "--lm-max-cost=1.5")
        assert 0 == dearer.run_pytest(*dear, *options).ret
    merged = dearer.lmeval("merge", "part1/ledger.jsonl", "part2/ledger.jsonl", "-o", "all")
    assert 0 == merged.ret
    assert {"limit": 3.0, "before": 0, "spent": pytest.approx(3.0)} == dearer.board("all")["manifest"]["max_cost"]


@pytest.mark.parametrize(("kind", "adapter"), [(KINDS[0], "even_batch"), (KINDS[1], "even")])
def test_costs_that_sum_up_to_the_limit_are_within_it(dearer: Project, kind: str, adapter: str) -> None:
    options = (f"--lm-adapter=dearer:{adapter}", "--lm-max-cost=3.0", "--lm-batch-size=1", "--lm-concurrency=1")
    assert 0 == dearer.run_pytest(*options, kind).ret
    assert EXAMPLES == len(spent(dearer))
