"""A model with its options under one name in pyproject.toml."""

from __future__ import annotations

import pytest

from tests.conftest import Project

MODEL = """
import pathlib

class Model:
    def __init__(self, greeting="none", loud=False, extra=None):
        self.name = f"{greeting}.{loud}.{extra}.v1"

    def generate(self, prompts):
        return [prompt.rpartition("say: ")[2] for prompt in prompts]
"""
PROFILES = """
[tool.lmeval.adapters.polite]
adapter = "model:Model"
greeting = "hello"
extra = { depth = 2 }

[tool.lmeval.adapters.curt]
adapter = "model:Model"
"""


@pytest.fixture
def profiles(project: Project) -> Project:
    project.write("model.py", MODEL)
    project.write("pyproject.toml", PROFILES)
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}") for n in range(3)])
    return project


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (["--lm-adapter=polite"], "hello.False.{'depth': 2}.v1"),
        (["--lm-adapter=polite", "-n2"], "hello.False.{'depth': 2}.v1"),
        (["--lm-adapter=curt"], "none.False.None.v1"),
        (
            ["--lm-adapter=polite", "--lm-adapter-arg=greeting=hi", "--lm-adapter-arg=loud=true"],
            "hi.True.{'depth': 2}.v1",
        ),
        (["-olm_adapter=polite"], "hello.False.{'depth': 2}.v1"),
        (["-olm_adapter=polite", "--lm-adapter=curt"], "none.False.None.v1"),
    ],
)
def test_a_profile_stands_for_an_adapter_and_its_options(profiles: Project, args: list[str], name: str) -> None:
    result = profiles.run_pytest(*args)
    assert 0 == result.ret
    result.assert_outcomes(passed=3)
    assert name == profiles.board()["adapter"]


def test_the_board_says_with_what_options_the_model_was_asked(profiles: Project) -> None:
    profiles.run_pytest("--lm-adapter=polite", "--lm-adapter-arg=loud=true")
    assert {"greeting": "hello", "extra": {"depth": 2}, "loud": True} == profiles.board()["adapter_options"]


def test_an_unknown_name_is_a_usage_error_that_lists_the_profiles(profiles: Project) -> None:
    result = profiles.run_pytest("--lm-adapter=polit")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*unknown adapter 'polit'; did you mean 'polite'? (choices: *curt, *polite, *toy*)*"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[tool.lmeval]\nadapters = 5\n", "*tool.lmeval.adapters must be a table of tables*"),
        (
            "[tool.lmeval.adapters]\nmine = 'toy'\n",
            '*tool.lmeval.adapters.mine: expected a table with adapter = "SPEC"*',
        ),
        ("[tool.lmeval.adapters.mine]\nmodel = 'x'\n", "*tool.lmeval.adapters.mine: expected a table with adapter*"),
        (
            "[tool.lmeval.adapters.mine]\nadapter = 'yours'\n[tool.lmeval.adapters.yours]\nadapter = 'toy'\n",
            "*tool.lmeval.adapters.mine: adapter 'yours' is itself a profile*",
        ),
        ("[tool.lmeval.adapters.mine]\nadapter = 'tyo'\n", "*unknown adapter 'tyo'; did you mean 'toy'?*"),
        ("[tool.lmeval.adapters.mine]\nadapter = 'toy'\nsped = 3\n", "*adapter 'toy' cannot be created*"),
        ("[tool.lmeval\n", "*pyproject.toml*"),
    ],
)
def test_a_profile_that_cannot_be_used_is_a_usage_error_that_says_where(
    profiles: Project, table: str, message: str
) -> None:
    profiles.write("pyproject.toml", table)
    result = profiles.run_pytest("--lm-adapter=mine")
    assert 4 == result.ret
    (result.stderr if result.errlines else result.stdout).fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
