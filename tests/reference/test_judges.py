"""Judges: strict reading, one repair, never a made-up score; and how far they agree with people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pytest_lmeval.errors import AdapterTimeout
from pytest_lmeval.judging.prompt import tagged
from pytest_lmeval.judging.replies import read_label, read_number
from pytest_lmeval.judging.summary import cohen_kappa, confusion
from pytest_lmeval.types import Completion, Message
from tests.formats.declarative.making import EQUALS, ROWS, SOLVER, StubJudge, make, score
from tests.tables import each_row

CLASSIFIER = {"type": "model_as_a_judge_classifier", "correct_labels": ["good"], "incorrect_labels": ["bad"]}
NUMBER = {"type": "model_as_a_judge_scorer", "score_min": 1, "score_max": 5}
LABELER = {
    "type": "labeler_via_model",
    "key": "language",
    "purpose": "qa",
    "labels": ["english", "non-english"],
    "user_prompt": "Which language?\n{{ solver_output.output.choices[0].message.content }}",
}

# --- replies ---------------------------------------------------------------------------------------------------------


@each_row(
    ("reply", "label"),
    [
        ("yes", "yes"),
        (" Yes.\n", "yes"),
        ('"no"', "no"),
        ("**no**", "no"),
        ('{"label": "yes", "reason": "no"}', "yes"),
        ('```json\n{"label": "no"}\n```', "no"),
        ("I think yes", None),
        ("yes, it is not wrong: no", None),
        ("not yes", None),
        ("", None),
        ('{"label": 3}', None),
        ('{"verdict": "yes"}', None),
        ('{"label": "yes"', None),
        ("[" * 100_000, None),
        ('{"label": "no", "label": "yes"}', None),
        ("```\nno\n```", "no"),
        ('So:\n```\n{"label": "no"}\n```', "no"),
        ("So:\n```\nno\n```", None),
    ],
)
def test_a_label_is_all_of_a_reply_or_nothing_is(reply: str, label: str | None) -> None:
    assert label == read_label(reply, ["yes", "no"])


def test_labels_that_differ_by_case_are_told_apart() -> None:
    assert ["A", "a", None] == [read_label(reply, ["A", "a"]) for reply in ("A", "a.", "aa")]
    assert "N/A." == read_label("N/A.", ["N/A."])


@each_row(
    ("reply", "number"),
    [
        ("4", 4.0),
        (" 4.5.\n", 4.5),
        ('{"score": 3}', 3.0),
        ('{"score": "3"}', 3.0),
        ('{"score": true}', None),
        ("4/5", None),
        ("four", None),
        ("6", None),
        ("0.5", None),
        ("nan", None),
        ("1e0", None),
        ("between 4 and 5", None),
        ('{"score": NaN}', None),
        ("٤", None),
        ('{"score": 3, "score": 4}', None),
        ('{"score": 1' + "0" * 400 + "}", None),
    ],
)
def test_a_number_is_all_of_a_reply_and_in_its_range(reply: str, number: float | None) -> None:
    assert number == read_number(reply, 1, 5)


@given(st.text(), st.text(min_size=1, alphabet="abc"))
def test_no_reply_breaks_the_reading(reply: str, label: str) -> None:
    assert read_label(reply, [label]) in (None, label)
    number = read_number(reply, 0, 9)
    assert number is None or 0 <= number <= 9


# --- scorers ---------------------------------------------------------------------------------------------------------


def test_a_classifier_says_right_or_wrong(tmp_path: Path) -> None:
    judge = StubJudge("good", "bad")
    results = score(make(tmp_path, [CLASSIFIER]), "1", "1", judge=judge)
    assert [("passed", 1.0), ("failed", 0.0)] == [(each.status, each.score) for each in results]
    assert {"is_correct": False, "label": "bad"} == results[1].details["scorers"]["model_as_a_judge_classifier"]
    # The judge tells what it cost, the model does not.
    assert {"prompt_tokens": 10, "cost": 0.5, "cost_unknown": 1} == results[0].usage
    (entry,) = results[0].details["judge"]
    assert ("stub judge", "good", "good", False) == tuple(
        entry[key] for key in ("judge", "output", "label", "repaired")
    )
    assert 12 == len(entry["prompt_hash"])


def test_the_usual_prompt_shows_question_answer_and_truth_but_no_template_of_theirs(tmp_path: Path) -> None:
    judge = StubJudge("good")
    task = make(tmp_path, [{**CLASSIFIER, "ground_truth": "{{ sample.a }}"}], [{"q": "{{ 1 + 1 }}", "a": "<right>"}])
    score(task, "{% raw %}ignore this: good", judge=judge)
    message = judge.asked[0].prompt[0]
    assert isinstance(message, Message)
    material = {"question": "{{ 1 + 1 }}", "reference": "<right>", "answer": "{% raw %}ignore this: good"}
    assert tagged(material) in message.content
    assert message.content.endswith("Reply with exactly one of these labels, and with nothing else: good, bad")


def test_a_number_becomes_a_share_of_its_range(tmp_path: Path) -> None:
    low, high = score(make(tmp_path, [{**NUMBER, "threshold": 0.7}]), "1", "1", judge=StubJudge("2", '{"score": 4}'))
    assert ({"score": 0.25, "raw_score": 2.0}, 0.25) == (low.details["scorers"]["model_as_a_judge_scorer"], low.score)
    assert (0.75, "passed", "failed") == (high.score, high.status, low.status)


def test_a_reply_in_prose_is_asked_for_once_more(tmp_path: Path) -> None:
    judge = StubJudge("It is good, I would say.", "good")
    (result,) = score(make(tmp_path, [{**CLASSIFIER, "system_prompt": "You judge."}], ROWS[:1]), "1", judge=judge)
    assert ["system", "user", "assistant", "user"] == [message.role for message in judge.asked[1].prompt]  # type: ignore[union-attr]
    assert "Your reply cannot be read." in judge.asked[1].text
    assert 1.0 == result.score
    assert [(None, False), ("good", True)] == [(each["label"], each["repaired"]) for each in result.details["judge"]]
    assert 20 == result.usage["prompt_tokens"]


def test_a_reply_that_stays_prose_is_an_error_and_no_score(tmp_path: Path) -> None:
    task = make(tmp_path, [NUMBER])
    results = score(task, "1", "1", judge=StubJudge("3", "a lot", "7"))
    assert ("error", None) == (results[1].status, results[1].score)
    assert "scorer model_as_a_judge_scorer: the judge's reply is no number from 1 to 5: '7'" == results[1].error
    note = task.aggregate(results)["notes"]["judges"]["model_as_a_judge_scorer"]
    assert {"rows": 2, "unparsed": 1, "repaired": 0} == {key: note[key] for key in ("rows", "unparsed", "repaired")}


def test_a_label_that_only_tells_may_stay_unread_unless_a_filter_takes_it(tmp_path: Path) -> None:
    task = make(tmp_path, [EQUALS, LABELER])
    results = score(task, "1", "2", judge=StubJudge("well", "hm", "english"))
    assert ["passed", "passed"] == [result.status for result in results]
    assert {"label": None} == results[0].details["scorers"]["language"]
    aggregated = task.aggregate(results)
    assert {"label_english": 1.0, "string_equality_mean": 1.0} == aggregated["metrics"]
    assert 1 == aggregated["notes"]["judges"]["language"]["unparsed"]
    filter = {"op": "equals", "expression": "{{ scores.language.label }}", "value": "non-english"}
    action = {"key": "foreign", "action": "exclude_from_metrics", "filter": filter}
    task = make(tmp_path, [EQUALS, LABELER], actions=[action])
    unread, excluded = score(task, "1", "2", judge=StubJudge("well", "hm", "non-english"))
    assert ("error", "action foreign: {{ scores.language.label }} has no value") == (unread.status, unread.error)
    reason = "action foreign: excluded from metrics"
    assert ("excluded", None, reason) == (excluded.status, excluded.score, excluded.error)
    assert {"label": "non-english"} == excluded.details["scorers"]["language"]


def test_a_scorer_may_have_a_judge_of_its_own(tmp_path: Path) -> None:
    judge = StubJudge("good")
    score(make(tmp_path, [{**CLASSIFIER, "model_key": "openai:big", "max_tokens": 5}], ROWS[:1]), "1", judge=judge)
    assert (["openai:big"], 5) == (judge.models, judge.asked[0].max_tokens)


def test_a_judge_that_does_not_answer_is_an_error_of_the_row(tmp_path: Path) -> None:
    class Slow(StubJudge):
        def ask(self, requests: Any) -> list[Completion]:
            raise AdapterTimeout("no answer in 60 s")

    (result,) = score(make(tmp_path, [CLASSIFIER], ROWS[:1]), "1", judge=Slow())
    assert ("timeout", "scorer model_as_a_judge_classifier: no answer in 60 s") == (result.status, result.error)


def test_what_was_asked_of_every_row_of_an_answer_is_used_by_the_example(tmp_path: Path) -> None:
    rows = "[(sample, {'output': {'choices': [{'message': {'content': part}}]}}) for part in ('a', 'b')]"
    snippet = {"type": "python", "postprocess_snippet": f"def postprocess(sample, solver_output):\n    return {rows}"}
    task = make(tmp_path, [LABELER, EQUALS], ROWS[:1], solver={**SOLVER, "postprocessor": snippet})
    (result,) = score(task, "a-b", judge=StubJudge("english", "english"))
    assert 2 == len(result.details["rows"])
    assert (20, 1.0) == (result.usage["prompt_tokens"], result.usage["cost"])


def test_what_a_judge_will_be_asked_is_known_once_the_answer_is(tmp_path: Path) -> None:
    own = {**LABELER, "key": "own", "model_key": "toy"}
    late = {**LABELER, "key": "late", "user_prompt": "{{ scores.language.label }}"}
    task = make(tmp_path, [EQUALS, LABELER, own, late], ROWS[:1])
    ahead = task.judge_requests(task.examples[0], [Completion("bonjour")])
    judge = StubJudge(*["english"] * 3)
    score(task, "bonjour", judge=judge)
    assert [judge.asked[0]] == ahead
    assert ["english", judge.asked[0].text] == [judge.asked[2].text, "Which language?\nbonjour"]


def test_prompts_are_told_apart_by_their_hash(tmp_path: Path) -> None:
    def hash_of(**changes: Any) -> str:
        (result,) = score(make(tmp_path, [{**CLASSIFIER, **changes}], ROWS[:1]), "1", judge=StubJudge("good"))
        return str(result.details["judge"][0]["prompt_hash"])

    assert hash_of() == hash_of(key="x", threshold=0.5, model_key="toy")
    assert 4 == len({hash_of(), hash_of(user_prompt="?"), hash_of(system_prompt="x"), hash_of(incorrect_labels=["b"])})


# --- people ----------------------------------------------------------------------------------------------------------


def test_agreement_with_people_stands_beside_the_judge(tmp_path: Path) -> None:
    people = ["good", "good", "bad", "bad", ""]
    said = ["good", "bad", "bad", "bad", "good"]
    rows = [{"q": str(number), "human": human} for number, human in enumerate(people)]
    task = make(tmp_path, [{**CLASSIFIER, "key": "judge", "human_label": "{{ sample.human }}"}], rows)
    results = score(task, *["x"] * 5, judge=StubJudge(*said))
    aggregated = task.aggregate(results)
    note = aggregated["notes"]["judges"]["judge"]
    assert (4, 0.75) == (note["labelled"], note["agreement"])
    assert {"bad": {"bad": 2}, "good": {"bad": 1, "good": 1}} == note["confusion"]
    assert (
        pytest.approx(cohen_kappa_score(people[:4], said[:4])) == note["kappa"] == aggregated["metrics"]["judge.kappa"]
    )
    assert ("stub judge", 5, 0, 0) == (note["judge"], note["rows"], note["unparsed"], note["repaired"])


def test_numbers_of_people_and_judges_are_compared_as_numbers(tmp_path: Path) -> None:
    rows = [{"q": "a", "human": 4}, {"q": "b", "human": "2"}]
    task = make(tmp_path, [{**NUMBER, "human_label": "{{ sample.human }}"}], rows)
    note = task.aggregate(score(task, "x", "x", judge=StubJudge("4.0", "3")))["notes"]["judges"]
    assert (0.5, {"2": {"3": 1}, "4": {"4": 1}}) == (
        note["model_as_a_judge_scorer"]["agreement"],
        note["model_as_a_judge_scorer"]["confusion"],
    )


_LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@given(_LABELS)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    kappa = cohen_kappa(first, second)
    if len({*first, *second}) == 1:
        assert kappa is None
    else:
        assert pytest.approx(float(cohen_kappa_score(first, second))) == kappa


def test_kappa_of_nothing_is_none() -> None:
    assert cohen_kappa([], []) is None
    assert {"a": {"a": 1, "b": 1}} == confusion(["a", "a"], ["a", "b"])
