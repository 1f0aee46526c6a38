"""Names of examples and texts of warnings come from data and programs: they are shown, and give no orders."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from tests.border.table import Border, Row
from tests.conftest import NEEDLESS, RunModule

# What machines that run CI jobs, and terminals, obey.
ORDERS = [
    *("##[error]x", "##vso[task.complete result=Failed;]x", "::error::x", "\n::error::x", "\r::add-mask::x"),
    *("##teamcity[buildStop comment='x']", "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x9b31m", "\u202egnirts", "\u2066x"),
    *("\x1b_Gx\x1b\\", ":\x08:error::x", "x\x0b::error::x", "x\x85::error::x", "x\u2028::error::x", "\x00", "\x7f"),
]
OBEYED = re.compile(r"^[^\S\n]*::|##\w*\[", re.MULTILINE)
TESTS = f"""
import warnings
import pytest
from pytest_lmeval import eval_task

ORDERS = {ORDERS!r}

@eval_task("named")
@pytest.mark.parametrize("given", ORDERS)
def test_named(given, lm):
    warnings.warn(given)
    lm.score("x", 0)

@pytest.mark.parametrize("given", ORDERS)
def test_plain(given, lm):
    lm.score("x", 0)

@eval_task("rows", data=[{{"id": f"{{number}} {{order}}", "x": order}} for number, order in enumerate(ORDERS)])
def test_rows(row, lm):
    warnings.warn(row["x"])
    lm.score("x", 0, row["x"])
    lm.score("order " + row["x"], 0, why=row["x"])

def test_of_another_kind():
    for order in ORDERS:
        warnings.warn(order)
        warnings.warn(f"a line\\n{{order}}", RuntimeWarning)
"""


def orders_in(text: str) -> list[str]:
    """Return the lines that a terminal or the log of a CI job would obey; a colour is none."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line for line in text.split("\n") if OBEYED.search(line)]
    return lines + [
        line for line in text.split("\n") if any(unicodedata.category(char) in ("Cc", "Cf") for char in line)
    ]


@pytest.mark.parametrize(
    "arguments",
    [("-v", "-rA", "-n0"), ("--collect-only",), pytest.param(("-v", "-rA", "-n2"), marks=pytest.mark.again)],
)
def test_no_name_and_no_warning_gives_an_order(
    tmp_path: Path, run_module: RunModule, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "test_evals.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    without = [f"-pno:{name}" for name in NEEDLESS]
    done = run_module(tmp_path, "pytest", *without, "--lm-adapter=toy", "--junitxml=junit.xml", *arguments)
    assert [] == orders_in(done.stdout)
    assert "x23#[error]x" in done.stdout
    assert "--collect-only" in arguments or "\\x1b[2J" in done.stdout


def test_a_cleaned_name_selects_its_example_and_is_the_one_to_run_it_again(
    tmp_path: Path, run_module: RunModule
) -> None:
    (tmp_path / "test_evals.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore\n")
    without = [f"-pno:{name}" for name in NEEDLESS]
    by_word = run_module(tmp_path, "pytest", *without, "--lm-adapter=toy", "-k", "test_named and vso")
    assert "1 failed" in by_word.stdout
    found = re.search(r"rerun: pytest '(.*?)' --lm", by_word.stdout)
    assert found is not None, by_word.stdout
    again = run_module(tmp_path, "pytest", *without, "--lm-adapter=toy", found[1], "--lm-report-dir=again")
    assert "1 failed" in again.stdout
    assert "collected 1 item" in again.stdout


def _function(body: str) -> str:
    return f"import warnings\nimport pytest\nfrom pytest_lmeval import eval_task\n\n{body}\n"


KEPT = """
import json, os, urllib.request
from pytest_lmeval import eval_task

KEPT = []

@eval_task("kept", data=[{"id": "##[error]k"}], repeats=2)
def test_kept(row, lm, lm_env):
    KEPT.append(os.environ["OPENAI_BASE_URL"])
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{KEPT[0]}/chat/completions", body)).close()
    lm.score("x", 1)
"""


def _row(kind: str, what: str, name: str, parameters: str, example: str, says: str, unsaid: str = "") -> Row:
    """Return a row of the shared run: a function whose examples are called by their parameters."""
    body = f'@eval_task("{name}")\n@pytest.mark.parametrize("p", {parameters})\ndef test_{name}(p, lm):\n'
    return Row(
        kind=kind,
        what=what,
        fate="reported",
        files={f"test_{name}.py": _function(f'{body}    lm.score("x", 0)')},
        example=f"{name}:{example}",
        status="failed",
        says=says,
        unsaid=unsaid,
        on=("terminal", "junit"),
    )


BORDER = Border(
    name="names and warnings",
    files={"pytest.ini": "[pytest]\n"},
    arguments=("--lm-adapter=toy", "-v"),
    code=1,
    rows=(
        _row("absent", "a parameter without a name of its own", "absent", "[object()]", "p0", "test_absent[p0]"),
        _row("empty", "an empty parameter", "empty", '["", "x"]', "x", "test_empty[]"),
        Row(
            kind="wrong type",
            what="a warning that is no text",
            fate="reported",
            files={"test_w.py": "import warnings\ndef test_w():\n    warnings.warn(UserWarning(5, '##[error]w'))\n"},
            says="UserWarning: (5, '\\x23#[error]w')",
            unsaid="##[error]w",
            on=("terminal",),
        ),
        _row("too large", "a parameter of 3,000 characters", "large", '["x" * 3000]', "p0", "test_large[p0]"),
        _row("not finite or negative", "numbers", "numbers", "[float('nan'), -1]", "nan", "test_numbers[-1]"),
        _row("control characters", "an order", "orders", '["##[error]c"]', "##[error]c", "[\\x23#[error]c]"),
        _row("twice", "equal parameters", "twice", '["##[error]t", "##[error]t"]', "##[error]t0", "[\\x23#[error]t1]"),
        Row(kind="late", never="a name is made when tests are collected, and a warning is shown at the end of the run"),
        Row(kind="out of order", never="no name follows from another one"),
        Row(kind="cancelled", never="nothing is awaited"),
        Row(
            kind="raising", never="Python makes the text of a warning where it is given: what it raises fails that test"
        ),
        Row(
            kind="secret",
            what="a key in a parameter and in a warning",
            fate="reported",
            files={
                "test_secret.py": _function(
                    'import os\nKEY = os.environ["MY_KEY"]\n@eval_task("secret")\n'
                    '@pytest.mark.parametrize("p", [KEY])\n'
                    'def test_secret(p, lm):\n    warnings.warn(f"not {KEY}")\n    lm.score("x", 0)'
                )
            },
            environment={"MY_KEY": "sk-in-a-name-0123456789"},
            example="secret:***",
            status="failed",
            says="test_secret[***]",
            unsaid="sk-in-a-name",
            on=("terminal", "junit"),
        ),
        Row(
            kind="beside",
            what="a plain test of the same name",
            files={
                "test_plain_too.py": _function(
                    '@eval_task("plain")\ndef test_it(lm):\n    lm.score("x", 1)\n\n'
                    "class TestPlain:\n    def test_it(self):\n        pass"
                )
            },
            example="plain:test_it",
            status="passed",
            says='classname="test_plain_too.TestPlain" name="test_it"',
            on=("junit",),
        ),
        Row(kind="environment", never="a name is made of parameters and of rows, and of nothing else"),
        Row(
            kind="changed unseen",
            never="an example of another name is another example, and told: tests/plugin/record/test_pairing_by_id.py",
        ),
        Row(kind="earlier run", never="a name is made anew in each run; to run one again: the test of rerun: above"),
        Row(
            kind="kept client",
            what="an order in the name of the example whose client was kept",
            fate="reported",
            files={"test_kept.py": KEPT},
            example="kept:##[error]k",
            status="passed",
            says="kept client of \\x23#[error]k",
            on=("terminal",),
        ),
        _row("same name", "two names that are cleaned to one", "same", '["a\\u202eb", "a-b"]', "a-b", "test_same[a-b]"),
    ),
)
