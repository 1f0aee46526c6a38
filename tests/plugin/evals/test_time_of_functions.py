"""What costs time in eval functions: def functions one at a time, and fixtures that each example has for itself."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Project

TMP = """
import asyncio, pathlib
from pytest_lmeval import eval_task

running = most = 0

@eval_task(data=[{"id": f"r{number}"} for number in range(12)], repeats=2)
async def test_folders(row, lm, tmp_path):
    global running, most
    running += 1
    most = max(most, running)
    assert tmp_path.is_dir()
    mine = tmp_path / "mine"
    # Repeats share what their example has; examples do not.
    assert mine.exists() == bool(lm.trace or mine.exists())
    mine.write_text(mine.read_text() + row["id"] if mine.exists() else row["id"])
    await asyncio.sleep(0.05)
    assert set(mine.read_text().split("r")[1:]) == {row["id"][1:]}
    lm.note("folder", str(tmp_path))
    running -= 1
    lm.score("ok", row["id"] != "r3")

def test_at_once():
    assert most > 2
"""
ALONE = """
import threading, time
from pytest_lmeval import eval_task

ROWS = [{"id": number} for number in range(4)]

@eval_task("alone", data=ROWS)
def test_alone(row, lm):
    time.sleep(0.3)
    lm.note("thread", threading.current_thread().name)
    lm.score("ok", 1)

@eval_task("quick", data=ROWS)
def test_quick(row, lm):
    lm.score("ok", 1)

@eval_task("asked for", data=ROWS, threads=False)
def test_asked_for(row, lm):
    time.sleep(0.3)
    lm.note("thread", threading.current_thread().name)
    lm.score("ok", 1)
"""


def scored(project: Project, *options: str) -> tuple[int, str]:
    result = project.run("tests", "--lm-adapter=none", "--lm-include-per-example", *options)
    return int(result.ret), result.stdout.str() + result.stderr.str()


def threads_of(project: Project, task: str) -> set[str]:
    return {
        each["details"]["notes"]["thread"] for name, each in project.examples().items() if name.startswith(f"{task}:")
    }


def test_a_temporary_folder_is_made_for_each_example_and_lets_others_run_beside(project: Project) -> None:
    project.write("tests/test_tmp.py", TMP)
    code, output = scored(project, "-olm_threads=false")
    assert (1, 11) == (code, project.board()["tasks"][0]["correct"]), output
    assert "one at a time" not in output
    notes = [repeat["notes"] for each in project.examples().values() for repeat in each["details"]["repeats"]]
    assert 12 == len({each["folder"] for each in notes})
    assert all(re.search(r"/test_folders_r\d+_?\d+$", each["folder"]) for each in notes)


def test_folders_of_examples_that_passed_are_removed_where_pytest_would(project: Project) -> None:
    project.write("tests/test_tmp.py", TMP)
    scored(project, "-otmp_path_retention_policy=failed", "--basetemp=temporary")
    left = [path.name for path in (project.path / "temporary").iterdir() if path.name.startswith("test_folders")]
    assert ["test_folders_r3_0"] == [name for name in left if not name.endswith("current")]


@pytest.mark.again
def test_a_fixture_of_the_project_s_own_called_tmp_path_is_left_to_pytest(project: Project) -> None:
    project.write(
        "tests/conftest.py", "import pytest\n\n@pytest.fixture\ndef tmp_path(tmp_path):\n    return tmp_path\n"
    )
    project.write("tests/test_tmp.py", TMP.partition("def test_at_once")[0])
    _, output = scored(project)
    assert re.search(
        r"folders: \d+ examples ran one at a time: fixture tmp_path \(conftest.py:\d\) is function", output
    )


def test_the_end_of_a_run_says_what_def_functions_cost_and_threads_of_the_ini_file_end_that(project: Project) -> None:
    project.write("tests/test_alone.py", ALONE)
    code, output = scored(project)
    assert 0 == code
    said = r"alone: 4 examples of a def function ran one at a time \(1\.\d s\); threads=True runs 16 at once"
    assert re.search(said, output)
    assert "quick: 4 examples" not in output
    assert "asked for: 4 examples" not in output
    assert {"MainThread"} == threads_of(project, "alone")
    code, output = scored(project, "-olm_threads=true")
    assert (0, False) == (code, "one at a time" in output)
    assert ({"lmeval-function"}, {"MainThread"}) == (threads_of(project, "alone"), threads_of(project, "asked for"))


def test_threads_that_are_neither_true_nor_false_are_a_usage_error(project: Project) -> None:
    project.write("tests/test_alone.py", ALONE)
    code, output = scored(project, "-olm_threads=sometimes")
    assert (4, True) == (code, "ini lm_threads: expected true or false" in output)
