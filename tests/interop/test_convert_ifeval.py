"""IFEval as published: what becomes of its instructions, and that they are checked as its own checker does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks
from pytest_lmeval.cli import main
from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.convert.ifeval import convert_ifeval

CATS: dict[str, Any] = {"keyword": "cat", "frequency": 2, "relation": "at least"}
OVER = {**CATS, "relation": "over"}
FEW: dict[str, Any] = {"num_words": 3, "relation": "less than"}
SECTIONS = {"section_spliter": "Part", "num_sections": 2}


def record(name: str, key: int = 1, **given: Any) -> dict[str, Any]:
    return {"key": key, "prompt": "Write.", "instruction_id_list": [name], "kwargs": [given]}


def written(folder: Path, *records: dict[str, Any]) -> list[Path]:
    source = folder / "input_data.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in records))
    return convert_ifeval(source, folder / "out")


# An instruction, its arguments, texts that follow it, and texts that do not.
ROWS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("punctuation:no_comma", {}, ["a; b"], ["a, b", " \n"]),
    ("keywords:existence", {"keywords": ["cat", "dog"]}, ["Dogs\nand cats"], ["cats"]),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, ["cats"], ["a\nCat.", ""]),
    ("keywords:frequency", CATS, ["cat Cats", "c\ncatcat"], ["cat"]),
    ("keywords:frequency", {**CATS, "relation": "less than"}, ["cat"], ["cat, cat", ""]),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, ["#a#"], ["#"]),
    ("length_constraints:number_words", {**FEW, "relation": "at least"}, ["a b-c"], ["a b."]),
    ("length_constraints:number_words", FEW, ["(a b)"], ["a b\nc", ""]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[a] [b c]", "[[a][b]"], ["[a\n]"]),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, ["x\np.s. y"], ["ps"]),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["P. P. S"], ["P.S."]),
    ("detectable_format:constrained_response", {}, ["So: My answer is no."], ["my answer is no."]),
    ("detectable_format:multiple_sections", SECTIONS, ["Part 1 a Part2 b"], ["Part 1 Part b"]),
    ("detectable_format:title", {}, ["<<A title>>"], ["<< >>", "<<a\nb>>"]),
    ("startend:end_checker", {"end_phrase": "The end. "}, ["So.\nthe END.", '"The end." '], ["The end.."]),
    ("startend:quotation", {}, [' "a\nb" '], ['"', 'a "b"']),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, [" say it. Then"], ["Then say it."]),
]


def test_each_instruction_is_followed_by_the_texts_that_follow_it_for_its_own_checker(tmp_path: Path) -> None:
    records = [record(name, key, **given) for key, (name, given, _, _) in enumerate(ROWS)]
    (path,) = written(tmp_path, *records)
    (task,) = load_tasks(path)
    differing = []
    for example, (name, _, good, bad) in zip(task.examples, ROWS, strict=True):
        (check,) = json.loads(path.read_text().splitlines()[int(example.id.partition("-")[2])])["checks"]
        found = [bool(re.search(check["targets"][0], text)) for text in (*good, *bad)]
        if found != [True] * len(good) + [False] * len(bad):
            differing.append((name, found))
    assert [] == differing


def test_records_with_an_instruction_that_has_no_check_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = {"instruction_id_list": ["punctuation:no_comma", "language:response_language"], "kwargs": [{}, {}]}
    records = [record("punctuation:no_comma"), {**record("x", 2), **two}, record("language:response_language", 3)]
    source = tmp_path / "input_data.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in records))
    assert 0 == main(["convert", "ifeval", str(source), "-o", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert "left out: 2 of 3 records, with instructions that have no check:\n  language:response_language: 2\n" in out
    assert 1 == len((tmp_path / "out" / "ifeval.jsonl").read_text().splitlines())


COMMA = record("punctuation:no_comma")
REFUSED: list[tuple[dict[str, Any], str]] = [
    (record("keywords:frequency", keyword="cat"), ":1: keywords:frequency: expected 'frequency', int, got None"),
    (record("keywords:frequency", **OVER), "expected 'at least' or 'less than', got 'over'"),
    (record("keywords:existence", keywords=["("]), "keywords:existence: not a valid pattern: missing )"),
    ({**COMMA, "kwargs": []}, "'kwargs' must be a list of dict, got []"),
    ({**COMMA, "kwargs": [{}, {}]}, "'kwargs' and 'instruction_id_list' must have the same length"),
    ({**COMMA, "key": "1"}, "'key' must be a number, got '1'"),
    (record("language:response_language"), "no record has instructions that can all be checked: language:resp"),
]


def test_what_is_not_as_published_is_refused(tmp_path: Path) -> None:
    said = []
    for bad, _ in REFUSED:
        with pytest.raises(UsageError) as caught:
            written(tmp_path, bad)
        said.append(str(caught.value))
    assert [] == [(text, says) for text, (_, says) in zip(said, REFUSED, strict=True) if says not in text]
