"""Whatever picks, orders or stops plain tests does the same to examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import needs
from tests.conftest import BOTH, NEEDLESS

if TYPE_CHECKING:
    from tests.conftest import Project

PLAIN = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_plain(n):
    assert n != 1
"""


def ran(project: Project, folder: str = "reports") -> list[str]:
    """Return what the board of the last run has results for."""
    return sorted(project.examples(folder))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-k", "arith"], ["arithmetic:arith_1", "arithmetic:arith_2", "arithmetic:arith_3"]),
        (["-k", "blue or arith_1"], ["arithmetic:arith_1", "words:blue"]),
        (["-m", "lmeval", "-k", "not exact_match or words"], ["words:blue", "words:red"]),
        (["tasks/words.jsonl::red", "tasks/arithmetic.jsonl::arith_3"], ["arithmetic:arith_3", "words:red"]),
        (["--deselect", "tasks/arithmetic.jsonl", "--deselect", "tasks/words.jsonl::red"], ["words:blue"]),
        (["--ignore", "tasks/arithmetic.jsonl"], ["words:blue", "words:red"]),
    ],
    ids=["keyword", "keywords", "mark", "node-ids", "deselect", "ignore"],
)
def test_a_selection_leaves_the_rest_out_of_board_and_model(
    small: Project, options: list[str], expected: list[str]
) -> None:
    small.run("--lm-include-per-example", *options)
    assert expected == ran(small)
    assert len(expected) == sum(map(len, small.calls()))
    board = small.board()
    assert board["complete"]
    if not options[0].startswith(("tasks", "--ignore")):
        assert "selection" in board


def test_what_is_left_out_is_told_under_selection(small: Project) -> None:
    small.run("-k", "arith_1 or words").assert_outcomes(passed=3)
    assert small.board()["complete"]
    selection = small.board()["selection"]
    assert "arith_1 or words" == selection["keyword"]
    assert {"available": 3, "selected": 1} == selection["tasks"]["arithmetic"]
    small.run()
    assert "selection" not in small.board()


@pytest.mark.parametrize("processes", BOTH)
def test_last_failed_runs_the_failed_example_again(small: Project, processes: str) -> None:
    assert 1 == small.run(processes).ret
    result = small.run("--lf", "--lm-include-per-example", processes)
    result.assert_outcomes(failed=1)
    assert ["arithmetic:arith_2"] == ran(small, "reports/selection")


def test_failed_first_starts_with_the_failed_example(small: Project) -> None:
    small.run()
    assert 1 == small.run("--ff", "-x").ret
    assert 1 == small.board()["counts"]["scored"]


def test_stepwise_goes_on_where_it_stopped(small: Project) -> None:
    small.run("--sw", "--lm-include-per-example").assert_outcomes(passed=1, failed=1)
    assert ["arithmetic:arith_1", "arithmetic:arith_2"] == ran(small)
    repaired = [small.spec("arith_1", "4"), small.spec("arith_2", "4"), small.spec("arith_3", "6")]
    small.task("tasks/arithmetic.jsonl", *repaired)
    small.run("--sw", "--lm-include-per-example").assert_outcomes(passed=4, deselected=1)
    assert ["arithmetic:arith_2", "arithmetic:arith_3", "words:blue", "words:red"] == ran(small, "reports/selection")


@pytest.mark.parametrize("processes", ["-n0", pytest.param("-n2", marks=[pytest.mark.command_line, pytest.mark.again])])
def test_examples_and_plain_tests_run_together(small: Project, processes: str) -> None:
    small.write("test_plain.py", PLAIN)
    result = small.run(processes)
    assert 1 == result.ret
    result.assert_outcomes(passed=6, failed=2)
    assert 5 == small.board()["counts"]["scored"]


def test_the_board_is_of_the_examples_alone_where_only_plain_tests_fail(small: Project) -> None:
    small.write("test_plain.py", PLAIN)
    result = small.run("-k", "not arith_2", "-m", "lmeval or not lmeval")
    assert 1 == result.ret
    assert "pass" == small.board()["gate"]["verdict"]


@pytest.mark.parametrize("processes", BOTH)
def test_a_random_order_gives_the_same_board(small: Project, processes: str) -> None:
    needs.module("pytest_randomly")
    small.run("--lm-report-dir=ordered", "--lm-include-per-example")
    needless = [f"-pno:{name}" for name in NEEDLESS if name != "randomly"]
    args = ["--lm-adapter=model:Model", "--lm-report-dir=shuffled", "--lm-include-per-example", processes, *needless]
    small.pytester.runpytest_subprocess(*args, "-p", "randomly", "-p", "no:cacheprovider", timeout=60)
    assert ran(small, "ordered") == ran(small, "shuffled")
    assert small.board("ordered")["digest"] == small.board("shuffled")["digest"]
    assert small.board("shuffled")["complete"]


def test_setup_show_names_the_fixtures_of_every_example(small: Project) -> None:
    result = small.run("--setup-show", "tasks/words.jsonl")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["SETUP *S lm_adapter*", "*words.jsonl::blue*lm_adapter*", "*words.jsonl::red*lm_adapter*"]
    )


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_a_run_that_only_sets_up_records_nothing(small: Project, option: str) -> None:
    result = small.run(option)
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["*words.jsonl::red*"])
    result.stdout.no_fnmatch_line("*INCOMPLETE*")
    assert not (small.path / "reports").exists()


def test_limit_takes_the_first_valid_records_of_each_task(small: Project) -> None:
    small.run("--lm-limit=1", "--lm-include-per-example").assert_outcomes(passed=2)
    assert ["arithmetic:arith_1", "words:blue"] == ran(small)
    board = small.board()
    assert 1 == board["selection"]["limit"]
    assert {"available": 2, "selected": 1} == board["selection"]["tasks"]["words"]


def sample_of(project: Project, *options: str) -> set[str]:
    result = project.run("--collect-only", "-q", *options)
    return {line for line in result.outlines if "::" in line}


def test_a_sample_is_drawn_by_its_seed_alone(project: Project) -> None:
    for task in ("a", "b"):
        project.task(f"tasks/{task}.jsonl", *[project.record(f"r{n}", f"{n}") for n in range(40)])
    first = sample_of(project, "--lm-sample=6")
    assert 12 == len(first)
    assert first == sample_of(project, "--lm-sample=6", "--lm-seed=0")
    assert first != sample_of(project, "--lm-sample=6", "--lm-seed=1")
    alone = sample_of(project, "--lm-sample=6", "tasks/b.jsonl")
    assert {nodeid for nodeid in first if nodeid.startswith("tasks/b")} == alone
    project.run("--lm-sample=6", "-n2", "--lm-include-per-example").assert_outcomes(passed=12)
    names = {nodeid.removeprefix("tasks/").replace(".jsonl::", ":") for nodeid in first}
    assert names == set(ran(project))
    selection = project.board()["selection"]
    assert (6, 0) == (selection["sample"], selection["seed"])


def test_a_sample_larger_than_the_task_is_the_whole_task(small: Project) -> None:
    small.run("--lm-sample=99", "--lm-gate=none")
    assert 5 == small.board()["counts"]["scored"]
    assert "selection" not in small.board()


def test_limit_comes_before_keywords(small: Project) -> None:
    assert 5 == small.run("--lm-limit=1", "-k", "arith_3").ret


def test_reruns_of_a_failing_example_count_it_once(small: Project) -> None:
    needs.module("pytest_rerunfailures")
    result = small.run("-p", "rerunfailures", "--reruns=1")
    assert 1 == result.ret
    counts = small.board()["counts"]
    assert (5, 5) == (counts["collected"], counts["scored"])


LONG = """
from pathlib import Path
from pytest_lmeval.tasks import Task

class Long(Task):
    eval_type = "generative"

    def num_examples(self):
        return 100_000

    def get_example(self, index):
        with Path(__file__).with_name("made.txt").open("a") as made:
            made.write(f"{index}\\n")
        return {"messages": [{"role": "user", "content": f"say {index}"}, {"role": "assistant", "content": "x"}]}

    def evaluate(self, conversation, response):
        return True
"""


def test_a_sample_of_a_long_list_makes_no_other_examples(project: Project) -> None:
    project.write("tasks/task_long.py", LONG)
    result = project.run("--lm-sample=5", "--lm-seed=3", "--lm-include-per-example")
    result.assert_outcomes(passed=5)
    made = (project.path / "tasks" / "made.txt").read_text().split()
    assert sorted(f"Long:ex-{index}" for index in made) == ran(project)
    assert {"available": 100_000, "selected": 5} == project.board()["selection"]["tasks"]["Long"]
