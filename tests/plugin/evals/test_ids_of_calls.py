"""The ids of calls that an application gets: each once in an example, and the same wherever the answer is from."""

from __future__ import annotations

from typing import Any

from tests.conftest import Project


def outputs(project: Project, folder: str = "reports") -> dict[str, Any]:
    """Return what each example says of the calls that it got."""
    return {key: record["details"]["output"] for key, record in project.examples(folder).items()}


def test_ids_of_calls_are_the_same_live_resumed_replayed_and_cached(project: Project) -> None:
    project.copy("eval_agent")
    project.usual = (*project.usual, "--lm-include-per-example")
    live = project.run("test_agent.py", "--lm-report-dir=live", "--lm-cache=cache")
    assert 0 == live.ret, live.stdout.str()
    expected = outputs(project, "live")
    ids = [id for talks in expected.values() for talk in talks for id in talk]
    assert 2 * 4 * 8 == len(ids)
    assert all(len(id) == 9 and id.isalnum() for id in ids)
    project.write("asked.txt", "")
    cached = project.run("test_agent.py", "--lm-report-dir=cached", "--lm-cache=cache")
    replayed = project.run("test_agent.py", "--lm-report-dir=again", "--lm-adapter=replay:live/ledger.jsonl")
    assert (0, 0, "") == (cached.ret, replayed.ret, (project.path / "asked.txt").read_text()), replayed.stdout.str()
    assert expected == outputs(project, "cached") == outputs(project, "again")
    project.write("kill.txt", "")
    assert project.run("test_agent.py").ret not in (0, 3)
    (project.path / "kill.txt").unlink()
    project.write("resumed.txt", "")
    resumed = project.run("test_agent.py", "--lm-resume")
    assert 0 == resumed.ret, resumed.stdout.str()
    assert expected == outputs(project)
    # What was asked by the process that was killed may have been asked without an answer.
    assert 48 <= len((project.path / "asked.txt").read_text().split()) <= 48 + 10
