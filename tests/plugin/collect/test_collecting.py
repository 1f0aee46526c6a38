"""Lines of task files are items: their ids, words, places, and which files are read at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

DUMP_ITEMS = """
import json

def pytest_collection_modifyitems(session, items):
    with open(session.config.rootpath / "items.json", "w") as file:
        json.dump([dump(item) for item in items], file)

def dump(item):
    path, line, name = item.reportinfo()
    return {
        "id": item.nodeid, "keywords": sorted(item.listextrakeywords()), "line": line, "path": str(path),
        "markers": [marker.name for marker in item.iter_markers()], "location": item.location,
    }
"""


def collected_ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


@pytest.fixture
def dumped(project: Project) -> Any:
    project.write("conftest.py", DUMP_ITEMS)

    def dump(*args: str) -> list[dict[str, Any]]:
        assert 0 == project.run("--collect-only", "-q", *args).ret
        items: list[dict[str, Any]] = json.loads((project.path / "items.json").read_text())
        return items

    return dump


def test_every_record_is_an_item_in_the_order_of_the_file(project: Project) -> None:
    project.small_tasks()
    expected = [
        "tasks/arithmetic.jsonl::arith_1",
        "tasks/arithmetic.jsonl::arith_2",
        "tasks/arithmetic.jsonl::arith_3",
        "tasks/words.jsonl::blue",
        "tasks/words.jsonl::red",
    ]
    assert expected == collected_ids(project.run("--collect-only", "-q"))
    assert [] == project.calls()


def test_an_item_knows_its_words_its_marker_and_its_line(project: Project, dumped: Any) -> None:
    first = json.dumps(project.spec("a", "1", metadata={"tags": ["easy", "carry over"]}))
    second = json.dumps(project.spec("b", "2", category="summary", metric_name="rouge_l"))
    project.write("tasks/sums.jsonl", f"# a comment\n\n{first}\n\n{second}\n")
    a, b = dumped()
    assert {"sums", "arithmetic", "exact_match", "easy", "carry over"} <= set(a["keywords"])
    assert {"sums", "summary", "rouge_l"} <= set(b["keywords"])
    assert [["easy", "lmeval"], ["lmeval"]] == [a["markers"], b["markers"]]
    assert [2, 4] == [a["line"], b["line"]]
    assert ["tasks/sums.jsonl", 4, "b"] == b["location"]
    assert str(project.path / "tasks/sums.jsonl") == a["path"]


def test_characters_that_pytest_uses_itself_are_replaced_and_ids_stay_unique(project: Project) -> None:
    ids = ["a[1]", "a(1)", "a 1", "a::b", "a/b", "é", "\t", "-", "x" * 300]
    project.task("tasks/odd.jsonl", *[project.record(id, f"word {number}") for number, id in enumerate(ids)])
    result = project.run("-v", "--lm-include-per-example")
    result.assert_outcomes(passed=len(ids))
    assert {f"odd:{id}" for id in ids} == project.examples().keys()
    names = [line.partition("::")[2].split()[0] for line in result.outlines if " PASSED " in line]
    assert len(ids) == len(set(names))
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-") for name in names)


def test_ids_default_to_the_line_number_and_an_integer_id_is_its_digits(project: Project) -> None:
    unnamed = {"prompt": "say: a", "targets": ["a"], "metric": "exact_match"}
    project.task("tasks/t.jsonl", unnamed, {**unnamed, "id": 7}, unnamed)
    expected = ["tasks/t.jsonl::ex-1", "tasks/t.jsonl::7", "tasks/t.jsonl::ex-3"]
    assert expected == collected_ids(project.run("--collect-only", "-q"))


def test_a_byte_order_mark_windows_line_ends_and_odd_separators_in_strings_are_read(project: Project) -> None:
    lines = [json.dumps(project.record(f"r{n}", f"one\u2028two\u0085{n}"), ensure_ascii=False) for n in range(2)]
    project.write("tasks/t.jsonl", b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    project.run().assert_outcomes(passed=2)


def test_a_task_is_named_by_its_path_below_the_task_folder(project: Project) -> None:
    for language in ("en", "fr"):
        project.task(f"tasks/{language}/qa.jsonl", project.record("a", language))
    project.run().assert_outcomes(passed=2)
    assert ["en/qa", "fr/qa"] == [row["task"] for row in project.board()["tasks"]]


def test_two_tasks_of_one_name_are_a_collection_error(project: Project) -> None:
    for folder in ("old", "new"):
        project.task(f"{folder}/qa.jsonl", project.record("a", "x"))
    result = project.run("-o", "lm_task_paths=old new", "old", "new")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*'qa'*old/qa.jsonl*"])
    assert [] == project.calls()


def test_task_folders_come_from_the_ini_file(project: Project) -> None:
    project.task("evals/a.jsonl", project.record("a", "x"))
    project.task("tasks/b.jsonl", project.record("b", "x"))
    project.write("pytest.ini", "[pytest]\nlm_task_paths = evals\nlm_adapter = model:Model\n")
    project.run_pytest().assert_outcomes(passed=1)
    assert ["a"] == [row["task"] for row in project.board()["tasks"]]


def test_a_file_that_is_named_is_read_wherever_it_is(project: Project) -> None:
    file = project.task("elsewhere/deep/t.jsonl", project.record("a", "x"))
    project.run("elsewhere/deep/t.jsonl").assert_outcomes(passed=1)
    project.run(f"{file}::a").assert_outcomes(passed=1)


def test_a_file_that_is_named_beside_its_folder_is_read_once(project: Project) -> None:
    """From version 9 pytest forgets it: it was read only where its folder alone has it read."""
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.task("root.jsonl", project.record("a", "x"), project.record("b", "x"))
    project.run(".", "root.jsonl", "tasks/t.jsonl").assert_outcomes(passed=3)
    assert ["root", "t"] == [row["task"] for row in project.board()["tasks"]]


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 8 refuses the file itself")
@pytest.mark.again
def test_a_file_that_is_no_task_is_said_to_be_none_where_its_folder_is_named_beside_it(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.write("tasks/rows.csv", "a,b\n")
    named = project.run("tasks", "tasks/rows.csv")
    named.stdout.fnmatch_lines(["not a task: tasks/rows.csv (expected one of .jsonl, .py, .yaml; *"])
    named.assert_outcomes(passed=1)
    assert "rows.csv" not in project.run("tasks").stdout.str()


def test_conversations_are_tasks_in_any_folder_that_is_named(project: Project) -> None:
    turns = [{"user": "say: x", "targets": ["x"]}]
    project.task("elsewhere/t.jsonl", {"id": "a", "turns": turns})
    project.write("elsewhere/foreign.jsonl", '{"messages": []}\n')
    # Neither are they rows of a task in Python that names the folder.
    project.write("elsewhere/task_x.py", "DATASET_PATH = '.'\n")
    project.run("elsewhere").assert_outcomes(passed=1)
    project.task("elsewhere/t.jsonl", {"id": "a", "turns": [{"usr": "say: x"}]})
    result = project.run("elsewhere")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["elsewhere/t.jsonl:1: unknown_field turns?0?.usr: *"])


def test_a_file_that_begins_with_its_defaults_is_a_task_in_any_folder_that_is_named(project: Project) -> None:
    defaults = {"defaults": {"metric": "exact_match", "prompt": "say: {{ word }}"}}
    project.task("elsewhere/t.jsonl", defaults, {"id": "a", "word": "x", "targets": ["x"]})
    project.run("elsewhere", "elsewhere/t.jsonl").assert_outcomes(passed=1)


def test_recorded_outputs_are_no_tasks(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.task("tasks/t.replay.jsonl", {"id": "a", "output": "x"})
    project.run().assert_outcomes(passed=1)


def test_listing_needs_no_adapter_and_leaves_no_report(project: Project) -> None:
    project.small_tasks()
    result = project.run_pytest("--collect-only", "-q", "tasks")
    assert 0 == result.ret
    assert 5 == len(collected_ids(result))
    assert not Path(project.path, "reports").exists()


def test_the_header_says_which_model_is_asked(project: Project) -> None:
    project.small_tasks()
    project.run("--collect-only").stdout.fnmatch_lines(["lmeval: adapter model:Model*reports reports*"])


WATCHED = """
import gc

def note(*words):
    with open("noted.txt", "a") as file:
        print(*words, file=file)

def pytest_lmeval_load_task(path):
    note("in", path.name, gc.isenabled())

def pytest_collectreport(report):
    if report.nodeid.endswith(".jsonl"):
        note("after", report.nodeid.rpartition("/")[2], gc.isenabled())
"""


@pytest.mark.parametrize("before", [True, False])
def test_garbage_is_collected_after_a_task_file_as_before_it(project: Project, before: bool) -> None:
    project.write("conftest.py", WATCHED + ("" if before else "\ngc.disable()\n"))
    project.task("tasks/bad.jsonl", {"id": 1, "prompt": "x"})
    project.task("tasks/good.jsonl", project.record("a", "x"))
    project.run("--collect-only")
    files = ("bad.jsonl", "good.jsonl")
    expected = [line for file in files for line in (f"in {file} False", f"after {file} {before}")]
    assert expected == (project.path / "noted.txt").read_text().splitlines()


PLACED = """
import pytest

def pytest_collection_finish(session):
    for item in session.items:
        print("PLACE", item.location == pytest.Item.location.func(item), *item.location)
"""


def test_the_place_of_an_item_is_what_pytest_makes_of_it(project: Project) -> None:
    project.write("outside/away.jsonl", json.dumps(project.record("far", "x")))
    project.write("inner/conftest.py", PLACED)
    project.write("inner/pytest.ini", "[pytest]\n")
    project.task("inner/tasks/t.jsonl", project.record("a", "x"), project.record("b", "x"))
    result = project.run("--collect-only", "-s", "-cinner/pytest.ini", "inner", "outside/away.jsonl")
    places = ["tasks/t.jsonl 0 a", "tasks/t.jsonl 1 b", "../outside/away.jsonl 0 far"]
    assert [f"PLACE True {place}" for place in places] == [line for line in result.outlines if line.startswith("PLACE")]


HEARD = """
def pytest_runtest_setup(item):
    with open("heard.txt", "a") as file:
        print("{name}", item.nodeid, file=file)
"""


def test_hooks_of_a_folder_hear_of_its_own_examples_alone(project: Project) -> None:
    for name in ("one", "two"):
        project.write(f"tasks/{name}/conftest.py", HEARD.replace("{name}", name))
        for file in ("s", "t"):
            project.task(f"tasks/{name}/{file}.jsonl", project.record("a", "x"), project.record("b", "x"))
    project.run().assert_outcomes(passed=8)
    ids = [f"tasks/{name}/{file}.jsonl::{id}" for name in ("one", "two") for file in "st" for id in "ab"]
    assert [f"{id.split('/')[1]} {id}" for id in ids] == (project.path / "heard.txt").read_text().splitlines()


FOREIGN = """
import pytest

class Item(pytest.Item):
    example = "not ours"

    def runtest(self):
        pass

class File(pytest.File):
    def collect(self):
        yield Item.from_parent(self, name="foreign")

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".rst":
        return File.from_parent(parent, path=file_path)
"""


def test_items_of_others_with_an_example_of_their_own_run_beside_ours(project: Project) -> None:
    project.write("conftest.py", FOREIGN)
    project.write("guide.rst", "")
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run()
    result.assert_outcomes(passed=2)
    assert 0 == result.ret
    assert 1 == project.board()["counts"]["collected"]
