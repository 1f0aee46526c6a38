"""The life of a run of each application: workers, a kill, resuming, replaying, the cache, and several models."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable

import pytest

from tests.adapters.openai.scripted_server import hangs
from tests.applications.conftest import APPS, Application

Made = Callable[[str], Application]
REQUESTS = {"desk": 36, "pages": 65, "talk": 84, "mono": 16}
EACH = [pytest.param(app, marks=pytest.mark.slow) for app in APPS]


def ran(app: Application, *arguments: str) -> tuple[str, int]:
    """Run the evals; return the digest of the results, and how many requests the server got."""
    result = app.run(*arguments)
    assert 0 == result.ret, result.stdout.str()
    (folder,) = [each.partition("=")[2] for each in arguments if each.startswith("--lm-report-dir=")] or ["reports"]
    return app.project.board(folder)["digest"], app.asked()


@pytest.mark.parametrize("name", EACH)
def test_workers_replay_and_cache_have_the_digest_of_the_serial_run(application: Made, name: str) -> None:
    app = application(name)
    live = ran(app)
    shutil.copy(app.project.path / "reports/ledger.jsonl", app.project.path)
    digest, _ = live
    assert (digest, REQUESTS[name]) == live
    # Each of two workers starts the service, which embeds its pages.
    assert (digest, REQUESTS[name] + (name == "pages")) == ran(app, "-n2")
    # A cache answers equal requests of two examples once, if the first has its answer.
    assert digest == ran(app, "--lm-cache=cache")[0]
    assert (digest, 0) == ran(app, "--lm-cache=cache")
    for processes in ("-n0", "-n2"):
        assert (digest, 0) == ran(app, "--lm-adapter=replay:ledger.jsonl", processes)


@pytest.mark.parametrize("name", ["desk", *EACH[1:]])
def test_a_killed_run_is_completed_by_exactly_the_missing_requests(application: Made, name: str) -> None:
    app = application(name)
    app.answers_after(10)
    started = app.project.start(*app.options("--lm-concurrency=1"))
    started.wait_for(lambda: len(app.server.requests) > 10)
    code, output = started.stop(signal.SIGKILL, group=True)
    assert (-signal.SIGKILL, 11) == (code, app.asked()), output
    app.serves_again()
    digest, rest = ran(app, "--lm-resume")
    assert REQUESTS[name] - 10 == rest
    app.server.script = [hangs()]
    assert (digest, 0) == ran(app, "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=again")


@pytest.mark.parametrize("name", EACH)
def test_several_models_have_a_board_each(application: Made, name: str) -> None:
    app = application(name)
    result = app.run("--lm-adapter=a=openai:gpt-4o", "--lm-adapter=b=openai:gpt-4o-mini")
    boards = {model: app.project.board(f"reports/{model}") for model in "ab"}
    if name == "pages":
        # What the service embeds as it starts could be for either model.
        assert 3 == result.ret
        said = "several models: a request outside of examples could be for any of them"
        assert said in boards["a"]["interruptions"][0]
        return
    assert (0, 2 * REQUESTS[name]) == (result.ret, app.asked()), result.stdout.str()
    assert {"a": 1.0, "b": 1.0} == {model: board["overall_score"] for model, board in boards.items()}
