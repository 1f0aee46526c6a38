"""Metrics of a class that ask a judge: what is asked, how the reply is read, and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.judging.prompt import tagged
from pytest_lmeval.task import Tools
from pytest_lmeval.tasks import JudgedAnswer, LLMJudgeScore
from pytest_lmeval.types import Completion, Generate, Score

from .conftest import TaskFolder

BRIEF = """
class Brief(LLMJudgeScore):
    NAME = "brief"
    SYSTEM_PROMPT = "You are strict."
    SCORE_MAX = 3
    MAX_TOKENS = 5

    def prompt(self, answer):
        return f"{answer.question} | {answer.prediction} | {answer.targets} | {len(answer.messages)}"
"""


class Judge:
    """Replies one text after the other."""

    name = "judge.v1"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[Generate] = []
        self.named: list[str] = []

    def model(self, spec: str) -> Judge:
        self.named.append(spec)
        return self

    def key(self, request: Generate) -> str:
        return f"key {len(request.prompt)}"

    def ask(self, requests: Sequence[Generate]) -> list[Completion]:
        self.asked += requests
        return [Completion(self.replies.pop(0), prompt_tokens=7, cost=0.5) for _ in requests]


def with_metrics(metrics: str, before: str = "") -> dict[str, str]:
    return {"[AccuracyCompletion]": metrics, "class Quiz": f"{before}\nclass Quiz"}


def scored(task: Any, judge: Any, text: str = "answer 0") -> Score:
    score: Score = task.score(task.examples[0], [Completion(text)], Tools(judge=judge))
    return score


def test_the_metric_that_ships_asks_for_a_number_and_shows_question_answer_and_reference(folder: TaskFolder) -> None:
    task, judge = folder.quiz(with_metrics("[LLMJudgeScore]")), Judge("4")
    assert (0.75, "llm_judge", 0.5) == (
        scored(task, judge, "mine").value,
        task.metric,
        task.threshold(task.examples[0]),
    )
    (request,) = judge.asked
    for part in (tagged({"question": "Q: question 0", "reference": "answer 0", "answer": "mine"}), "from 1 to 5"):
        assert part in request.text


def test_a_metric_of_ones_own_says_what_is_asked(folder: TaskFolder) -> None:
    task = folder.quiz(with_metrics("[Brief]", BRIEF))
    judge = Judge("2")
    assert 0.5 == scored(task, judge, "mine").value
    (request,) = judge.asked
    assert ["You are strict.", "Q: question 0 | mine | ('answer 0',) | 1"] == [
        message.content for message in request.prompt if not isinstance(message, str)
    ]
    assert (5, "quiz", "ex-0") == (request.max_tokens, request.task, request.id)
    assert [request] == list(task.judge_requests(task.examples[0], [Completion("mine")]))


def test_without_such_a_metric_no_judge_is_asked(folder: TaskFolder) -> None:
    task = folder.quiz()
    assert task.judge_requests(task.examples[0], [Completion("x")]) is None
    assert [] == task.judges(task.examples[0])


def test_what_is_said_of_further_metrics_is_kept_too(folder: TaskFolder) -> None:
    task = folder.quiz(with_metrics("[AccuracyCompletion, LLMJudgeScore, Brief]", BRIEF))
    score = scored(task, Judge("5", "1"))
    assert (1.0, {"llm_judge": 1.0, "brief": 0.0}) == (score.value, score.metrics)
    said = [{name: entry[name] for name in ("scorer", "output", "score", "judge")} for entry in score.details["judge"]]
    assert [
        {"scorer": "llm_judge", "output": "5", "score": 1.0, "judge": "judge.v1"},
        {"scorer": "brief", "output": "1", "score": 0.0, "judge": "judge.v1"},
    ] == said
    assert {"prompt_tokens": 14, "cost": 1.0} == score.usage


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_then_an_error(folder: TaskFolder) -> None:
    task = folder.quiz(with_metrics("[LLMJudgeScore]"))
    judge = Judge("I think it is fine", "5")
    score = scored(task, judge)
    assert (1.0, [False, True]) == (score.value, [entry["repaired"] for entry in score.details["judge"]])
    assert "Reply with one number from 1 to 5, and with nothing else." in judge.asked[1].text
    with pytest.raises(ScoringError, match=r"metric 'llm_judge': the judge's reply is no number from 1 to 5: 'really'"):
        scored(task, Judge("fine", "really"))


def test_labels_are_worth_what_the_class_says_and_a_metric_may_name_its_judge(folder: TaskFolder) -> None:
    labels = {"right": 1, "half": 0.5, "wrong": 0}
    source = f"class Graded(LLMJudgeScore):\n    LABELS = {labels}\n    MODEL_KEY = 'mine:Judge'\n"
    task = folder.quiz(with_metrics("[Graded]", source))
    judge = Judge("Half.")
    assert (0.5, ["mine:Judge"]) == (scored(task, judge).value, judge.named)
    assert ["mine:Judge"] == task.judges(task.examples[0])
    assert [] == list(task.judge_requests(task.examples[0], [Completion("x")]) or ())


def test_a_changed_prompt_changes_the_content_of_an_example(folder: TaskFolder) -> None:
    class Other(LLMJudgeScore):
        PROMPT = "{prediction}?"

    class Written(LLMJudgeScore):
        def prompt(self, answer: JudgedAnswer) -> str:
            return answer.prediction

    assert 3 == len({metric.prompt_hash for metric in (LLMJudgeScore(), Other(), Written())})
    task = folder.quiz(with_metrics("[LLMJudgeScore]"))
    assert {"llm_judge": LLMJudgeScore().prompt_hash} == task.scoring(task.examples[0])["judged"]


def test_a_prompt_may_use_the_context_of_the_item(folder: TaskFolder) -> None:
    source = "class Asking(LLMJudgeScore):\n    def prompt(self, answer): return answer.extras['tone']\n"
    task = folder.quiz(with_metrics("[Asking]", source), "def _get_context(self, item): return {'tone': 'polite'}")
    judge = Judge("1")
    scored(task, judge)
    assert "polite" == judge.asked[0].text


@pytest.mark.parametrize(
    ("attributes", "refused"),
    [
        ("SCORE_MAX = 1", "bad_value Quiz.METRICS[0]: llm_judge: expected SCORE_MIN below SCORE_MAX, or LABELS"),
        ("LABELS = {'a': 2}", "bad_value Quiz.METRICS[0]: llm_judge: LABELS['a']: expected a number in [0, 1]"),
    ],
)
def test_a_metric_that_can_give_no_score_is_refused(folder: TaskFolder, attributes: str, refused: str) -> None:
    source = f"class Odd(LLMJudgeScore):\n    {attributes}\n"
    assert refused in folder.quiz_fault(with_metrics("[Odd]", source))


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("def prompt(self, answer): return answer.nothing", "metric 'llm_judge' raised AttributeError: .*nothing"),
        ("def prompt(self, answer): return 4", "metric 'llm_judge': its prompt returned 4; expected text"),
        ("def read(self, reply): return 1 / 0", "metric 'llm_judge' raised ZeroDivisionError"),
        ("PROMPT = '{answer}'", "metric 'llm_judge' raised KeyError: 'answer'"),
    ],
)
def test_a_metric_that_fails_is_an_error_of_its_example(folder: TaskFolder, method: str, error: str) -> None:
    source = f"class Odd(LLMJudgeScore):\n    {method}\n"
    task = folder.quiz(with_metrics("[Odd]", source))
    with pytest.raises(ScoringError, match=error):
        scored(task, Judge("4"))
