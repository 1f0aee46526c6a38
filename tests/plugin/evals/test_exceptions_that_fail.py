"""Exceptions of ``fails=``: the application rejected the reply, which scores 0 and is no error."""

from __future__ import annotations

import pytest

from tests import needs
from tests.conftest import Project

FUNCTION = """
import json
import urllib.request
from pytest_lmeval import eval_task

class BadReply(ValueError): ...

@eval_task("parse", data=[{"id": "good", "text": "{}"}, {"id": "bad", "text": "{"}, {"id": "other", "text": ""}],
           fails=(BadReply, ExceptionGroup))
async def test_parse(row, lm):
    lm.output(row["text"])
    lm.score("parsed", 1)
    if row["id"] == "other":
        raise RuntimeError("a fault of the application")
    try:
        json.loads(row["text"])
    except ValueError as error:
        raise BadReply(f"no JSON: {row['text']}") from error

@eval_task("unanswered", fails=[ValueError])
def test_unanswered(lm):
    try:
        lm.ask("x")
    except Exception as error:
        raise ValueError("no reply") from error
"""


def test_a_listed_exception_scores_0_and_any_other_stays_an_error(project: Project) -> None:
    project.write("tests/test_parse.py", FUNCTION)
    project.write("model.py", "class Model:\n    def generate(self, prompts): raise RuntimeError('down')\n")
    result = project.run("tests", "--lm-adapter=model:Model", "-k", "parse")
    found = project.ledger()
    assert ("passed", "failed", "error") == tuple(found[f"parse:{id}"]["status"] for id in ("good", "bad", "other"))
    assert (0.0, "BadReply: no JSON: {") == (found["parse:bad"]["score"], found["parse:bad"]["details"]["reason"])
    assert 3 == result.ret
    assert "BadReply: no JSON: {" in result.stdout.str()


def test_a_request_without_an_answer_stays_an_error(project: Project) -> None:
    project.write("tests/test_parse.py", FUNCTION)
    project.write("model.py", "class Model:\n    def generate(self, prompts): raise RuntimeError('down')\n")
    project.run("tests", "--lm-adapter=model:Model", "-k", "unanswered")
    assert "error" == project.ledger()["unanswered:test_unanswered"]["status"]


def test_an_incomplete_run_does_not_advise_a_new_baseline(project: Project) -> None:
    project.write("tests/test_parse.py", FUNCTION)
    project.write("model.py", "class Model:\n    def generate(self, prompts): return ['x' for _ in prompts]\n")
    project.edit("tests/test_parse.py", "raise RuntimeError", "pass  # ")
    project.run("tests", "--lm-adapter=model:Model", "--lm-baseline=b.json", "--lm-update-baseline", "-k", "parse")
    project.edit("tests/test_parse.py", "pass  # ", "raise RuntimeError")
    result = project.run("tests", "--lm-adapter=model:Model", "--lm-baseline=b.json", "-k", "parse")
    assert 3 == result.ret
    assert "update it" not in result.stdout.str()


@pytest.mark.parametrize(
    "fails",
    ["(Exception,)", "(BaseException,)", "(OSError,)", "(TimeoutError,)", "(ConnectionError,)", "ValueError", "('x',)"],
)
def test_exceptions_that_may_be_faults_of_the_surroundings_are_refused(project: Project, fails: str) -> None:
    project.write(
        "tests/test_x.py",
        f"from pytest_lmeval import eval_task\n@eval_task('x', fails={fails})\ndef test_x(lm): ...\n",
    )
    result = project.run("tests", "--lm-adapter=none")
    assert 0 != result.ret
    assert "eval_task('x'): fails: " in result.stdout.str()


@pytest.mark.parametrize(
    ("package", "name", "is_refused"),
    [
        ("openai", "APIConnectionError", True),
        ("openai", "LengthFinishReasonError", False),
        ("pydantic", "ValidationError", False),
    ],
)
def test_faults_of_clients_are_refused(project: Project, package: str, name: str, is_refused: bool) -> None:
    needs.installed(package)
    project.write(
        "tests/test_x.py",
        f"import {package}\nfrom pytest_lmeval import eval_task\n@eval_task('x', fails=({package}.{name},))\n"
        "def test_x(lm): lm.score('s', 1)\n",
    )
    result = project.run("tests", "--lm-adapter=none")
    assert is_refused == ("means that something around the application failed" in result.stdout.str())
    assert is_refused == (result.ret != 0)
