"""Warnings about records that are valid and look like mistakes."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.formats.files import find_task_files, load_file
from pytest_lmeval.formats.jsonl import read_records
from pytest_lmeval.formats.lint import SIMILAR, LintWarning, known_keys, lint, near_duplicates
from pytest_lmeval.loading import default_registry
from pytest_lmeval.schemas import load_schema

REGISTRY = default_registry(entry_points=False)
LONG = "In which year did the first railway line between the two largest cities of the country open to the public?"


def _compact(prompt: str, target: str, metric: str = "exact_match", **extras: Any) -> dict[str, Any]:
    return {"prompt": prompt, "targets": [target], "metric": metric, "extras": extras}


def _spec(number: int, prompt: str, target: str, category: str = "arithmetic", **fields: Any) -> dict[str, Any]:
    fixed = {"metric_name": "exact_match", "post_process": "strip_whitespace"}
    return {"task_id": f"t{number}", "category": category, "prompt": prompt, "targets": [target], **fixed, **fields}


def _lint(folder: Path, **files: list[dict[str, Any]]) -> list[LintWarning]:
    for name, records in files.items():
        folder.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return lint({path: load_file(path, name, REGISTRY) for path, name in find_task_files([folder], REGISTRY)}, REGISTRY)


def _places(warnings: list[LintWarning]) -> list[tuple[str, int, str]]:
    return [(warning.path.stem, warning.line_number, warning.rule) for warning in warnings]


def test_a_sound_file_has_no_warning(tmp_path: Path) -> None:
    colours = ["red", "blue", "green", "black", "white", "grey", "brown", "pink"]
    records = [_compact(f"Of which colour is thing number {number}?", colour) for number, colour in enumerate(colours)]
    assert [] == _lint(tmp_path, a=records)


def test_a_warning_names_the_place_the_finding_and_its_meaning(tmp_path: Path) -> None:
    (warning,) = _lint(tmp_path, a=[_spec(1, "Say red.\u2028now", "x", metadata={"thresold": 0.5})])
    assert f"{tmp_path}/a.jsonl:1: warning misspelt_key: the key 'thresold': did you mean 'threshold'? " in warning.at()
    assert warning.at().endswith("the key is kept, but nothing reads it")
    assert "\\u2028" in LintWarning(tmp_path, 1, "overlap", "a\u2028b").at()


# Near duplicates


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (LONG, LONG, True),
        (LONG, f"  {LONG.upper()}\n", True),
        (LONG, LONG.replace("the two", "both"), False),
        (LONG, LONG.replace("public", "people"), True),
        ("2 + 3 =", "2 * 3 =", False),
        ("2 + 3 =", "2 +  3  =", True),
        ("What is the capital of France?", "What is the capital of Spain?", False),
        ("?", "!", False),
    ],
)
def test_prompts_that_are_nearly_the_same_are_told(tmp_path: Path, first: str, second: str, told: bool) -> None:
    warnings = _lint(tmp_path, a=[_compact(first, "x"), _compact("Something else.", "y"), _compact(second, "z")])
    assert ([("a", 3, "near_duplicate")] if told else []) == _places(warnings)
    assert told == any("line 1, with other targets" in warning.detail for warning in warnings)


def test_an_instruction_that_all_prompts_share_makes_no_duplicates(tmp_path: Path) -> None:
    names = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Tony", "Niklaus", "John", "Ken", "Dennis"]
    warnings = _lint(tmp_path, a=[_compact(f"{LONG} Now the first name: {name}?", name[::-1]) for name in names])
    assert [] == _places(warnings)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=9), min_size=2, max_size=9))
def test_the_index_finds_what_comparing_all_pairs_finds(texts: list[list[str]]) -> None:
    """Below ten prompts nothing counts as an instruction, so the plain definition holds."""
    data = [_compact(" ".join(words), "x") for words in texts]
    examples = read_records("\n".join(map(json.dumps, data)).encode(), REGISTRY).examples
    task: Any = SimpleNamespace(examples=examples, path=Path("a.jsonl"))
    found = {warning.line_number for warning in near_duplicates(task)}
    shingles = [{tuple(words[at : at + 3]) for at in range(len(words) - 2)} for words in texts]
    expected = {
        number + 1
        for number, ours in enumerate(shingles)
        if any(
            texts[number] == texts[earlier] or len(ours & theirs) / len(ours | theirs) >= SIMILAR
            for earlier, theirs in enumerate(shingles[:number])
        )
    }
    assert expected == found


@pytest.mark.again
def test_thousands_of_records_take_seconds(tmp_path: Path) -> None:
    draw = random.Random(3)
    words = [f"w{number}" for number in range(2000)]
    records = [_compact("Answer in a word. " + " ".join(draw.choices(words, k=30)), "x y z") for _ in range(4_000)]
    records[-1]["prompt"] = records[0]["prompt"]
    started = time.process_time()
    warnings = _lint(tmp_path, a=records)
    assert ("a", 4_000, "near_duplicate") in _places(warnings)
    assert 15 > time.process_time() - started  # all pairs would be minutes


# Skewed answers


def test_an_answer_that_is_right_too_often_is_told_with_its_score(tmp_path: Path) -> None:
    letters = "AAAAAAAAABCD"
    records = [
        _spec(
            number, f"Question number {number}?\nA) a\nB) b\nC) c\nD) d", letter, "mcq", post_process="extract_letter"
        )
        for number, letter in enumerate(letters)
    ]
    (warning,) = _lint(tmp_path, a=records)
    assert ("skewed_answers", 1) == (warning.rule, warning.line_number)
    assert "a model that always says 'A' would score 0.75 on the 12 examples of category 'mcq'" in warning.detail


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("ABCD" * 5, False),
        ("AABCDABCDABC", False),
        ("A" * 30 + "B" * 10, True),
        ("A" * 4, False),
        ("A" * 9, True),
        ("ABCDEFGHIJ", False),
    ],
)
def test_only_a_clear_skew_is_told(tmp_path: Path, answers: str, told: bool) -> None:
    records = [_compact(f"Which one is it, {number * 7919}?", answer) for number, answer in enumerate(answers)]
    assert told == ("skewed_answers" in [warning.rule for warning in _lint(tmp_path, a=records)])


def test_the_metric_decides_what_an_answer_would_score(tmp_path: Path) -> None:
    by_text = [_compact(f"Give a table, {number * 7919}.", "ok", "has_csv") for number in range(20)]
    by_program = [
        _compact(f"Write f, {number * 7919}.", "ok", "code_exec", io_pairs=[[number, 1]]) for number in range(20)
    ]
    assert [] == _lint(tmp_path, a=by_text, b=by_program)


# Answers that are given away


def test_a_worked_example_that_holds_the_answer_is_told(tmp_path: Path) -> None:
    shots = [{"prompt": "1 + 1 =", "completion": "2"}]
    leak = [{"prompt": "3 + 4  =", "completion": "7"}]
    story = [{"prompt": "Who was it?", "completion": "It was Ada King of Lovelace, they say."}]
    records = [
        _spec(1, "1 + 2 =", "3", few_shot_examples=shots),
        _spec(2, "8 - 6 =", "2", few_shot_examples=shots),
        _spec(3, "3 + 4 =", "7", few_shot_examples=leak),
        _spec(4, "Who wrote the first program?", "Ada King of Lovelace", few_shot_examples=story),
    ]
    warnings = _lint(tmp_path, a=records)
    assert [("a", line, "answer_in_few_shot") for line in (2, 3, 4)] == _places(warnings)
    told = ["has the same answer, '2'", "is the question itself", "holds the answer 'ada king of lovelace'"]
    assert [True] * 3 == [part in warning.detail for part, warning in zip(told, warnings, strict=True)]


def test_labels_and_options_are_meant_to_stand_in_prompts_and_worked_examples(tmp_path: Path) -> None:
    shots = [{"prompt": "I love it.", "completion": "positive"}]
    records = [
        _spec(
            1,
            "Positive or negative? What a waste. Is it positive",
            "positive",
            "classification",
            few_shot_examples=shots,
        ),
        _spec(2, "Which?\nA) one\nB) two\nAnswer A or B", "B", "mcq"),
    ]
    multiple = [_compact("Which? A) one B) two. Say A or B", "B", "multiple_choice")]
    questions = [_compact("Is it so: true or false", "false"), _compact("Can that be: true or false", "true")]
    assert [] == _lint(tmp_path, a=records, b=multiple, c=questions)


@pytest.mark.parametrize(
    ("record", "detail"),
    [
        (
            _compact("Echo this: hello", "hello", "substring_contains"),
            "a model that repeats the prompt would score 1.00",
        ),
        (_compact("17 + 24 = 41", "41"), "the prompt ends in the answer '41'"),
        (_compact("Say it: Yes, Sir!", "yes, sir"), "the prompt ends in the answer 'yes, sir'"),
        (
            _compact("the cat sat on a mat", "the cat sat", "rouge_l"),
            "a model that repeats the prompt would score 0.67",
        ),
    ],
)
def test_a_prompt_that_gives_its_answer_away_is_told(tmp_path: Path, record: dict[str, Any], detail: str) -> None:
    (warning,) = _lint(tmp_path, a=[record])
    assert "answer_in_prompt" == warning.rule
    assert detail in warning.detail


@pytest.mark.parametrize(
    "record",
    [
        _compact("In the text, Paris is the capital of France. What is the capital?", "Paris"),
        _compact("the cat sat on a mat", "the cat sat", "rouge_l", threshold=0.7),
        _compact("14 + 1 =", "1"),
        _compact("Is the answer 1?", "1"),
    ],
)
def test_an_answer_that_merely_stands_in_its_prompt_is_not(tmp_path: Path, record: dict[str, Any]) -> None:
    assert [] == _lint(tmp_path, a=[record])


# Two files


def test_prompts_of_one_task_in_another_are_told_once_for_both(tmp_path: Path) -> None:
    shared = [_compact("What is the capital of France?", "Paris"), _compact("How tall is that tower?", "300 m")]
    shots = [{"prompt": "How tall is that tower?", "completion": "300 m"}, {"prompt": "How old?", "completion": "9"}]
    learner = [_spec(number, f"How deep is lake {number}?", str(number), few_shot_examples=shots) for number in (1, 2)]
    warnings = _lint(tmp_path, a=shared, b=[_compact("Something else?", "no"), *shared], c=learner)
    assert [("a", 1, "overlap"), ("c", 1, "overlap"), ("c", 1, "overlap")] == _places(warnings)
    assert f"2 prompts also in {tmp_path}/b.jsonl, such as on its line 2" in warnings[0].detail
    assert f"1 worked example here, answer included, is asked in {tmp_path}/a.jsonl" in warnings[1].detail
    assert f"is asked in {tmp_path}/b.jsonl, such as on its line 3" in warnings[2].detail


# Keys


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(("thresold", "threshold"), ("Threshold", "threshold"), ("timeout", "timeout_s"), ("time-out-s", "timeout_s")),
        *(("mustpass", "must_pass"), ("tag", "tags"), ("io-pairs", "io_pairs"), ("entrypoint", "entry_point")),
        *(("json_scheme", "json_schema"), ("seperator", "separator"), ("clusters", "cluster")),
        *(("source", ""), ("level", ""), ("url", ""), ("note", ""), ("", ""), ("threshold", "")),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_told(tmp_path: Path, key: str, meant: str) -> None:
    records = [_spec(number, prompt, "x", metadata={key: 0.5}) for number, prompt in enumerate(("What?", "Who else?"))]
    warnings = _lint(tmp_path, a=records)
    assert ([("a", 1, "misspelt_key")] if meant else []) == _places(warnings)
    assert all(f"in 2 records: did you mean {meant!r}?" in warning.detail for warning in warnings)


def test_the_keys_that_a_registered_metric_reads_are_known() -> None:
    registry = REGISTRY.copy()
    registry.add_metric("length", lambda prediction, targets, extras: 1.0, extras=["unit_of_length"])
    assert {"unit_of_length"} == known_keys(registry) - known_keys(REGISTRY)


def test_every_key_that_the_schemas_know_is_known() -> None:
    def keys(schema: Any, name: str) -> set[str]:
        if isinstance(schema, list):
            return set().union(*(keys(each, name) for each in schema))
        if not isinstance(schema, dict):
            return set()
        own = set(schema.get("properties", {}).get(name, {}).get("properties", {}))
        return own.union(*(keys(each, name) for each in schema.values()))

    assert keys(load_schema("compact-record"), "extras") <= known_keys(REGISTRY)
    assert keys(load_schema("spec-record"), "metadata") <= known_keys(REGISTRY)
