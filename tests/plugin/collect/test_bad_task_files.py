"""A bad task file stops the run before the model is asked, and says what is wrong with every record."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.conftest import MODEL, NEEDLESS, PYTEST_INI, MadeOnce, RunModule

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

GOOD = b'{"id": "good", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'

BAD_FILES = {
    "empty": (b"", ["t.jsonl:1", "no record"]),
    "blank": (b"\n\n# only a comment\n", ["t.jsonl:1", "no record"]),
    "binary": (bytes(range(256)) * 4, ["t.jsonl:1: bad_json"]),
    "utf-16": (GOOD.decode().encode("utf-16"), ["t.jsonl:1: bad_json", "UTF-8"]),
    "latin-1": (GOOD.replace(b"x", b"\xe9"), ["t.jsonl:1: bad_json", "UTF-8"]),
    "a 50 MB line": (GOOD + b'{"id": "LONG"}\n', ["t.jsonl:2: bad_json", "50,000,0"]),
    "a duplicate id": (GOOD + b"\n" + GOOD, ["t.jsonl:3: duplicate_task_id", "'good'", "line 1"]),
    "an array": (GOOD + b"[1, 2]\n", ["t.jsonl:2: bad_type _root"]),
    "half a line": (GOOD + GOOD[:30], ["t.jsonl:2: bad_json"]),
    "NaN": (GOOD.replace(b'"good"', b"NaN"), ["t.jsonl:1: bad_json", "NaN"]),
    "a lone surrogate": (GOOD.replace(b"say: x", b"\\ud800"), ["t.jsonl:1: bad_json", "surrogate"]),
    "a duplicate key": (GOOD.replace(b'"targets"', b'"prompt"'), ["t.jsonl:1: bad_json", "duplicate key 'prompt'"]),
    "two dialects": (GOOD + b'{"task_id": "a"}\n', ["t.jsonl:2:"]),
    "too deep": (GOOD + b'{"id": ' + b"[" * 5000 + b"]" * 5000 + b"}\n", ["t.jsonl:2: bad_json", "100"]),
}


def content_of(kind: str) -> bytes:
    return BAD_FILES[kind][0].replace(b"LONG", b"x" * 50_000_000)


@pytest.fixture(scope="module")
def told(made_once: MadeOnce, run_module: RunModule) -> str:
    """Provide what a run of all bad files and a good one says."""
    return (made_once("bad-task-files", partial(run_bad_files, run_module)) / "told.txt").read_text("utf-8")


def run_bad_files(run_module: RunModule, folder: Path) -> None:
    (folder / "tasks").mkdir()
    (folder / "pytest.ini").write_text(PYTEST_INI)
    (folder / "model.py").write_text(MODEL)
    (folder / "tasks/fine.jsonl").write_bytes(GOOD)
    for kind in BAD_FILES:
        (folder / f"tasks/{kind}.jsonl").write_bytes(content_of(kind))
    quick = [f"-pno:{name}" for name in NEEDLESS]
    result = run_module(folder, "pytest", *quick, "--lm-adapter=model:Model")
    assert 2 == result.returncode
    assert "Traceback" not in result.stdout
    assert not (folder / "calls.txt").exists()
    (folder / "told.txt").write_text(result.stdout, "utf-8")


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_named_with_line_rule_and_reason(told: str, kind: str) -> None:
    _, wanted = BAD_FILES[kind]
    lines = [line for line in told.splitlines() if f"tasks/{kind}.jsonl:" in line]
    text = "\n".join(lines).replace(f"tasks/{kind}.jsonl:", "tasks/t.jsonl:")
    assert [] == [word for word in wanted if word not in text]
    assert len(text) < 5_000


BAD_RECORDS = [
    {"task_id": "a"},
    {"task_id": "b", "category": "poetry"},
    {"task_id": "no spaces", "category": "arithmetic"},
]


def write_bad_records(project: Project) -> None:
    full = {"category": "mcq", "prompt": "p", "targets": ["B"], "metric_name": "f1", "post_process": "none"}
    project.task("tasks/t.jsonl", project.spec("good", "x"), {"task_id": "a"}, {"task_id": "b", **full})
    project.task("tasks/u.jsonl", {**project.record("c", "x"), "targets": []}, project.record("d", "x"))


NAMED = ["tasks/t.jsonl:2: missing_required", "tasks/t.jsonl:3: illegal_pair", "tasks/u.jsonl:1: bad_type targets"]


@pytest.mark.parametrize("options", ["", "--continue-on-collection-errors", "-n2 --continue-on-collection-errors"])
def test_every_bad_record_of_every_file_is_named_before_any_model_call(project: Project, options: str) -> None:
    write_bad_records(project)
    project.write("reports/leaderboard.json", "{}")
    result = project.run(*options.split())
    assert 2 == result.ret
    text = result.stdout.str()
    assert [] == [place for place in NAMED if place not in text]
    assert [] == project.calls()
    assert "{}" == (project.path / "reports/leaderboard.json").read_text()
    assert "passed" not in text


def test_bad_records_are_exit_code_2_where_the_first_failure_stops_the_run(project: Project) -> None:
    write_bad_records(project)
    result = project.run("-x")
    assert 2 == result.ret
    result.stdout.fnmatch_lines([f"*{NAMED[0]}*"])
    assert [] == project.calls()


@pytest.mark.parametrize("options", ["--lm-allow-bad-tasks", "--allow-bad-tasks -n2"])
def test_bad_records_may_be_left_out_and_are_still_told(project: Project, options: str) -> None:
    write_bad_records(project)
    result = project.run(*options.split(), "-W", "default")
    assert 0 == result.ret
    board = project.board()
    assert (2, 2) == (board["counts"]["collected"], board["counts"]["scored"])
    listed = json.dumps(board["bad_records"])
    assert 3 == len(board["bad_records"])
    assert [] == [place for place in NAMED if place not in listed]
    text = result.stdout.str()
    assert [] == [place for place in NAMED if place not in text]
    assert "skipped" in text


def test_allowed_bad_records_warn(project: Project) -> None:
    write_bad_records(project)
    result = project.run("--lm-allow-bad-tasks", "-W", "default")
    result.stdout.fnmatch_lines(["*warnings summary*", "*2 bad record(s) skipped*"])


def test_a_file_of_bad_records_alone_is_refused_even_where_bad_records_are_allowed(project: Project) -> None:
    project.task("tasks/t.jsonl", *BAD_RECORDS)
    project.task("tasks/u.jsonl", project.record("d", "x"))
    result = project.run("--lm-allow-bad-tasks", "-W", "default")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*tasks/t.jsonl:1: missing_required*"])
    assert [] == project.calls()


def test_no_example_of_a_bad_file_can_be_asked_for_by_its_node_id(project: Project) -> None:
    write_bad_records(project)
    result = project.run("tasks/t.jsonl::good")
    # To pytest an id of a file that could not be collected is a usage error.
    assert 4 == result.ret
    result.stdout.fnmatch_lines([f"*{NAMED[0]}*"])
    assert [] == project.calls()


def test_a_file_that_cannot_be_read_is_named(project: Project) -> None:
    (project.path / "tasks").mkdir()
    (project.path / "tasks/t.jsonl").symlink_to("/proc/self/mem")
    result = project.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*tasks/t.jsonl*cannot be read*"])


def test_a_folder_that_looks_like_a_task_file_harms_nothing(project: Project) -> None:
    project.task("tasks/odd.jsonl/inner.jsonl", project.record("a", "x"))
    project.run().assert_outcomes(passed=1)


def test_a_bad_record_in_a_listing_is_told_too(project: Project) -> None:
    write_bad_records(project)
    result = project.run_pytest("--collect-only", "-q", "tasks")
    assert 2 == result.ret
    assert [] == [place for place in NAMED if place not in result.stdout.str()]


def test_the_longest_line_is_the_users_to_choose(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run("-o", "lm_max_line_bytes=20")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*tasks/t.jsonl:1: bad_json _line*at most 20*"])
