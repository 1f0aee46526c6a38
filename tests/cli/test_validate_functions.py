"""``lmeval validate`` and eval functions: found in the text of test files, which are not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.functions.checking import check_file
from tests.cli.conftest import Lmeval

HEAD = "import nothing_that_is_installed\nfrom pytest_lmeval import eval_task\n\n"
ROWS = '{"id": "late", "text": "Where is it?"}\n{"id": "twice", "text": "Paid twice"}\n'


def _file(path: Path, *functions: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "\n\n".join(f"{each}: ..." for each in functions) + "\n")
    return path


def _function(arguments: str, name: str = "test_ticket") -> str:
    return f"@eval_task({arguments})\ndef {name}(row, lm)"


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "tickets.jsonl").write_text(ROWS)
    return folder


def test_the_rows_of_good_functions_are_counted_and_the_file_is_not_run(tests: Path, lmeval: Lmeval) -> None:
    file = _file(tests / "test_support.py", _function("'support', data='tickets.jsonl'"))
    said = (0, "1 file(s): 2 valid record(s), 0 bad, 1 eval function(s)\n", "")
    assert said == lmeval("validate", tests)
    assert said == lmeval("validate", file)


@pytest.mark.parametrize(
    ("data", "rows", "fault"),
    [
        ("'tickets.jsonl'", ROWS, ""),
        ("[{'text': 'a'}]", ROWS, ""),
        ("'none.csv'", ROWS, "No such file or directory; paths begin at the test file's folder"),
        ("'tickets.txt'", ROWS, "'tickets.txt' is not one of .csv, .jsonl, .parquet"),
        ("'tickets.jsonl'", "", "tickets.jsonl has no rows"),
        ("'tickets.jsonl'", '{"a": 1}\n{"a":\n', "tickets.jsonl:2: "),
        ("'tickets.jsonl'", ROWS + ROWS, "rows 1 and 3 have the same id 'late'"),
        ("[1]", ROWS, "row 1: expected a mapping, got 1"),
        ("[]", ROWS, "no rows"),
    ],
)
def test_data_are_checked(tests: Path, data: str, rows: str, fault: str) -> None:
    (tests / "tickets.jsonl").write_text(rows)
    errors = check_file(_file(tests / "test_a.py", _function(f"'support', data={data}"))).errors
    assert ([("bad_value", "data", 4)] if fault else []) == [(e.rule, e.field, e.line_number) for e in errors]
    assert not fault or fault in errors[0].detail


def test_bad_data_are_named_with_the_line_of_the_decorator(tests: Path, lmeval: Lmeval) -> None:
    (tests / "tickets.jsonl").write_text("[1]\n")
    file = _file(tests / "test_support.py", _function("'support', data='tickets.jsonl'"))
    code, out, _ = lmeval("validate", tests)
    assert (1, [f"{file}:4: bad_value data: tickets.jsonl:1: expected an object, got [1]"]) == (code, _but_last(out))


def test_json_has_the_functions_of_each_file(tests: Path, lmeval: Lmeval) -> None:
    _file(
        tests / "test_support.py",
        _function("name='support', data='tickets.jsonl'"),
        "class TestAll:\n    @pytest_lmeval.eval_task('made', data=rows())\n    def test_made(self, row, lm)",
        _function("f'{1}'", "test_named"),
    )
    code, out, _ = lmeval("validate", tests, "--format=json")
    (file,) = json.loads(out)["files"]
    found = [(each["task"], each["function"], each["rows"], each["untold"]) for each in file["functions"]]
    assert (0, 2) == (code, file["valid"])
    assert [
        ("support", "test_ticket", 2, []),
        ("made", "TestAll.test_made", None, ["data"]),
        ("", "test_named", None, ["name"]),
    ] == found


def test_what_only_a_run_can_tell_is_said(tests: Path, lmeval: Lmeval) -> None:
    (tests / "tickets.jsonl").unlink()
    file = _file(tests / "test_support.py", _function("NAME, data=rows"))
    code, out, _ = lmeval("validate", tests)
    assert (0, [f"not checked: {file}:4: name and data of test_ticket: made by code"]) == (code, _but_last(out))


def test_a_task_name_is_taken_once_over_all_files(tests: Path, lmeval: Lmeval) -> None:
    first = _file(tests / "a/test_one.py", _function("'support'"), _function("'other'", "test_other"))
    second = _file(tests / "b/test_two.py", _function("'support'", "test_same"))
    code, out, _ = lmeval("validate", first, second)
    taken = f"{second}:4: duplicate_task name: the task name 'support' is taken by test_ticket, test_one.py:4"
    assert (1, [taken]) == (code, _but_last(out))


def test_a_file_that_is_no_python_is_a_finding(tests: Path, lmeval: Lmeval) -> None:
    (tests / "test_support.py").write_text("@eval_task('a'\ndef test_a(lm): ...\n")
    code, out, _ = lmeval("validate", tests)
    assert (1, True) == (code, "test_support.py:1: import_error _module: SyntaxError: '(' was never closed" in out)


@pytest.mark.parametrize(
    ("ini", "found"), [("", {"test_a.py", "b_test.py"}), ("python_files = check_*.py", {"check_c.py"})]
)
def test_below_a_folder_only_test_files_count(tests: Path, lmeval: Lmeval, ini: str, found: set[str]) -> None:
    (tests.parent / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (tests / "tickets.jsonl").unlink()
    for name in ("test_a.py", "b_test.py", "check_c.py", "helper.py"):
        _file(tests / name, _function(f"'{name}'"))
    (tests / "test_plain.py").write_text("def test_plain(): assert True\n")
    _, out, _ = lmeval("validate", tests, "--format=json")
    files: list[dict[str, Any]] = json.loads(out)["files"]
    assert found == {Path(file["path"]).name for file in files}


def test_data_of_functions_are_no_task_files(tests: Path, lmeval: Lmeval) -> None:
    _file(tests / "test_support.py", _function("'support', data='data/more.jsonl'"))
    (tests / "data").mkdir()
    (tests / "data/more.jsonl").write_text(ROWS)
    (tests / "tickets.jsonl").unlink()
    assert (0, "1 file(s): 2 valid record(s), 0 bad, 1 eval function(s)\n", "") == lmeval("validate", tests)


def _but_last(text: str) -> list[str]:
    return text.splitlines()[:-1]


def test_a_function_with_a_yield_is_a_finding_and_one_that_defines_such_a_function_is_not(tests: Path) -> None:
    (tests / "test_a.py").write_text(
        f"{HEAD}@eval_task('a')\nasync def test_a(lm):\n    yield\n\n"
        "@eval_task('b')\ndef test_b(lm):\n    def rows():\n        yield 1\n    assert list(rows())\n"
    )
    (error,) = check_file(tests / "test_a.py").errors
    assert ("a", 5) == (error.task_id, error.line_number)
    assert error.detail.startswith("test_a has a yield, so a call of it runs nothing")
