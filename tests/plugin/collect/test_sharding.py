"""``--lm-shard``: parts that are disjoint, whole together, and say which they are."""

from __future__ import annotations

import pytest

from tests import needs
from tests.conftest import BOTH, NEEDLESS, Project

SPLITTER = """
import pytest
class Splitter:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        yield
        items[:] = [item for item in items if not item.name.endswith("a3")]
def pytest_configure(config): config.pluginmanager.register(Splitter())
"""


@pytest.fixture
def wide(project: Project) -> Project:
    project.task("tasks/a.jsonl", *[project.record(f"a{n}", "x") for n in range(7)])
    project.task("tasks/b.jsonl", *[project.record(f"b{n}", "x") for n in range(4)])
    return project


def ran(project: Project, *args: str) -> set[str]:
    project.run(*args, "--lm-include-per-example")
    return set(project.examples())


def test_the_shards_of_a_run_share_no_example_and_lack_none(wide: Project) -> None:
    parts = [ran(wide, f"--lm-shard={part}/3") for part in (1, 2, 3)]
    assert [4, 4, 3] == [len(part) for part in parts]
    assert ran(wide) == set.union(*parts)
    assert {"a:a0", "a:a3", "a:a6", "b:b2"} == parts[0]


def test_a_shard_has_no_overall_score_and_says_which_it_is(wide: Project) -> None:
    result = wide.run("--lm-shard=2/3", "-n2")
    assert 0 == result.ret
    board = wide.board()
    assert (True, None, "2/3") == (board["complete"], board["overall_score"], board["selection"]["shard"])


def test_the_shards_are_taken_of_what_was_selected_before(wide: Project) -> None:
    parts = [ran(wide, f"--lm-shard={part}/2", "-k", "b", "--deselect=tasks/b.jsonl::b1") for part in (1, 2)]
    assert [{"b:b0", "b:b3"}, {"b:b2"}] == parts


def test_the_shards_of_runs_that_pytest_randomly_orders_differently_are_a_partition(wide: Project) -> None:
    needs.installed("pytest_randomly")
    without = [f"-pno:{name}" for name in NEEDLESS if name != "randomly"]
    parts = []
    for part in (1, 2, 3):
        options = (f"--randomly-seed={part}", f"--lm-shard={part}/3", f"--lm-report-dir=s{part}")
        done = wide.pytester.runpytest_subprocess(
            *without, "--lm-adapter=model:Model", "--lm-include-per-example", *options
        )
        assert 0 == done.ret
        parts.append(set(wide.examples(f"s{part}")))
        manifest = wide.board(f"s{part}")["manifest"]
        assert 11 == manifest["shard_of"]["examples"]
    assert [4, 4, 3] == [len(part) for part in parts]
    assert 11 == len(set.union(*parts))
    assert 0 == wide.lmeval("merge", *[f"s{part}/ledger.jsonl" for part in (1, 2, 3)], "-o", "whole").ret
    assert "shard_of" not in wide.board("whole")["manifest"]


def test_a_shard_that_passes_says_that_merge_decides(wide: Project) -> None:
    result = wide.run("--lm-shard=2/3")
    says = "shard 2/3 only: lmeval merge of all shards gives the verdict"
    result.stdout.fnmatch_lines([f"*{says}*"])
    assert [says] == wide.board()["gate"]["reasons"]
    assert says in (wide.path / "reports/leaderboard.md").read_text()
    assert says in (wide.path / "reports/report.html").read_text()


def test_merge_names_what_no_shard_has_because_a_plugin_left_it_out(wide: Project) -> None:
    wide.write("conftest.py", SPLITTER)
    for part in (1, 2):
        wide.run(f"--lm-shard={part}/2", f"--lm-report-dir=s{part}")
    done = wide.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "whole")
    assert 2 == done.ret
    done.stderr.fnmatch_lines(["*no shard has 1 example (a3 of a), of 11 that were selected*"])


def test_merge_refuses_shards_of_examples_whose_ids_are_not_stable(project: Project) -> None:
    project.write(
        "test_e.py",
        "import uuid\n"
        "from pytest_lmeval import eval_task\n"
        "@eval_task('e', data=[{'id': uuid.uuid4().hex} for _ in range(4)])\n"
        "def test_e(row, lm): lm.score('s', 1.0)\n",
    )
    for part in (1, 2):
        project.run("test_e.py", f"--lm-shard={part}/2", f"--lm-report-dir=s{part}")
    done = project.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "whole")
    assert 2 == done.ret
    done.stderr.fnmatch_lines(["*task e: the shards were not dealt from the same examples: 4 examples (*only in s1*"])


@pytest.mark.parametrize("processes", BOTH)
def test_ids_that_do_not_name_an_example_cannot_be_sharded(project: Project, processes: str) -> None:
    project.write(
        "test_e.py",
        "from pytest_lmeval import eval_task\n"
        "@eval_task('e', data=[{'id': f'{object()}'}])\n"
        "def test_e(row, lm): lm.score('s', 1.0)\n",
    )
    done = project.run("test_e.py", "--lm-shard=1/2", processes)
    assert 4 == done.ret
    refused = "--lm-shard: the id '<object object at 0x"
    # Of two workers whose objects have two addresses, the controller may hear of two ids before it hears that.
    other = "collected other items than the other workers: item 0 is test_e.py::test_e[-object-object-at-0x"
    said = done.stderr.str()
    assert (refused in said and "contains a memory address" in said) or (processes == "-n2" and other in said)


def test_plain_tests_are_in_every_shard(wide: Project) -> None:
    wide.write("test_plain.py", "def test_it(): pass\n")
    wide.run("--lm-shard=1/3", ".").assert_outcomes(passed=5, deselected=7)


def test_more_shards_than_examples_leave_some_empty(project: Project) -> None:
    project.task("tasks/a.jsonl", project.record("a", "x"))
    assert 5 == project.run("--lm-shard=2/2").ret
