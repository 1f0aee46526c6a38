"""What the steps of recorded results hold of answers."""

from __future__ import annotations

import pytest

from pytest_lmeval.functions.steps import Step
from pytest_lmeval.leaderboard.details import answered_requests


@pytest.mark.parametrize(
    ("step", "outputs"),
    [
        (Step("request", "m", "?", "yes", key="k"), ["yes"]),
        (Step("request", "m", "?", "", key="k"), [""]),
        # Under way when its example ended.
        (Step("request", "m", "?", key="k"), []),
        (Step("request", "m", "?", key="k", error="no answer"), []),
        (Step("judge", "m", "?", "yes", key="k"), []),
        (Step("model", "m", "?", "yes"), []),
    ],
)
def test_only_a_step_with_an_output_answers_a_request(step: Step, outputs: list[str]) -> None:
    assert outputs == [each["output"] for each in answered_requests({"steps": [step.to_json()]})]
