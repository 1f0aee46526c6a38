"""``--lm-shard``: parts that are disjoint, whole together, and say which they are."""

from __future__ import annotations

import pytest

from tests.conftest import Project


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


def test_an_order_drawn_at_random_leaves_the_shards_as_they_are(wide: Project) -> None:
    wide.write("conftest.py", "import random\ndef pytest_collection_modifyitems(items): random.shuffle(items)\n")
    assert ran(wide) == ran(wide, "--lm-shard=1/2") | ran(wide, "--lm-shard=2/2")
    assert 6 == len(ran(wide, "--lm-shard=1/2"))


def test_plain_tests_are_in_every_shard(wide: Project) -> None:
    wide.write("test_plain.py", "def test_it(): pass\n")
    wide.run("--lm-shard=1/3", ".").assert_outcomes(passed=5, deselected=7)


def test_more_shards_than_examples_leave_some_empty(project: Project) -> None:
    project.task("tasks/a.jsonl", project.record("a", "x"))
    assert 5 == project.run("--lm-shard=2/2").ret
