"""What the user can mend is said in a line that says how, before any model call, with exit code 4."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


def said(result: pytest.RunResult) -> str:
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    return text


MISTAKES = [
    (["tasks"], ["--lm-adapter=SPEC", "lm_adapter fixture"]),
    (["--lm-adapter=toy", "tasks", "--depth=1", "x", "--lm-gate=none"], ["unrecognized arguments: --depth=1 x"]),
    (["--lm-adapter=tpy"], ["tpy", "toy", "replay", "package.module:Object"]),
    (["--lm-adapter=no_such_module:Model"], ["no_such_module", "ModuleNotFoundError"]),
    (["--lm-adapter=model:NoSuch"], ["NoSuch", "Model"]),
    (["--lm-adapter=failing:Model"], ["failing", "ZeroDivisionError"]),
    (["--lm-adapter=failing_init:Model"], ["failing_init:Model", "OSError", "no weights"]),
    (["--lm-adapter=model:json"], ["model:json"]),
    (["--lm-adapter=replay:nowhere.jsonl"], ["nowhere.jsonl"]),
    (["--lm-adapter=replay"], ["replay:PATH"]),
    (["--lm-adapter=toy:x"], ["toy", "no argument"]),
    (["--lm-adapter=toy", "--lm-batch-size=0"], ["--lm-batch-size", ">= 1", "'0'"]),
    (["--lm-adapter=toy", "--lm-sample=-3"], ["--lm-sample", "-3"]),
    (["--lm-adapter=toy", "--lm-limit=1", "--lm-sample=1"], ["--lm-limit", "--lm-sample"]),
    (["--lm-adapter=toy", "--lm-threshold=arithmetic=nan"], ["--lm-threshold", "nan"]),
    (["--lm-adapter=toy", "--lm-threshold=arithmatic=0.5"], ["arithmatic", "did you mean 'arithmetic'"]),
    (["--lm-adapter=toy", "--lm-max-errors=lots"], ["--lm-max-errors", "lots"]),
    (["--lm-adapter=toy", "--lm-max-errors=101%"], ["--lm-max-errors", "101%"]),
    (["--lm-adapter=toy", "--lm-report-dir=pytest.ini"], ["pytest.ini", "not a folder", "--lm-report-dir"]),
    (["--lm-adapter=toy", "-o", "lm_max_line_bytes=none"], ["lm_max_line_bytes", "none"]),
    (["--lm-adapter=toy", "-o", "lm_thresholds=f1"], ["lm_thresholds", "NAME=VALUE", "f1"]),
]


# Mistakes that are made in workers too, by their last options.
IN_WORKERS = ["--lm-adapter=no_such_module:Model", "--lm-threshold=arithmatic=0.5"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        *[pytest.param(*case, id=" ".join(case[0][-2:])) for case in MISTAKES],
        *[
            pytest.param(["-n2", *options], wanted, id=f"{options[-1]} -n2")
            for options, wanted in MISTAKES
            if options[-1] in IN_WORKERS
        ],
    ],
)
def test_a_mistake_is_said_with_what_would_do(small: Project, options: list[str], wanted: list[str]) -> None:
    small.write("failing.py", "1 / 0\n")
    failing_init = "class Model:\n    generate = None\n    def __init__(self): raise OSError('no weights')\n"
    small.write("failing_init.py", failing_init)
    result = small.run_pytest(*options)
    assert 4 == result.ret
    text = said(result)
    assert [] == [word for word in wanted if word not in text]
    assert [] == small.calls()
    assert not Path(small.path, "reports/leaderboard.json").exists()


def test_no_adapter_is_needed_where_every_example_is_deselected(small: Project) -> None:
    small.write("test_plain.py", "def test_plain(): pass\n")
    small.run_pytest("tasks", "test_plain.py", "-m", "not lmeval").assert_outcomes(passed=1, deselected=5)


def test_the_adapter_may_stand_beside_the_project_for_the_plain_command(small: Project) -> None:
    command = Path(sys.executable).with_name("pytest")
    arguments = ["--lm-adapter=model:Model", "-p", "no:randomly", "-q", "tasks/words.jsonl"]
    done = subprocess.run([command, *arguments], cwd=small.path, capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stdout
    assert 2 == small.board()["counts"]["scored"]


@pytest.mark.command_line
def test_every_option_is_in_the_help(project: Project) -> None:
    text = project.run_pytest("--help").stdout.str()
    options = "adapter adapter-arg batch-size limit sample seed threshold gate max-errors report-dir sandbox judge"
    assert [] == [name for name in options.split() if f"--lm-{name}" not in text]
    assert "--include-per-example" in text
    assert "--allow-bad-tasks" in text
    assert "lm_task_paths" in text
