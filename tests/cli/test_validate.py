"""``lmeval validate``: its output, its exit code, and what it takes from the project's configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks, validate_file
from pytest_lmeval.cli import main
from pytest_lmeval.cli.ini import pytest_options
from pytest_lmeval.errors import BadTaskFile
from tests.cli.yaml_project import write_project

GOOD = {"id": "a", "prompt": "Say yes, please.", "targets": ["yes"], "metric": "exact_match"}


def _write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def _validate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main(["validate", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_good_files_give_0_and_bad_records_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = _write(tmp_path / "good.jsonl", GOOD)
    assert (0, "1 file(s): 1 valid record(s), 0 bad\n") == _validate(capsys, good)
    bad = _write(tmp_path / "bad.jsonl", {**GOOD, "targets": []})
    status, output = _validate(capsys, tmp_path)
    assert 1 == status
    fault, summary = output.splitlines()
    assert fault.startswith(f"{bad}:1: bad_type targets: expected a non-empty array")
    assert "2 file(s): 1 valid record(s), 1 bad" == summary


@pytest.mark.parametrize(
    ("config", "status", "fault"),
    [
        ("{which: last}", 0, ""),
        ("{which: first, tasks: {the-choice: {which: last}}}", 0, ""),
        ("", 1, "no value for which (first, last); give them with --lm-config FILE"),
        ("{which: middle}", 1, "which: 'middle' is not one of first, last"),
        ("[{wich: last}]", 1, "no parameter 'wich'; did you mean 'which'?"),
        ("{which: last, language: en}", 1, "c.yaml: no task has the parameter 'language'; they have which"),
        (
            "[{which: last, tasks: {the-choise: {which: last}}}]",
            1,
            "c.yaml: config 1: no task has the key 'the-choise'; did you mean 'the-choice'?",
        ),
        ("which: [", 2, "c.yaml:2: column 1: "),
        ("which", 2, "c.yaml: expected a mapping of parameters to values"),
    ],
)
def test_values_of_parameters_are_checked_with_the_tasks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    config: str,
    status: int,
    fault: str,
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    values = tmp_path / "c.yaml"
    values.write_text(f"{config}\n")
    code, output = _validate(capsys, tmp_path / "tasks", *(["--config", values] if config else []))
    assert (status, True) == (code, fault in output), output


def test_a_warning_is_printed_only_when_asked_for_and_changes_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = _write(tmp_path / "a.jsonl", {**GOOD, "extras": {"io_pair": 1}})
    assert (0, "1 file(s): 1 valid record(s), 0 bad\n") == _validate(capsys, task)
    status, output = _validate(capsys, "--lint", task)
    assert 0 == status
    warning, summary = output.splitlines()
    assert warning.startswith(f"{task}:1: warning misspelt_key: the key 'io_pair': did you mean 'io_pairs'?")
    assert "1 file(s): 1 valid record(s), 0 bad, 1 warning(s)" == summary
    assert 1 == _validate(capsys, "--lint", task, _write(tmp_path / "b.jsonl", {}))[0]


def test_machines_get_every_warning_and_people_the_first_twenty_of_a_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = _write(tmp_path / "a.jsonl", *({**GOOD, "id": str(number)} for number in range(30)))
    report = json.loads(_validate(capsys, "--lint", "--format=json", task)[1])
    assert [{"path": str(task), "valid": 30, "errors": []}] == report["files"]
    repeated = [warning for warning in report["warnings"] if warning["rule"] == "near_duplicate"]
    assert list(range(2, 31)) == [warning["line_number"] for warning in repeated]
    assert {"path", "line_number", "rule", "detail"} == repeated[0].keys()
    output = _validate(capsys, "--lint", task)[1]
    assert 20 == output.count("warning near_duplicate")
    assert f"{task}: and 9 more of near_duplicate (--format json has them all)" in output
    assert "warnings" not in json.loads(_validate(capsys, "--format=json", task)[1])


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "x.yaml",
            "definitoin: {}",
            "no task in the file; expected one of the keys definition, icl_tasks, mixture, harness; did",
        ),
        ("task_none.py", "x = 1\n", "no task in the file: expected a BaseTask class"),
        ("empty.jsonl", "# a comment\n", "no record in the file"),
    ],
)
def test_a_named_file_that_holds_no_task_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text)
    status, output = _validate(capsys, tmp_path / name)
    assert (1, True) == (status, problem in output)
    assert output.endswith("1 file(s): 0 valid record(s), 1 bad\n")
    assert 1 == len(validate_file(tmp_path / name)[1])
    with pytest.raises(BadTaskFile, match=r"no (task|record)"):
        load_tasks(tmp_path / name)


def test_a_folder_without_a_task_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = _write(tmp_path / "good" / "a.jsonl", GOOD)
    empty, foreign = tmp_path / "empty", tmp_path / "foreign"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "x.yaml").write_text("a: 1\n")
    status, output = _validate(capsys, good.parent, empty, foreign)
    kinds = "task files are *.jsonl, *.yaml and task_*.py"
    assert 1 == status
    assert [
        f"not a task: {foreign / 'x.yaml'} (no key definition, icl_tasks, mixture or harness)",
        f"no task found in {empty}: {kinds}",
        f"no task found in {foreign}: {kinds}",
        "1 file(s): 1 valid record(s), 0 bad",
    ] == output.splitlines()
    report = json.loads(_validate(capsys, "--format=json", empty, foreign)[1])
    assert [] == report["files"]
    assert [str(foreign / "x.yaml")] == [each["path"] for each in report["not_tasks"]]
    assert [str(empty), str(foreign)] == report["without_tasks"]


def test_beside_tasks_a_file_that_is_none_is_listed_and_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path / "a.jsonl", GOOD)
    (tmp_path / "x.yaml").write_text("definitoin: {}\n")
    (tmp_path / "rows.yaml").write_text("key: rows\nfile_path: rows.csv\n")
    status, output = _validate(capsys, tmp_path)
    reason = "no key definition, icl_tasks, mixture or harness; did you mean 'definition'?"
    left = f"not a task: {tmp_path / 'x.yaml'} ({reason})"
    assert (0, [left, "1 file(s): 1 valid record(s), 0 bad"]) == (status, output.splitlines())
    assert 0 == _validate(capsys, tmp_path / "a.jsonl", tmp_path / "rows.yaml")[0]


CONFIGURATIONS = [
    ("pytest.ini", "[pytest]\nlm_max_line_bytes = 50\n"),
    (".pytest.ini", "[pytest]\nlm_max_line_bytes = 50\n"),
    ("pytest.toml", "[pytest]\nlm_max_line_bytes = 50\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\nlm_max_line_bytes = 50\n"),
    ("pyproject.toml", '[tool.pytest]\nlm_max_line_bytes = "50"\n'),
    ("tox.ini", "[tox]\nenvlist = x\n[pytest]\nlm_max_line_bytes = 50\n"),
    ("setup.cfg", "[metadata]\nname = %x\n[tool:pytest]\nlm_max_line_bytes = 50\n"),
]


@pytest.mark.parametrize(("name", "content"), CONFIGURATIONS)
def test_the_limit_of_a_line_is_the_project_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    tmp_path.joinpath(name).write_text(content)
    task = _write(tmp_path / "tasks" / "en" / "a.jsonl", GOOD)
    status, output = _validate(capsys, task)
    assert 1 == status
    assert "at most 50 are read (ini lm_max_line_bytes)" in output


def test_the_file_that_pytest_would_take_decides(tmp_path: Path) -> None:
    """Checked against pytest itself, which is asked for its configuration file."""
    task = _write(tmp_path / "inner" / "tasks" / "a.jsonl", GOOD)
    files = {
        "setup.cfg": "[tool:pytest]\n",
        "inner/tox.ini": "[tox]\n",
        "inner/pyproject.toml": "[project]\nname = 'x'\n",
        "pyproject.toml": "[tool.pytest.ini_options]\nlm_max_line_bytes = 7\n",
        "inner/tox.ini ": "[pytest]\n",
        "inner/pyproject.toml ": "[tool.pytest.ini_options]\n",
        "inner/pytest.ini": "",
    }
    taken = []
    for name, content in files.items():
        tmp_path.joinpath(name.strip()).write_text(content)
        taken.append(pytest_options([task])[0])
    program = (
        "import sys\nfrom pathlib import Path\nfrom _pytest.config.findpaths import locate_config\n"
        "import json\nfiles = json.loads(sys.argv[3])\nroot = Path(sys.argv[1])\n"
        "for name in files: (root / name.strip()).unlink(missing_ok=True)\n"
        "for name, content in files.items():\n"
        "    (root / name.strip()).write_text(content)\n"
        "    print(locate_config(root, [Path(sys.argv[2])])[1])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(task), json.dumps(files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(path) for path in taken]
    assert tmp_path / "inner" / "pytest.ini" == taken[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[pytest]\nlm_max_line_bytes = many\n", "lm_max_line_bytes: expected a whole number >= 1, got 'many'"),
        ("[pytest]\nlm_max_line_bytes = 0\n", "expected a whole number >= 1, got '0'"),
        ("no section\n", "cannot be read"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    tmp_path.joinpath("pytest.ini").write_text(content)
    status, output = _validate(capsys, _write(tmp_path / "a.jsonl", GOOD))
    assert 2 == status
    assert f"lmeval validate: {tmp_path / 'pytest.ini'}: " in output
    assert message in output


def test_a_file_whose_extra_is_missing_is_named_and_the_others_are_checked(tmp_path: Path) -> None:
    # The metric runs in a process of its own: what is missing has to be missing there.
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    hiding.joinpath("jsonschema.py").write_text("raise ModuleNotFoundError('hidden')\n")
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    needy = _write(tasks / "a.jsonl", {**GOOD, "metric": "json_schema", "extras": {"json_schema": {}}})
    bad = _write(tasks / "b.jsonl", {**GOOD, "targets": []})
    _write(tasks / "c.jsonl", GOOD)

    done = subprocess.run(
        [sys.executable, "-m", "pytest_lmeval.cli", "validate", str(tasks)],
        env={**os.environ, "PYTHONPATH": str(hiding)},
        capture_output=True,
        text=True,
        check=False,
    )
    status, output = done.returncode, done.stdout

    missing, fault, summary = output.splitlines()
    assert 1 == status
    assert f"{needy}:1: bad_value metric: json_schema needs jsonschema: pip install 'pytest-lmeval[json]'" == missing
    assert fault.startswith(f"{bad}:1: bad_type targets: ")
    assert "3 file(s): 1 valid record(s), 2 bad" == summary
