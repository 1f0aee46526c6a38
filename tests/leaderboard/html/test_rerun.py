"""What of a run's arguments is said again to rerun one example."""

from __future__ import annotations

import pytest

from pytest_lmeval.leaderboard.html.rerun import rerun_arguments


@pytest.mark.parametrize(
    ("argv", "repeated"),
    [
        (["tasks", "--lm-adapter=toy", "-n", "2"], "--lm-adapter=toy"),
        (["--lm-adapter", "toy", "--lm-repeats=3"], "--lm-adapter=toy --lm-repeats=3"),
        (["--lm-adapter-arg", "system=be brief; rm"], "'--lm-adapter-arg=system=be brief; rm'"),
        (["--lm-adapter=toy", "--lm-adapter-arg=api_key=***"], "--lm-adapter=toy"),
        (["--lm-baseline=b.json", "--lm-adapter"], ""),
    ],
)
def test_what_decides_the_answer_is_repeated_and_secrets_are_not(argv: list[str], repeated: str) -> None:
    assert repeated == rerun_arguments(argv)
