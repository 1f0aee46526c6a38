"""Whatever a server does, each example ends with the right status after the right number of requests, and no other."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from tests.adapters.openai.scripted_server import (
    Exchange,
    ScriptedServer,
    Step,
    chat,
    cut_off,
    hangs,
    json_reply,
    redirects,
    replies,
    resets,
    says,
    serving,
    status,
)
from tests.conftest import Project

FINE = [f"fine {number}" for number in range(30)]
# With --lm-retries=2: what a prompt is answered with, its status, and how many requests it takes. A fault of each kind;
# which faults are of which kind: tests/adapters/openai/test_openai_faults.py.
FAULTS: Mapping[str, tuple[Sequence[Step], str, int]] = {
    "busy for a moment": ([status(429, Retry_After="0.1"), says("yes")], "passed", 2),
    "busy for ever": ([status(429, Retry_After="0.1")], "error", 3),
    "400": ([status(400)], "error", 1),
    "reset once": ([resets(), says("yes")], "passed", 2),
    "cut off chunks": ([cut_off(chunked=True)], "error", 3),
    "hangs": ([hangs()], "timeout", 3),
    "hangs once": ([hangs(), says("yes")], "passed", 2),
    "the page of a proxy, then an answer": ([replies(200, b"<html>Welcome</html>"), says("yes")], "passed", 2),
    "an error with status 200, then an answer": ([replies(200, b'{"error": "worker died"}'), says("yes")], "passed", 2),
    "error object for ever": ([json_reply({"error": {"message": "overloaded"}})], "error", 3),
    "content filter": ([says("yes", finish_reason="content_filter")], "error", 1),
    "refusal": ([json_reply(chat(None, refusal="I can't help with that."))], "failed", 1),
    "wrong": ([says("no")], "failed", 1),
    "empty": ([says("")], "failed", 1),
}


class Answering:
    """Answers every prompt by its own script, whatever order the requests come in."""

    def __init__(self, scripts: Mapping[str, Sequence[Step]]) -> None:
        self.scripts = scripts
        self.requests: Counter[str] = Counter()

    async def __call__(self, exchange: Exchange) -> None:
        prompt = exchange.seen.json["messages"][-1]["content"]
        script = self.scripts.get(prompt, [says("yes")])
        step = script[min(self.requests[prompt], len(script) - 1)]
        self.requests[prompt] += 1
        await step(exchange)


def ask(project: Project, server: ScriptedServer, *options: str) -> pytest.RunResult:
    limits = ["--lm-retries=2", "--lm-timeout=1", "--lm-adapter-arg=max_response_bytes=100000"]
    address = f"--lm-adapter-arg=base_url='{server.base_url}'"
    return project.run_pytest("--lm-adapter=openai:m", address, *limits, "--lm-include-per-example", *options)


def test_each_fault_has_its_status_and_its_number_of_requests(project: Project) -> None:
    half = len(FINE) // 2
    project.prompts(*FINE[:half], *FAULTS, "redirect", *FINE[half:], target="yes")
    with serving([says("a stranger's answer")]) as stranger:
        scripts = {prompt: script for prompt, (script, _, _) in FAULTS.items()}
        answering = Answering({**scripts, "redirect": [redirects(307, stranger.base_url + "/chat/completions")]})
        with serving([answering]) as server:
            # No answer may take that long, however busy the machine: it would be asked for again.
            result = ask(project, server, "--lm-concurrency=32", "--lm-timeout=4")
        assert [] == stranger.requests
    assert 3 == result.ret
    expected = {prompt: (outcome, number) for prompt, (_, outcome, number) in FAULTS.items()}
    expected |= {"redirect": ("error", 1), **dict.fromkeys(FINE, ("passed", 1))}
    assert expected == {prompt: (each, answering.requests[prompt]) for prompt, each in project.statuses().items()}
    counts = project.board()["counts"]
    kinds = Counter(outcome for outcome, _ in expected.values())
    assert (kinds["error"], kinds["timeout"]) == (counts["errors"], counts["timeouts"])
    assert kinds["passed"] + kinds["failed"] == counts["scored"]
    lines = {"busy for ever": "HTTP 429*(3 attempts)", "400": "HTTP 400*(1 attempt)", "hangs": "*(3 attempts)"}
    errors = {record["prompt"]: record.get("error", "") for record in project.examples().values()}
    for prompt, line in lines.items():
        pytest.LineMatcher([errors[prompt]]).fnmatch_lines([f"*{line}*"])


def test_a_server_that_answers_badly_only_in_passing_leaves_a_good_run(project: Project) -> None:
    passing = [prompt for prompt, (_, outcome, _) in FAULTS.items() if outcome == "passed"]
    project.prompts(*FINE, *passing, target="yes")
    with serving([Answering({prompt: FAULTS[prompt][0] for prompt in passing})]) as server:
        result = ask(project, server)
    assert 0 == result.ret
    board = project.board()
    assert board["complete"]
    assert (1.0, "m") == (board["overall_score"], board["adapter"])
    assert {"id": "m", "revision": "scripted-2026"} == board["manifest"]["model"]


def test_what_a_server_asks_to_wait_is_waited(project: Project) -> None:
    project.prompts("busy", target="yes")
    moments: list[float] = []

    async def busy_for_two_seconds(exchange: Exchange) -> None:
        moments.append(time.monotonic())
        await (status(429, Retry_After="2") if len(moments) == 1 else says("yes"))(exchange)

    with serving([busy_for_two_seconds]) as server:
        assert 0 == ask(project, server).ret
    assert 2 == len(moments)
    assert moments[1] - moments[0] >= 2


def test_a_server_that_restarts_midway_costs_nothing(project: Project) -> None:
    project.prompts(*[f"w{number}" for number in range(60)], target="yes")

    async def slowly(exchange: Exchange) -> None:
        # Some requests are certain to be in flight as the server stops.
        await asyncio.sleep(0.05 if len(server.requests) <= 20 or restarted.is_set() else 600)
        await says("yes")(exchange)

    restarted = threading.Event()
    with serving([slowly]) as server:

        def restart() -> None:
            deadline = time.monotonic() + 120
            while len(server.requests) < 20 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert server._server is not None
            loop = server._server.get_loop()
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
            time.sleep(0.4)
            asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)
            restarted.set()

        thread = threading.Thread(target=restart)
        thread.start()
        result = ask(project, server, "--lm-concurrency=4", "--lm-retries=6")
        thread.join()
    assert restarted.is_set()
    assert 0 == result.ret
    result.assert_outcomes(passed=60)
    assert 60 < len(server.requests) <= 60 + 2 * 4


def test_a_server_that_is_gone_for_good_ends_the_run_incomplete(project: Project) -> None:
    with serving([says("yes")]) as server:
        pass
    project.prompts(*FINE[:20], target="yes")
    result = ask(project, server, "--lm-retries=0")
    assert 3 == result.ret
    counts = project.board()["counts"]
    assert (5, 15) == (counts["errors"], counts["missing"])
    assert project.board()["overall_score"] is None
