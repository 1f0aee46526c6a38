"""The border to collection: other plugins that reorder, leave out and fail, and modules that cannot be collected."""

from __future__ import annotations

import json

import pytest

from tests.border.table import FRONTS, Border, Row, refused_run, run_of_its_own, since_baseline
from tests.conftest import BOTH, Project

EVAL = """
from pytest_lmeval import eval_task
@eval_task('{name}', data={data})
def test_{name}(row, lm): lm.score('s', 1.0)
"""
LINES = "".join(
    json.dumps({"id": f"e{n}", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}) + "\n" for n in range(4)
)
ALL_FRONTS = tuple(front for front in FRONTS if front != "junit")


def hook(body: str) -> dict[str, str]:
    return {"conftest.py": f"def pytest_collection_modifyitems(config, items):\n    {body}\n"}


def evals(data: str, name: str = "e") -> dict[str, str]:
    return {f"test_{name}.py": EVAL.format(name=name, data=data)}


def uncollected(kind: str, what: str, text: str, says: str = "test_bad.py could not be collected") -> Row:
    return run_of_its_own(
        kind,
        what,
        "--continue-on-collection-errors",
        fate="reported",
        code=3,
        files={"test_bad.py": text},
        says=says,
        on=ALL_FRONTS,
    )


def refused(kind: str, what: str, files: dict[str, str], says: str, code: int = 2) -> Row:
    return refused_run(kind, what, says, code=code, files=files)


BORDER = Border(
    name="collection",
    files={"tasks/t.jsonl": LINES, "test_plain.py": "def test_plain(): pass\n"},
    arguments=("tasks", ".", "--lm-adapter=model:Model"),
    rows=(
        Row(
            kind="out of order",
            what="a plugin that turns the order round",
            files=hook("items.reverse()"),
            example="t:e3",
            status="passed",
        ),
        uncollected("raising", "a module that cannot be imported", "import nosuch\n"),
        uncollected("wrong type", "a module that is no Python", "def f(:\n"),
        uncollected("cancelled", "a class that cannot be collected", "import nosuch.eval\ndef test_x(): pass\n"),
        refused(
            "absent", "data that exit", evals("lambda: __import__('sys').exit(0)"), "the function called sys.exit(0)"
        ),
        refused("empty", "data without rows", evals("[]"), "data: no rows"),
        refused(
            "late",
            "a loader that exits",
            {"conftest.py": "import sys\ndef pytest_lmeval_load_task(path): sys.exit(0)\n"},
            "loading the file called sys.exit(0)",
        ),
        refused(
            "late",
            "a hook that exits",
            {"conftest.py": "import sys\ndef pytest_lmeval_register(registry): sys.exit(0)\n"},
            "the hook pytest_lmeval_register called sys.exit(0)",
            4,
        ),
        refused("same name", "two tasks of one name", evals("[{}]", "t"), "the task name 't' is taken"),
        run_of_its_own(
            "twice",
            "a plugin that leaves all examples out",
            files=hook("items[:] = [each for each in items if 'plain' in each.name]"),
            says="1 passed",
            on=("terminal",),
        ),
        Row(
            kind="beside",
            what="a plain test keeps its outcome",
            says='classname="test_plain" name="test_plain"',
            on=("junit",),
        ),
        Row(
            kind="environment",
            what="a module that skips itself, as a package is not installed",
            files={
                "test_missing.py": "import pytest\npytest.skip('none_such is missing', allow_module_level=True)\n"
                f"{evals('[{}]', 'm')['test_m.py']}"
            },
            says="none_such is missing",
            on=("junit",),
        ),
        since_baseline(
            "changed unseen",
            "a plugin that leaves out an example of the baseline",
            "not compared: 1 not selected (1 passed before); compared: 3 of the baseline's 4 examples",
            {"conftest.py": ""},
            files=hook("items[:] = [each for each in items if 'e3' not in each.name]"),
        ),
        Row(
            kind="earlier run",
            what="a ledger below a folder that is collected",
            files={"reports/previous/ledger.jsonl": LINES, "reports/old.jsonl": LINES},
            example="t:e0",
            status="passed",
            unsaid="old:e0",
        ),
        Row(kind="kept client", never="nothing has been asked yet, so that no example has a client"),
        Row(
            kind="too large", never="how many tests there are is pytest's business; data: tests/border/test_data_set.py"
        ),
        Row(kind="not finite or negative", never="what is collected are names; numbers: the border of eval functions"),
        Row(
            kind="control characters",
            never="names are cleaned where they are made: tests/plugin/record/test_hostile_output.py",
        ),
        Row(kind="secret", never="nothing has been asked yet, and options are scrubbed where they are resolved"),
    ),
)


@pytest.mark.parametrize("processes", BOTH)
def test_beside_a_module_that_could_not_be_collected_no_baseline_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    project.small_tasks()
    project.write("test_bad.py", "import nosuch\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    options = ("--continue-on-collection-errors", "--lm-baseline=b.json", "--lm-update-baseline", processes)
    result = project.run("tasks", "test_bad.py", *options)
    assert 3 == result.ret
    board = project.board()
    assert (False, "incomplete") == (board["complete"], board["gate"]["verdict"])
    assert not (project.path / "b.json").exists()
    for name in ("reports/leaderboard.md", "summary.md"):
        text = (project.path / name).read_text()
        assert ("Evals passed" in text, "could not be collected" in text) == (False, True)


def test_a_gate_that_passes_says_that_the_run_fails_where_a_file_could_not_be_written(project: Project) -> None:
    project.small_tasks()
    project.write("reports/leaderboard.md/in_the_way", "")
    result = project.run("--lm-gate=tasks", "--lm-min-score=overall=0")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["gate tasks: PASS, but the run fails: a file could not be written"])
