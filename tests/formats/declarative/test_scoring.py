"""Scorers: what they say of an answer, which of it is the score, and what becomes of what cannot be scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.metrics import bleu, rouge_1, rouge_2, rouge_l
from pytest_lmeval.metrics.parts.worker import MetricWorker
from tests import needs
from tests.formats.declarative.making import EQUALS, ROWS, SOLVER, StubJudge, document, faults, make, score

PYTHON = {"type": "python", "compute_scores_snippet": ""}


def _fields(folder: Path, scorer: dict[str, Any], *outputs: str, rows: Any = ROWS) -> list[dict[str, Any]]:
    task = make(folder, [scorer], rows[: len(outputs)])
    results = score(task, *outputs)
    assert [] == [result.error for result in results if result.error]
    return [result.details["scorers"][task.scorers[0].key] for result in results]


def test_string_equals_leaves_out_the_whitespace_around(tmp_path: Path) -> None:
    assert [
        {"prediction_is_correct": True, "answer_gt": "1", "answer_pred": "1"},
        {"prediction_is_correct": False, "answer_gt": "2", "answer_pred": "two"},
    ] == _fields(tmp_path, EQUALS, " 1\n", "two")
    loose = {**EQUALS, "ground_truth": "{{ sample.human | upper }}", "ignore_case": True, "post_process": "lower"}
    assert [True, False] == [each["prediction_is_correct"] for each in _fields(tmp_path, loose, "Good", "good")]


def test_string_equals_heeds_case_unless_told_otherwise(tmp_path: Path) -> None:
    by_word = {**EQUALS, "ground_truth": "{{ sample.human }}"}
    assert [True, False] == [each["prediction_is_correct"] for each in _fields(tmp_path, by_word, "good", "BAD")]


@pytest.mark.parametrize(
    ("output", "answer", "unparsed"),
    [
        ("B", "B", False),
        ("The answer is (B).", "B", False),
        ("b", "B", False),
        ("no idea", None, True),
        ("AB", None, True),
    ],
)
def test_the_letter_of_an_option_is_found(tmp_path: Path, output: str, answer: str | None, unparsed: bool) -> None:
    scorer = {"type": "string_equals_mcqa", "ground_truth_choice_field": "a", "choices_field": "c"}
    task = make(tmp_path, [scorer], [{"q": "?", "a": "B", "c": ["A", "B", "C"]}])
    (result,) = score(task, output)
    assert {"prediction_is_correct": answer == "B", "answer_gt": "B", "answer_pred": answer} == result.details[
        "scorers"
    ]["string_equals_mcqa"]
    assert (unparsed, ("B",), float(answer == "B")) == (result.unparsed, result.targets, result.score)


def test_options_may_be_words_and_come_from_csv(tmp_path: Path) -> None:
    scorer = {"type": "string_equals_mcqa", "ground_truth": "{{ sample.a }}", "choices_field": "c"}
    row = {"q": "?", "a": "red", "c": "['red', 'dark red', 'blue']"}
    assert [True, False, False] == [
        _fields(tmp_path, scorer, output, rows=[row])[0]["prediction_is_correct"]
        for output in ("It is Red!", "blue", "?")
    ]
    for cell in ("""["don't know", "yes"]""", """["don't know", 'yes']""", "don't know, yes"):
        given = {"q": "?", "a": "yes", "c": cell}
        assert _fields(tmp_path, scorer, "Yes.", rows=[given])[0]["prediction_is_correct"]
    task = make(tmp_path, [scorer], [{**row, "a": "green"}, {**row, "c": 3}])
    none, no_list = score(task, "red", "red")
    assert none.error.endswith("the right option 'green' is not one of red, dark red, blue")
    assert no_list.error.endswith("column 'c': expected a list of options, got 3")


@pytest.mark.parametrize("length", [1, 2_000_000])
def test_an_option_in_a_long_answer_is_found_as_in_a_short_one(tmp_path: Path, length: int) -> None:
    scorer = {"type": "string_equals_mcqa", "ground_truth": "{{ sample.a }}", "choices_field": "c"}
    row = {"q": "?", "a": "dark red", "c": ["dark red", "blue"]}
    outputs = ("It is Dark Red.", "It is blue.", "dark red or blue", "dark reds")
    answers = [_fields(tmp_path, scorer, "x " * length + output, rows=[row])[0]["answer_pred"] for output in outputs]
    assert ["dark red", "blue", None, None] == answers


def test_options_that_take_too_long_to_look_for_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = MetricWorker(cpu_limit_s=0.1)
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    scorer = {"type": "string_equals_mcqa", "ground_truth": "blue", "choices_field": "c"}
    task = make(tmp_path, [scorer], [{"q": "?", "c": ["a " * 5_000 + "b", "blue"]}])
    (result,) = score(task, "a " * 500_000)
    assert ("error", None) == (result.status, result.score)
    assert "pattern took more than 0.1 s of CPU time" in result.error


def test_every_registered_metric_is_a_scorer(tmp_path: Path) -> None:
    needs.installed("jsonschema")
    scorers: list[dict[str, Any]] = [
        {"type": "f1", "ground_truth": "{{ sample.a }} x"},
        {"type": "bleu", "ground_truth": ["{{ sample.a }} b c d", "zzz"]},
        {"type": "rouge", "ground_truth": "{{ sample.refs }}"},
        {"type": "json_schema", "json_schema": {"type": "integer", "minimum": "{{ sample.n }}"}},
        {"type": "json_schema", "key": "text", "json_schema": '{"type": "string"}'},
        {"type": "is_json"},
        {"type": "csv_columns", "extras": {"columns": "{{ sample.c }}"}},
    ]
    row = {"q": "?", "a": "1", "n": 0, "c": 2, "refs": ["1 b", "c"]}
    (result,) = score(make(tmp_path, scorers, [row]), "1")
    fields = result.details["scorers"]
    assert pytest.approx(2 / 3) == fields["f1"]["score"] == result.score
    assert bleu("1", ["1 b c d", "zzz"], {}) == fields["bleu"]["score"]
    assert {name: function("1", ["1 b", "c"], {}) for name, function in _ROUGE.items()} == fields["rouge"]
    assert [{"is_valid": True}, {"is_valid": False}, 1.0] == [
        fields["json_schema"],
        fields["text"],
        fields["is_json"]["score"],
    ]
    assert (0.5, "passed") == (result.threshold, result.status)


_ROUGE = {"rouge_1": rouge_1, "rouge_2": rouge_2, "rouge_l": rouge_l}


@pytest.mark.parametrize(
    "source",
    [
        "def compute_scores(sample: dict, model_input, model_output) -> dict:\n"
        "    said = model_output['choices'][0]['message']['content']\n"
        "    return {'asked': model_input['messages'][0]['content'], 'right': said == sample['a']}",
        "def compute_scores(sample, solver_output):\n"
        "    said = solver_output.output['choices'][0].message.content\n"
        "    return {'asked': solver_output['messages'][0].content, 'right': said == sample.a}",
        "def compute_scores(row, out):\n"
        "    return {'asked': out.messages[0]['content'], 'right': out.messages[-1].content == row.a}",
    ],
)
def test_a_function_sees_the_row_and_the_answer(tmp_path: Path, source: str) -> None:
    task = make(tmp_path, [{**PYTHON, "compute_scores_snippet": source}])
    right, wrong = score(task, "1", "1")
    assert {"asked": "one?", "right": True} == right.details["scorers"]["python"]
    assert [("passed", 1.0), ("failed", 0.0)] == [(each.status, each.score) for each in (right, wrong)]
    assert "python.right" == right.details["score_field"]


def test_a_function_cannot_change_a_row_for_others(tmp_path: Path) -> None:
    source = (
        "def compute_scores(sample, solver_output):\n    sample['a'] += 'x'\n    return {'ok': sample['a'] == '1x'}"
    )
    task = make(tmp_path, [{**PYTHON, "compute_scores_snippet": source}], ROWS[:1])
    assert [1.0, 1.0] == score(task, ["y", "y"])[0].details["scores"]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("float('nan')", "x is nan; expected a finite number"),
        ("[1, float('inf')]", "x[1] is inf; expected a finite number"),
        ("{1: 2}", "x has the key 1; expected text"),
        ("object()", "x is a object; expected text"),
        ("[[[]]]; [x.append(x) for x in [sample['l']]]; return {'x': sample['l']}", "nested deeper than 50 levels"),
    ],
)
def test_a_function_that_returns_what_is_no_score_is_an_error_of_its_row(
    tmp_path: Path, returned: str, problem: str
) -> None:
    body = returned if "return" in returned else f"return {{'x': {returned}}}"
    source = f"def compute_scores(sample, solver_output):\n    {'x = ' if ';' in body else ''}{body}"
    task = make(tmp_path, [{**PYTHON, "compute_scores_snippet": source}], [{**ROWS[0], "l": []}])
    (result,) = score(task, "y")
    assert ("error", None) == (result.status, result.score)
    assert problem in result.error
    assert result.error.startswith("scorer python: compute_scores in small.yaml")


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    needs.installed("numpy")
    body = "return {'x': numpy.float64(0.5), 'y': numpy.bool_(True)}"
    source = f"import numpy\ndef compute_scores(sample, solver_output):\n    {body}"
    scorer = {**PYTHON, "compute_scores_snippet": source, "score_field": "x"}
    (result,) = score(make(tmp_path, [scorer], ROWS[:1]), "y")
    assert {"x": 0.5, "y": True} == json.loads(result.to_json())["details"]["scorers"]["python"]


@pytest.mark.parametrize("returned", ["None", "[]", "{}", "True"])
def test_a_function_returns_a_mapping(tmp_path: Path, returned: str) -> None:
    source = f"def compute_scores(sample, solver_output): return {returned}"
    (result,) = score(make(tmp_path, [{**PYTHON, "compute_scores_snippet": source}], ROWS[:1]), "y")
    assert f"returned {returned}; expected a mapping of fields to values" in result.error


def test_the_first_scorer_of_purpose_score_decides(tmp_path: Path) -> None:
    qa = {"type": "exact_match", "ground_truth": "zzz", "purpose": "qa"}
    task = make(tmp_path, [qa, EQUALS, {"type": "f1", "ground_truth": "x"}])
    assert ("string_equals", [1.0, 0.0]) == (task.metric, [each.score for each in score(task, "1", "1")])


def test_a_field_that_score_field_names_is_the_score_or_the_row_is_an_error(tmp_path: Path) -> None:
    source = "def compute_scores(sample, solver_output): return {'t': 'x', 'n': sample.n, 'half': 0.5, 'yes': True}"
    python = {**PYTHON, "compute_scores_snippet": source}
    assert [1.0, 1.0] == [each.score for each in score(make(tmp_path, [{**python, "score_field": "yes"}]), "", "")]
    (first, _) = score(make(tmp_path, [{**python, "score_field": "n"}]), "", "")
    assert "score_field 'n' is 3; expected a boolean or a number in [0, 1]" in first.error
    (first, _) = score(make(tmp_path, [{**python, "score_field": "m"}]), "", "")
    assert "score_field 'm' is missing; there is t, n, half, yes" in first.error


def _scored_by(folder: Path, returned: str, rows: list[dict[str, Any]] | None = None, **parts: Any) -> list[Any]:
    """Return the score, or the error, of rows for which a function returns what the text says; None is measured."""
    source = f"def compute_scores(sample, solver_output): return {returned}"
    task = make(folder, [{**PYTHON, "compute_scores_snippet": source, **parts}], rows or ROWS)
    results = score(task, *[""] * len(task.examples))
    assert all((each.status == "measured") == (each.score is None and not each.error) for each in results)
    return [each.error or each.score for each in results]


def _mean(*fields: str) -> list[dict[str, str]]:
    return [{"type": "mean", "field": field} for field in fields]


_BINARY = [
    {
        "type": "binary_classification",
        "field_gt": "gt",
        "field_pred": "pred",
        "positive_answer": True,
        "negative_answer": False,
    }
]


@pytest.mark.parametrize(
    ("returned", "parts", "expected"),
    [
        ("{'t': 'x', 'n': 7, 'half': 0.5}", {}, [0.5, 0.5]),
        ("{'half': 0.5, 'yes': True}", {"metrics": _mean("yes")}, [1.0, 1.0]),
        ("{'half': 0.5, 'yes': True}", {"metrics": _mean("yes", "yes")}, [1.0, 1.0]),
        ("{'half': 0.5, 'yes': True}", {"metrics": _mean("yes", "half")}, [None, None]),
        ("{'half': 0.5, 'yes': True}", {"metrics": [{"type": "max", "field": "yes"}]}, [None, None]),
        ("{'score': 3}", {"metrics": _mean("score")}, [None, None]),
        ("{'gt': True, 'pred': False}", {"metrics": _BINARY}, [None, None]),
        ("{'gt': True, 'pred': 'neither'}", {"metrics": _BINARY}, [None, None]),
        ("{'right': True, 'why': None}", {"metrics": _mean("right")}, [1.0, 1.0]),
        ("{'gt': True, 'pred': None}", {"metrics": [{"type": "frequency", "field": "gt"}]}, [None, None]),
    ],
)
def test_the_score_is_the_only_candidate_or_what_one_mean_names_or_measured(
    tmp_path: Path, returned: str, parts: dict[str, Any], expected: list[Any]
) -> None:
    assert expected == _scored_by(tmp_path, returned, **parts)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("{'score': 3, 'why': 'x'}", "no field is a boolean or a number in [0, 1]; there is score, why"),
        ("{'gt': True, 'pred': False}", "more than one field can be the score: gt, pred"),
        ("{'gt': True, 'pred': None}", "more than one field can be the score: gt, pred (null here)"),
        ("{'right': None}", "no field is a boolean or a number in [0, 1]; right (null here)"),
    ],
)
def test_a_function_without_metrics_and_one_candidate_is_an_error_that_lists_them(
    tmp_path: Path, returned: str, problem: str
) -> None:
    expected = f"scorer python: {problem}; set score_field, or give the scorer metrics"
    assert [expected, expected] == _scored_by(tmp_path, returned)


def test_a_null_of_the_field_that_a_mean_names_is_an_error_of_its_row(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"q": "?", "ok": None}, {"q": "?", "ok": True}]
    found = _scored_by(tmp_path, "{'other': True, 'ok': sample.ok}", rows, metrics=_mean("ok"))
    wanted = "scorer python: the field 'ok' is None; expected a boolean or a number in [0, 1]"
    assert [wanted, 1.0] == found


def test_a_task_for_quality_alone_is_measured(tmp_path: Path) -> None:
    source = "def compute_scores(sample, solver_output): return {'n': 1 / (sample.n - 3)}"
    qa = {**PYTHON, "compute_scores_snippet": source, "purpose": "qa", "metrics": _mean("n")}
    task = make(tmp_path, [qa])
    broken, measured = score(task, "", "")
    assert ("measured", "error", "measured", None) == (task.metric, broken.status, measured.status, measured.score)
    assert "ZeroDivisionError" in broken.error


LABELER = {"type": "labeler_via_model", "labels": ["good", "bad"], "user_prompt": "?"}
ROUGE = {"type": "rouge", "ground_truth": "x"}


@pytest.mark.parametrize(
    ("scorers", "problem"),
    [
        (
            [LABELER],
            "missing_required definition.scorers[0].score_field: no field is a boolean or a number in [0, 1]; there is "
            "label; set score_field, or give the scorer metrics, or purpose: qa",
        ),
        (
            [{**LABELER, "purpose": "qa"}],
            "missing_required definition.scorers: no scorer has the purpose 'score' or metrics, so no row would "
            "be scored; there is labeler_via_model (label)",
        ),
        (
            [ROUGE],
            "missing_required definition.scorers[0].score_field: more than one field can be the score: rouge_1, "
            "rouge_2, rouge_l; set score_field, or give the scorer metrics, or purpose: qa",
        ),
        (
            [{**LABELER, "metrics": [{"type": "frequency", "field": "label"}], "threshold": 0.5}],
            "bad_value definition.scorers[0].threshold: no field is the score of a row, so no threshold applies",
        ),
        (
            [{**EQUALS, "score_metric": "m", "metrics": [{"type": "mean", "field": "prediction_is_correct"}]}],
            "bad_value definition.scorers[0].score_metric: the score is the mean of the field "
            "'prediction_is_correct'; remove score_metric",
        ),
        (
            [EQUALS, {**EQUALS, "key": "b", "score_metric": "m"}],
            "bad_value definition.scorers[1].score_metric: only the first scorer of purpose 'score' can have one",
        ),
        (
            [{**PYTHON, "compute_scores_snippet": "def compute_scores(sample): return {}", "score_metric": "m"}],
            "bad_value definition.scorers[0].score_metric: the scorer has no metrics to choose from",
        ),
        (
            [{**ROUGE, "metrics": _mean("rouge_1", "rouge_2"), "score_metric": "rouge_1"}],
            "bad_value definition.scorers[0].score_metric: the scorer has no metric 'rouge_1'; did you mean "
            "'rouge_1_mean'?",
        ),
    ],
)
def test_a_task_that_could_have_no_score_is_refused(
    tmp_path: Path, scorers: list[dict[str, Any]], problem: str
) -> None:
    assert [problem] == faults(tmp_path, document(scorers))


def test_what_a_person_said_is_never_the_score(tmp_path: Path) -> None:
    scorer = {
        **LABELER,
        "human_label": "{{ sample.human == 'good' }}",
        "metrics": [{"type": "frequency", "field": "label"}],
    }
    results = score(make(tmp_path, [scorer]), "", "", judge=StubJudge("good", "bad"))
    assert ["measured", "measured"] == [each.status for each in results]


def test_rouge_takes_the_one_field_that_a_mean_names(tmp_path: Path) -> None:
    task = make(tmp_path, [{**ROUGE, "metrics": _mean("rouge_l"), "threshold": 0.5}])
    assert "rouge.rouge_l" == score(task, "x", "x")[0].details["score_field"]


def test_a_row_that_the_template_does_not_fit_is_an_error_and_the_others_run(tmp_path: Path) -> None:
    rows = [{"q": "x", "a": str(number)} for number in range(1000)]
    del rows[500]["q"]
    task = make(tmp_path, [EQUALS], rows)
    results = score(task, *(str(number) for number in range(1000)))
    assert {500} == {number for number, result in enumerate(results) if result.status != "passed"}
    assert "solver: template '{{ sample.q }}': there is no 'q'; there is a, sample_id" == results[500].error
    assert [] == list(task.requests(task.examples[500], ""))


def test_a_scorer_that_a_row_does_not_fit_is_named(tmp_path: Path) -> None:
    rows = [{"q": "x", "a": "1"}, {"q": "x"}]
    _, result = score(make(tmp_path, [EQUALS], rows), "1", "1")
    assert "scorer string_equals: template '{{ sample.a }}': there is no 'a'; there is q, sample_id" == result.error
    schema = {"type": "json_schema", "json_schema": "{{ sample.a }}"}
    first, _ = score(make(tmp_path, [schema], rows), "1", "1")
    assert first.error.startswith("scorer json_schema: ")


def test_rows_of_a_data_set_are_scored_without_a_model(tmp_path: Path) -> None:
    scorers = [
        {**EQUALS, "prediction": "{{ sample.human }}", "ground_truth": "good"},
        {**PYTHON, "compute_scores_snippet": "def compute_scores(sample): return {'long': len(sample.q) > 2}"},
    ]
    task = make(tmp_path, scorers, solver=None, evaluated_entity_type="dataset")
    assert () == task.requests(task.examples[0], task.examples[0].prompt)
    assert ["passed", "failed"] == [each.status for each in score(task, "", "")]


# --- what is asked, and what is made of the answer -------------------------------------------------------------------


def test_json_is_built_by_a_template(tmp_path: Path) -> None:
    def generic(template: str) -> dict[str, Any]:
        return {"type": "single_turn_solver", "input_builder": {"type": "generic", "template": template}}

    hostile = [{"q": 'say "hi" {{ x }}\n', "a": "1"}]
    task = make(tmp_path, [EQUALS], hostile, solver=generic('{"job": {{ sample.q | tojson }}}'))
    (request,) = task.requests(task.examples[0], task.examples[0].prompt)
    assert {"job": hostile[0]["q"]} == json.loads(request.prompt)  # type: ignore[union-attr, arg-type]
    chat = '{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}]}'
    task = make(tmp_path, [EQUALS], hostile, solver=generic(chat))
    assert ("user", hostile[0]["q"]) == (task.examples[0].messages[0].role, task.examples[0].messages[0].content)
    (result,) = score(make(tmp_path, [EQUALS], hostile, solver=generic('{"job": "{{ sample.q }}"}')), "1")
    assert "solver: the template gave no JSON: " in result.error
    assert "write values as {{ sample.x | tojson }}" in result.error


@pytest.mark.parametrize(
    ("body", "answers"),
    [
        ("return solver_output.messages[-1].content.upper()", ["A-B"]),
        ("solver_output['output']['choices'][0]['message']['content'] = 'c'; return solver_output", ["c"]),
        (
            "return [(dict(sample, a=p), {'output': {'choices': [{'message': {'content': p}}]}}) "
            "for p in solver_output.messages[-1].content.split('-')]",
            ["a", "b"],
        ),
    ],
)
def test_a_postprocessor_makes_rows_of_an_answer(tmp_path: Path, body: str, answers: list[str]) -> None:
    snippet = {"type": "python", "postprocess_snippet": f"def postprocess(sample, solver_output):\n    {body}"}
    task = make(tmp_path, [EQUALS], ROWS[:1], solver={**SOLVER, "postprocessor": snippet})
    (result,) = score(task, "a-b")
    rows = result.details.get("rows", [result.details])
    assert answers == [row["scorers"]["string_equals"]["answer_pred"] for row in rows]
    assert {"rows": len(answers)} == task.aggregate([result])["notes"]
    assert float(len(answers) == 2) == result.score


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("None", "postprocessor: returned None; expected text, a solver_output, or a list of"),
        ("[]", "postprocessor: returned []; expected"),
        ("{'output': 1}", "solver_output has no output.choices[0].message.content"),
        ("[(sample, {'output': {'choices': [{'message': {'content': 3}}]}})]", "the content is int; expected text"),
        ("{'output': float('nan')}", "postprocessor: output is nan"),
        ("1 / 0", "postprocessor: postprocess in small.yaml, snippet of line"),
    ],
)
def test_a_postprocessor_that_fails_is_named(tmp_path: Path, returned: str, problem: str) -> None:
    snippet = {"type": "python", "postprocess_snippet": f"def postprocess(sample, solver_output): return {returned}"}
    task = make(tmp_path, [EQUALS], ROWS[:1], solver={**SOLVER, "postprocessor": snippet})
    (result,) = score(task, "a")
    assert problem in result.error
    assert "error" == result.status


# --- what the content hash is over -----------------------------------------------------------------------------------


def test_the_hash_of_an_example_changes_with_what_decides_its_score_alone(tmp_path: Path) -> None:
    def hashes(*scorers: dict[str, Any], rows: Any = ROWS, **parts: Any) -> tuple[str, ...]:
        return tuple(result.hash for result in score(make(tmp_path, scorers, rows, **parts), "1", "1"))

    plain = hashes(EQUALS)
    same = [{**EQUALS, "threshold": 0.5}, {**EQUALS, "metrics": []}]
    assert [plain, plain] == [hashes(each) for each in same]
    assert plain == hashes(EQUALS, root={"description": "another", "tags": ["x"]})
    others = [
        hashes({**EQUALS, "ignore_case": True}),
        hashes(EQUALS, {"type": "f1", "ground_truth": "x"}),
        hashes(EQUALS, actions=[{"key": "x", "action": "exclude_from_metrics", "filter": _NEVER}]),
        hashes(EQUALS, rows=[{**row, "more": 1} for row in ROWS]),
        hashes(EQUALS, solver={**SOLVER, "max_tokens": 3}),
    ]
    assert 6 == len({plain, *others})


_NEVER = {"op": "equals", "expression": "{{ sample.a }}", "value": "never"}


def test_a_judge_is_asked_only_where_there_is_one(tmp_path: Path) -> None:
    judged = {"type": "model_as_a_judge_classifier", "correct_labels": ["y"], "incorrect_labels": ["n"]}
    task = make(tmp_path, [judged], ROWS[:1])
    assert "no judge: name the model that judges with --lm-judge=SPEC" in score(task, "1")[0].error
    assert "passed" == score(task, "1", judge=StubJudge("y"))[0].status
