"""Each example asked several times: every time, whatever the first answer was, and all of them on record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

# Answers with one word of the prompt, by the number of the repeat; "fails" is no answer.
MODEL = """
import json, os
from pytest_lmeval import AdapterError, Completion

class Batch:
    name = "moody.v1"

    def generate_requests(self, requests):
        with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
            for request in requests:
                file.write(json.dumps([request.id, request.repeat]) + "\\n")
        return [self.answer(request) for request in requests]

    def answer(self, request):
        words = request.prompt.rpartition("say: ")[2].split()
        word = words[request.repeat % len(words)]
        return AdapterError("no answer") if word == "fails" else Completion(word)

class Async(Batch):
    generate_requests = None

    async def complete(self, request):
        return Batch.generate_requests(self, [request])[0]
"""


@pytest.fixture
def moody(project: Project) -> Project:
    """Provide examples whose target is ``yes`` and whose four answers vary."""
    project.write("model.py", MODEL)
    answers = {"always": "yes yes yes yes", "mostly": "yes yes no yes", "once": "no yes no no", "never": "a b c no"}
    project.task("tasks/t.jsonl", *[project.record(id, said, target="yes") for id, said in answers.items()])
    return project


@pytest.mark.parametrize(("adapter", "processes"), [("Batch", "-n0"), ("Async", "-n2")])
def test_every_example_is_asked_each_time_and_scored_by_the_mean(moody: Project, adapter: str, processes: str) -> None:
    options = ["--lm-repeats=4", "--lm-threshold=t=0.75", "--lm-batch-size=3", "--lm-include-per-example", processes]
    result = moody.run_pytest(f"--lm-adapter=model:{adapter}", *options)
    assert 1 == result.ret
    result.assert_outcomes(passed=2, failed=2)
    assert [(id, n) for id in ("always", "mostly", "never", "once") for n in range(4)] == sorted(
        map(tuple, moody.asked(forget=True))
    )
    examples = moody.examples()
    assert [1.0, 0.75, 0.25, 0.0] == [examples[f"t:{id}"]["score"] for id in ("always", "mostly", "once", "never")]
    assert ["yes", "yes", "no", "yes"] == examples["t:mostly"]["outputs"] == examples["t:mostly"]["predictions"]
    assert ["a", "b", "c", "no"] == examples["t:never"]["outputs"]
    (row,) = moody.board()["tasks"]
    assert (0.5, 2, 4) == (row["score"], row["correct"], row["total"])


def test_the_board_shows_what_k_tries_are_worth(moody: Project) -> None:
    moody.run_pytest("--lm-adapter=model:Batch", "--lm-repeats=4")
    (row,) = moody.board()["tasks"]
    # Right answers of four: 4, 3, 1, 0.
    expected = {
        "exact_match": 0.5,
        "pass@1": 0.5,
        "pass@2": (1 + 1 + 3 / 6 + 0) / 4,
        "pass@4": 0.75,
        "pass^2": (1 + 3 / 6 + 0 + 0) / 4,
        "pass^4": 0.25,
        "maj@4": 0.5,
    }
    assert pytest.approx(expected) == row["metrics"]
    variances = [0.0, 3 / 16 * 4 / 3, 3 / 16 * 4 / 3, 0.0]
    within = sum(variance / 4 for variance in variances) ** 0.5 / 4
    assert 4 == row["repeats"]["count"]
    assert pytest.approx(within) == row["repeats"]["stderr_within"]
    assert pytest.approx(row["stderr"]) == row["repeats"]["stderr_between"]


def test_one_repeat_without_an_answer_is_an_error_of_its_example(moody: Project) -> None:
    moody.task("tasks/t.jsonl", moody.record("a", "yes fails", target="yes"), moody.record("b", "yes", target="yes"))
    result = moody.run_pytest("--lm-adapter=model:Batch", "--lm-repeats=2", "--lm-include-per-example")
    assert 3 == result.ret
    assert {"t:a": "error", "t:b": "passed"} == {id: record["status"] for id, record in moody.examples().items()}
    assert 4 == len(moody.asked(forget=True))


def test_a_recording_of_repeats_can_be_scored_again(moody: Project) -> None:
    moody.run_pytest("--lm-adapter=model:Batch", "--lm-repeats=4", "--lm-include-per-example")
    first = moody.board()
    moody.run_pytest("--lm-adapter=replay:reports/leaderboard.json", "--lm-repeats=4", "--lm-report-dir=again")
    again = moody.board("again")
    assert again["complete"]
    assert first["digest"] == again["digest"]
    assert first["tasks"][0]["metrics"] == again["tasks"][0]["metrics"]
    assert 16 == len(moody.asked(forget=True))


def test_a_recording_that_lacks_a_repeat_is_an_error_and_no_guess(moody: Project) -> None:
    recorded: list[dict[str, Any]] = [{"id": id, "outputs": ["yes", "yes"]} for id in ("always", "mostly", "once")]
    lines = [*recorded, {"id": "never", "output": "yes"}]
    moody.write("outputs.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    result = moody.run_pytest("--lm-adapter=replay:outputs.jsonl", "--lm-repeats=2")
    assert 3 == result.ret
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*never could not be scored (error)*1 output(s), not 2*"])


@pytest.mark.parametrize("repeats", ["0", "1.5"])
def test_no_repeat_at_all_is_a_usage_error(moody: Project, repeats: str) -> None:
    result = moody.run_pytest("--lm-adapter=model:Batch", f"--lm-repeats={repeats}")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*--lm-repeats: expected a whole number >= 1*"])


def test_a_failure_shows_a_response_that_was_wrong_and_how_many_were(moody: Project) -> None:
    result = moody.run_pytest("--lm-adapter=model:Batch", "--lm-repeats=4", "-k", "mostly or always")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        ["*t: mostly scored 0.75, threshold 1 (exact_match); 1 of 4 responses under it", "*output 3 of 4: no"]
    )
    result.stdout.no_fnmatch_line("*output*: yes")
    markdown = (moody.path / "reports/leaderboard.md").read_text()
    assert "| t: mostly | failed | say: yes yes no yes | yes | no |" in markdown


def test_a_failure_under_a_lower_threshold_shows_the_worst_response(moody: Project) -> None:
    result = moody.run_pytest("--lm-adapter=model:Batch", "--lm-repeats=4", "--lm-threshold=t=0.5", "-k", "once")
    result.stdout.fnmatch_lines(
        ["*t: once scored 0.25, threshold 0.5 (exact_match); 3 of 4 responses under it", "*output 1 of 4: no"]
    )
