"""What a run shows and writes is the same whether an example has all phases or its call alone, but for times."""

from __future__ import annotations

import random
import re
import shutil
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

ALL_PHASES = "lmeval: each example runs all of pytest's phases"
OPTIONS = [
    ("-rA",),
    ("-v",),
    ("-vv",),
    ("-q",),
    ("-x",),
    ("--lf",),
    ("--ff",),
    ("--sw",),
    ("--durations=0", "-vv"),
    ("-s", "-v"),
    ("--capture=tee-sys",),
    ("-p", "no:logging"),
    ("-p", "no:warnings"),
    # Functions that run beside others log when they like: in whatever phase of a test.
    ("-o", "log_cli=true", "-k", "loud or quiet or test_one"),
    ("--log-file=files/run.log", "--log-file-level=INFO"),
    ("--setup-show",),
    ("--junitxml=files/junit.xml",),
    ("--junitxml=files/junit.xml", "-o", "junit_logging=all", "-o", "junit_log_passing_tests=true"),
    ("--json-report", "--json-report-file=files/report.json", "-k", "loud or quiet or test_one"),
    ("--pdb",),
    ("--color=yes",),
    ("--tb=short", "--show-capture=no"),
    ("-o", "console_output_style=times", "-v"),
    ("-k", "answers or quiet"),
    ("--deselect=test_evals.py::test_answers[no]", "--deselect=tasks/loud.jsonl::c"),
    ("--lm-adapter=a=model:Model", "--lm-adapter=b=model:Model"),
    ("-n1",),
]
"""Each is run both ways."""
FIELDS = ("status", "score", "outputs", "error")
ENDS = ("pass", "print('said')", "assert 0", "1 / 0", "pytest.skip('not now')", "pytest.xfail('not yet')")
"""What an example of a drawn function does; a skip and an xfail are among what pytest reports in its own way."""
SEEDS = (17, *range(17))
_AGAIN = dict.fromkeys(OPTIONS[1:], pytest.mark.again)
_TIME = r"\d+\.\d+(?:e-?\d+)?(?: ?[mu]?s)?|[\d,]+ ms|\d{4}-\d\d-\d\d[T ][\d:,.]+(?:[+-]\d\d:\d\d)?"
_OTHERS = r"0x[0-9a-f]+|(?<=process\": )\d+|(?<=thread\": )\d+|(?<=runpytest-)\d+|(?<=lm-items=)\w+"
_VARIES = re.compile(f"{_TIME}|{_OTHERS}")


def seen(project: Project, how: str, options: tuple[str, ...]) -> list[str]:
    """Return what a run showed and wrote, line by line, without numbers that are times or may be.

    Those options that look at the run before have one.
    """
    for made in ("reports", ".pytest_cache", "files"):
        shutil.rmtree(project.path / made, ignore_errors=True)
    if {"--lf", "--ff", "--sw"} & {*options}:
        project.run("-q", f"--lm-items={how}")
    # By name: the fixture of pytest's that runs it leaves folders.
    result = project.run(f"--lm-items={how}", "tasks", "test_evals.py", *options)
    # The header says that all phases run.
    shown = [line for line in result.outlines if not line.startswith(ALL_PHASES)]
    lines = [f"exit code {result.ret}", *shown, "stderr:", *result.errlines]
    for file in sorted([*(project.path / ".pytest_cache/v").rglob("*"), *project.path.glob("files/*")]):
        if file.is_file():
            lines += [file.name, *file.read_text("utf-8").replace("><", ">\n<").replace(", ", ",\n").splitlines()]
    lines = [" ".join(_VARIES.sub("N", line).replace("=", " ").split()) for line in lines]
    # The slowest come first.
    lines.sort(key=lambda line: line if re.match("N (setup|call|teardown) ", line) else "")
    for file in sorted(project.path.glob("reports/**/ledger.jsonl")):
        found = project.ledger(str(file.parent.relative_to(project.path)))
        lines += [str([name, *(line[field] for field in FIELDS)]) for name, line in found.items()]
    return lines


@pytest.mark.parametrize("options", [pytest.param(each, marks=_AGAIN.get(each, ())) for each in OPTIONS], ids=" ".join)
def test_nothing_shows_whether_examples_had_all_phases(project: Project, options: tuple[str, ...]) -> None:
    project.copy("turns")
    assert [] == [*unified_diff(seen(project, "plain", options), seen(project, "auto", options), n=0)]


def drawn(chance: random.Random) -> str:
    """Return a module of tests that are none of ours and of eval functions, whose examples end in different ways."""
    parts = ["import pytest\n\nfrom pytest_lmeval import eval_task\n"]
    for number in range(chance.randint(2, 5)):
        name, how = f"test_{number}", chance.choice(["def", "async def"])
        rows = [{"id": f"e{row}", "end": chance.choice(ENDS)} for row in range(chance.randint(0, 5))]
        if rows:
            parts.append(
                f"@eval_task({name!r}, data={rows})\n{how} {name}(row):\n    exec(row['end'])\n    assert row\n"
            )
        else:
            parts.append(f"def {name}():\n    {chance.choice(ENDS)}\n")
    return "\n\n".join(parts)


@pytest.mark.parametrize("seed", [*SEEDS[:1], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])])
def test_nothing_shows_it_of_tests_that_are_drawn(project: Project, seed: int) -> None:
    chance = random.Random(seed)
    project.copy("turns")
    project.write("test_evals.py", drawn(chance))
    options = chance.choice([("-rA",), ("-v",), ("-x",), ("--lf",), ("-n1",), ("-W", "error"), ("--lm-max-errors=2",)])
    assert [] == [*unified_diff(seen(project, "plain", options), seen(project, "auto", options), n=0)]


LISTENING = "def pytest_runtest_setup(item):\n    pass\n"


def test_the_header_under_v_says_what_has_all_phases_run(project: Project) -> None:
    project.small_tasks()
    line = ALL_PHASES
    for options, why in (
        (("-v",), ""),
        (("-v", "--durations=3"), "--durations"),
        (("-v", "--junitxml=j.xml"), "--junitxml"),
    ):
        shown = project.run("-v", *options).outlines
        assert ([f"{line} ({why})"] if why else []) == [each for each in shown if each.startswith(line)]
    project.write("conftest.py", LISTENING)
    project.run("-v").stdout.fnmatch_lines([f"{line} (conftest)"])
    project.run().stdout.no_fnmatch_line(f"{line}*")
