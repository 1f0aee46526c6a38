"""What of a run's arguments is said again to run one example again."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.report.wording import command, rerun_parts, with_item
from tests.tables import each_row


def _again(argv: list[str], path: str = "tasks/t.jsonl", item: str = "a", **manifest: Any) -> str:
    return with_item(rerun_parts({"argv": ["pytest", *argv], **manifest}, path), item)


@each_row(
    ("argv", "repeated"),
    [
        (["tasks", "--lm-adapter=toy", "-n", "2"], "--lm-adapter=toy"),
        (["--lm-adapter", "toy", "--lm-repeats=3"], "--lm-adapter=toy --lm-repeats=3"),
        (["--lm-adapter-arg", "system=be brief; rm"], "'--lm-adapter-arg=system=be brief; rm'"),
        (["--lm-adapter=toy", "--lm-adapter-arg=api_key=***"], "--lm-adapter=toy"),
        (["--lm-adapter=toy", "--lm-adapter-arg", "api_key=***"], "--lm-adapter=toy"),
        (["-c", "a.ini", "-cb.ini", "--config-file=c.ini"], "-ca.ini -cb.ini --config-file=c.ini"),
        (["-o", "lm_adapter=toy", "-p", "mine", "-pno:randomly", "-p", "no:cov"], "-olm_adapter=toy -pmine"),
        (["--lm-subject=law", "--lm-allow-bad-tasks"], "--lm-subject=law --lm-allow-bad-tasks"),
        (["--lm-adapter=toy", "--lm-baseline=b.json", "--lm-judge"], "--lm-adapter=toy"),
    ],
)
def test_what_decides_the_answer_is_repeated_and_secrets_are_not(argv: list[str], repeated: str) -> None:
    assert f"pytest tasks/t.jsonl::a {repeated} --lm-report-dir=reports/rerun" == _again(argv)


@each_row(
    ("path", "item", "rootdir", "named"),
    [
        ("tasks/t.jsonl", "T.a", "..", "../tasks/t.jsonl::T.a"),
        ("sub/tasks/t.jsonl", "a", "../..", "../../sub/tasks/t.jsonl::a"),
        ("tasks/my quiz.jsonl", "a", ".", "'tasks/my quiz.jsonl::a'"),
        ("tasks/it's.jsonl", "a", ".", """'tasks/it'"'"'s.jsonl::a'"""),
        ("tests/test_a.py", "TestA::test_a[b.c-1]", ".", "'tests/test_a.py::TestA::test_a[b.c-1]'"),
        ("tests/test_a.py", "test_a[a b\\u4f60]", ".", r"'tests/test_a.py::test_a[a b\u4f60]'"),
        ("tests/my test.py", "test_a[it's]", ".", """'tests/my test.py::test_a[it'"'"'s]'"""),
        ("tasks/t.jsonl", "$(rm) 'x", ".", """'tasks/t.jsonl::$(rm) '"'"'x'"""),
        ("tasks/t.jsonl", "a\nb\x1b##[c]\u202e", ".", r"'tasks/t.jsonl::a\nb\x1b\x23#[c]\u202e'"),
    ],
)
def test_an_example_is_named_as_a_shell_passes_it_on(path: str, item: str, rootdir: str, named: str) -> None:
    assert f"pytest {named} --lm-report-dir=out/rerun" == _again([], path, item, rootdir=rootdir, report_dir="out")


@pytest.mark.parametrize("manifest", [{}, {"argv": "x", "rootdir": None, "report_dir": 3}])
def test_a_run_that_recorded_less_gets_a_command_all_the_same(manifest: dict[str, Any]) -> None:
    expected = "pytest tasks/t.jsonl::a --lm-report-dir=reports/rerun"
    assert expected == with_item(rerun_parts(manifest, "tasks/t.jsonl"), "a")
    assert "" == command(manifest)
