"""Tags of examples are marks: ``-m`` chooses by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.yaml_tasks import single_turn

if TYPE_CHECKING:
    from tests.conftest import Project

SCORER = '- {type: string_equals, ground_truth: "{{ sample.a }}"}\n'
YAML = single_turn("y", SCORER, "say: {{ sample.a }}", "tags: [hard]\n")


def _tagged(project: Project, *tags: Any) -> None:
    project.task(
        "tasks/t.jsonl", {**project.record("a", "x"), "extras": {"tags": list(tags)}}, project.record("b", "x")
    )


@pytest.fixture
def three(project: Project) -> Project:
    _tagged(project, "hard", "multi-hop", "two words", 3)
    project.task("tasks/s.jsonl", project.spec("c", "x", metadata={"tags": ["hard"]}))
    project.write("tasks/y.yaml", YAML)
    project.write("tasks/rows.csv", "a\nx\n")
    return project


@pytest.mark.parametrize(
    ("chosen", "passed"), [(["-m", "hard"], 3), (["-m", "multi-hop"], 1), (["-m", "not hard"], 1), (["-k", "words"], 1)]
)
def test_tags_of_every_format_choose_examples(three: Project, chosen: list[str], passed: int) -> None:
    three.run("--strict-markers", *chosen).assert_outcomes(passed=passed, deselected=4 - passed)


def test_tags_choose_examples_in_workers(three: Project) -> None:
    three.run("--strict-markers", "-m", "hard", "-n2").assert_outcomes(passed=3)


def test_a_tag_never_acts_as_the_mark_of_a_plugin(project: Project) -> None:
    tags = ["skip", "xfail", "own", "usefixtures", "parametrize", "and", "_x", "lmeval"]
    conftest = """
import pytest
def pytest_configure(config):
    config.addinivalue_line("markers", "own(reason): skips")
def pytest_runtest_setup(item):
    if item.get_closest_marker("own"):
        pytest.skip("own")
"""
    project.write("conftest.py", conftest)
    records = [{**project.record(tag, "x"), "extras": {"tags": [tag]}} for tag in tags]
    project.task("tasks/t.jsonl", *records, project.record("untagged", "x"))
    project.run().assert_outcomes(passed=len(tags) + 1)


def test_a_tag_that_the_ini_file_has_as_a_mark_is_that_mark(project: Project) -> None:
    ini = (project.path / "pytest.ini").read_text()
    project.write("pytest.ini", f"{ini}markers =\n    slow: takes long\n")
    _tagged(project, "slow")
    project.run("--strict-markers", "-m", "slow").assert_outcomes(passed=1, deselected=1)
