"""Answers that arrived and were not scored yet: a kill loses none that took the model long, or that has waited."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.asking.engine import Arrived
from pytest_lmeval.run import keeping
from pytest_lmeval.types import Completion, Generate
from pytest_lmeval.types import Exchange as Noted
from tests.adapters.openai.scripted_server import Exchange, chat, json_reply, serving
from tests.conftest import BOTH

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

FILES = ("underway.jsonl", "ledger.jsonl")
IDS = [f"e{number}" for number in range(12)]


class Slow:
    """Answers a prompt with what it says, but for one that it keeps waiting until it is ``released``."""

    def __init__(self, held: str) -> None:
        self.held = held
        self.released = False
        self.asked: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        said = exchange.seen.json["messages"][-1]["content"].rpartition("say: ")[2]
        self.asked.append(said)
        while said == self.held and not self.released:
            await asyncio.sleep(0.01)
        await json_reply(chat(said))(exchange)


def kept(project: Project, file: str) -> list[dict[str, Any]]:
    """Return the records of an example in a file that is being written: its last line may be torn."""
    path: Path = project.path / "reports" / file
    records = []
    for line in path.read_text("ascii").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    return [record for record in records if "id" in record]


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize("repeats", [1, pytest.param(2, marks=pytest.mark.again)])
def test_a_killed_run_asks_nothing_again_that_was_answered(project: Project, processes: str, repeats: int) -> None:
    project.task("tasks/t.jsonl", *[project.record(id, f"{id} said") for id in IDS])
    with serving([slow := Slow("e1 said")]) as server:
        options = ["--lm-adapter=openai:m", f"--lm-adapter-arg=base_url={server.base_url}", f"--lm-repeats={repeats}"]
        options += ["--lm-adapter-arg=api_key_env=''", "--lm-concurrency=8", processes]
        run = project.start(*options, "-q")
        run.wait_for(lambda: {each["id"] for file in FILES for each in kept(project, file)} == set(IDS) - {"e1"})
        run.stop(signal.SIGKILL, group=True)
        slow.released = True
        slow.asked.clear()
        result = project.run_pytest(*options, "--lm-resume")
        assert (0, ["e1 said"] * repeats) == (result.ret, slow.asked)
        digest = project.board()["digest"]
        assert not kept(project, "underway.jsonl")
        project.run_pytest(*options)

    assert digest == project.board()["digest"]


def test_an_answer_is_noted_once_it_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "LOOK_S", 3600)
    answers = {name: Completion(name, latency_ms=20) for name in "abc"}
    units = {name: _Unit(name) for name in answers}
    expected = {name: (name, Noted(Generate(name), answer)) for name, answer in answers.items()}
    waiting, noted = {"a"}, []

    def arrived() -> list[Arrived]:
        return [Arrived(units[name], [Generate(name)], [answers[name]], True) for name in sorted(waiting)]

    keeper = keeping.Keeper(arrived, lambda _, id, exchange: noted.append((id, exchange)))

    keeper._look()
    waiting.add("b")  # answered later, and taken before it has waited long
    keeper._look()
    assert [] == noted
    waiting.remove("b")
    keeper._look()
    keeper._look()
    assert [expected["a"]] == noted
    waiting.add("c")
    keeper.close()
    assert [expected["a"], expected["c"]] == noted


def test_a_slow_answer_is_noted_as_it_arrives(project: Project) -> None:
    project.write(
        "model.py",
        """
import asyncio, os, signal
from pytest_lmeval import Completion

class Model:
    name = "stub"

    async def complete(self, request):
        is_killer = "e3 " in request.prompt
        await asyncio.sleep(0.6 if is_killer else 0.1)
        if is_killer:
            os.kill(os.getpid(), signal.SIGKILL)
        return Completion("x", latency_ms=100)
""",
    )
    project.task("tasks/t.jsonl", *[project.record(id, f"{id} said") for id in IDS])
    project.run("--lm-adapter=model:Model", "--lm-concurrency=12")
    assert set(IDS) - {"e3"} == {each["id"] for file in FILES for each in kept(project, file)}


class _Unit:
    def __init__(self, id: str) -> None:
        self.task, self.example = SimpleNamespace(name="t"), SimpleNamespace(id=id)
