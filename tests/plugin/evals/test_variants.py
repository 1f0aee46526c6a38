"""Variants of an eval function: one task for each, on the same rows, compared row by row."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project

FUNCTION = """
from pytest_lmeval import eval_task

ROWS = [{"id": f"r{n}", "n": n} for n in range(12)]

@eval_task("reply", data=ROWS, variants={"old": "short", "new": "long"}, threshold=0.5)
async def test_reply(row, variant, lm):
    lm.output(variant)
    lm.score("polite", 1 if variant == "long" or row["n"] < 4 else 0)
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_each_variant_is_a_task_on_the_same_rows_and_rank_compares_them(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write("tests/test_reply.py", FUNCTION)
    result = project.run("tests", "--lm-adapter=none", *workers)
    result.assert_outcomes(passed=16, failed=8)
    assert {"reply@old": 4 / 12, "reply@new": 1.0} == {row["task"]: row["score"] for row in project.board()["tasks"]}
    found = project.ledger()
    assert found["reply@old:r3"]["hash"] == found["reply@new:r3"]["hash"]
    assert ["short", "long"] == [found[f"reply@{name}:r3"]["details"]["output"] for name in ("old", "new")]
    ranked = project.lmeval("rank", "reports/ledger.jsonl", "--by", "config")
    assert 0 == ranked.ret, ranked.stderr.str()
    first, *_ = [line for line in ranked.outlines if line.startswith(("1", "new"))]
    assert "new" in first, ranked.stdout.str()


def test_one_variant_can_be_selected_like_any_task_and_keeps_its_baseline(project: Project) -> None:
    project.write("tests/test_reply.py", FUNCTION)
    project.run("tests", "--lm-adapter=none", "--lm-baseline=b.json", "--lm-update-baseline")
    project.run("tests", "--lm-adapter=none", "-k", "new").assert_outcomes(passed=12)
    project.edit("tests/test_reply.py", 'variant == "long" or', "")
    worse = project.run("tests", "--lm-adapter=none", "--lm-baseline=b.json")
    assert 1 == worse.ret
    worse.stdout.fnmatch_lines(["*reply@new*8 worse*"])


def test_rank_compares_the_rows_that_all_variants_have_a_score_for(project: Project) -> None:
    project.write("tests/test_reply.py", FUNCTION)
    left_out = [f"--deselect=tests/test_reply.py::test_reply[new-r{n}]" for n in (3, 4)]
    project.run("tests", "--lm-adapter=none", *left_out)
    ranked = project.lmeval("rank", "reports/ledger.jsonl", "--by", "config").stdout.str()
    assert "a selection of the examples: the ranking of all of them may differ" in ranked
    assert "scores are over the 10 of 12 example(s) that all ranked models have a score for: reply 10" in ranked
    assert "new: 2 not scored, 1 of which old got right" in ranked


def test_variants_without_data_are_one_example_each(project: Project) -> None:
    project.write(
        "tests/test_one.py",
        "from pytest_lmeval import eval_task\n"
        "@eval_task('one', variants={'a': {'k': 1}, 'b': {'k': 2}})\n"
        "def test_one(variant, lm):\n    lm.score('s', variant['k'] == 2)\n",
    )
    project.run("tests", "--lm-adapter=none").assert_outcomes(passed=1, failed=1)
    assert ["one@a:test_one", "one@b:test_one"] == sorted(project.ledger())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("variants={'a': 1}", "variants: expected two names or more, each with its value"),
        ("variants={'a b': 1, 'c': 2}", "variants: expected names of letters, digits, - and _, got 'a b'"),
        ("variants=['a', 'b']", "variants: expected two names or more, each with its value"),
        ("data=[{'id': 'x'}], variants={'a': 1, 'b': 2}", "has variants: give test_x an argument named variant"),
    ],
)
def test_variants_that_cannot_be_are_refused(project: Project, arguments: str, message: str) -> None:
    text = f"from pytest_lmeval import eval_task\n@eval_task('x', {arguments})\ndef test_x(row, lm): ...\n"
    project.write("tests/test_x.py", text)
    assert message in project.run("tests", "--lm-adapter=none").stdout.str()


def test_parameters_beside_variants_are_refused(project: Project) -> None:
    project.write(
        "tests/test_x.py",
        "import pytest\nfrom pytest_lmeval import eval_task\n"
        "@eval_task('x', variants={'a': 1, 'b': 2})\n@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_x(variant, n, lm): lm.score('s', 1)\n",
    )
    result = project.run("tests", "--lm-adapter=none")
    assert "has variants: give the other parameters as rows, not by parametrize" in result.stdout.str()


def test_validate_names_the_variants_without_running_the_file(project: Project) -> None:
    project.write("tests/test_reply.py", f"{FUNCTION}\nraise SystemExit\n")
    found = json.loads(project.lmeval("validate", "tests", "--format", "json").stdout.str())
    assert "reply@old" in json.dumps(found)
    assert "reply@new" in json.dumps(found)
