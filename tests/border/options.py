"""The border of the command line, the ini file and ``[tool.lmeval]``."""

from __future__ import annotations

from tests.border.table import Border, Row, refused_run, run_of_its_own, since_baseline
from tests.conftest import PYTEST_INI

RECORD = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'


def ini(kind: str, what: str, lines: str, says: str) -> Row:
    """Return the row of an ini file that ends the run before its first request."""
    files = {"pytest.ini": f"{PYTEST_INI}{lines}\n"}
    return refused_run(kind, what, says, files=files)


def option(kind: str, given: str, says: str) -> Row:
    """Return the row of an option that ends the run before its first request."""
    return refused_run(kind, given, says, given)


def table(kind: str, what: str, lines: str, says: str, adapter: str = "") -> Row:
    """Return the row of a ``pyproject.toml`` that ends the run before its first request."""
    files = {"pyproject.toml": lines}
    given = (f"--lm-adapter={adapter}",) if adapter else ()
    return refused_run(kind, what, says, *given, files=files)


BORDER = Border(
    name="the command line and the ini file",
    files={"tasks/t.jsonl": RECORD},
    arguments=("tasks", "--lm-adapter=model:Model"),
    rows=(
        ini(
            "absent",
            "a folder that is not there",
            "lm_task_paths = nowhere",
            "ini lm_task_paths: nowhere: no such fold",
        ),
        Row(kind="absent", what="all options but the adapter", example="t:a", status="passed", score=1.0),
        option("empty", "--lm-baseline=", "argument --lm-baseline: expected a value, got an empty text"),
        ini("wrong type", "a word for a number", "lm_alpha = often", "ini lm_alpha: expected a number > 0 and < 1"),
        ini("wrong type", "a misspelt key", "lm_min_score = t=0.9", "ini lm_min_score: no such key; write addopts"),
        ini("wrong type", "another misspelt key", "lm_adaptor = toy", "no such key; did you mean 'lm_adapter'?"),
        option("wrong type", "--lm-cost=1", "unknown option --lm-cost; did you mean '--lm-max-cost'?"),
        table(
            "wrong type", "a misspelt table", "[tool.lmeval]\nadaptors = 1\n", "tool.lmeval 'adaptors'; did you mean"
        ),
        table(
            "wrong type",
            "a profile's misspelt option",
            '[tool.lmeval.adapters.mine]\nadapter = "openai:m"\ntempratur = 1\n',
            "unknown option 'tempratur'; did you mean 'temperature'?",
            "mine",
        ),
        option("too large", "--lm-min-score=t=2", "expected NAME=VALUE with a number from 0 to 1 as VALUE, got 't=2'"),
        option("not finite or negative", "--lm-max-cost=nan", "argument --lm-max-cost: "),
        refused_run(
            "control characters", "the name of a task", "a\\x1b[2Jb", "--lm-min-score=a\x1b[2Jb=1", unsaid="\x1b[2J"
        ),
        ini(
            "twice", "two floors of a task", "lm_min_scores =\n  t=0.5\n  t=0.9", "ini lm_min_scores: t has two values"
        ),
        run_of_its_own(
            "twice",
            "an option, as addopts and the command line may have it",
            "--lm-gate=baseline",
            "--lm-gate=none",
            says="gate none",
            on=("terminal",),
        ),
        Row(kind="late", never="options are read before anything runs"),
        run_of_its_own(
            "out of order",
            "options without the one that they belong to",
            "--lm-strict",
            "--lm-tolerance=0.1",
            fate="reported",
            says="--lm-strict, --lm-tolerance: no effect without",
        ),
        run_of_its_own(
            "out of order",
            "a seed of nothing",
            "--lm-seed=3",
            fate="reported",
            says="--lm-seed: no effect without --lm-sample",
        ),
        run_of_its_own(
            "beside",
            "an option of another plugin that begins as ours do",
            "--lm-mine=1",
            files={
                "conftest.py": "def pytest_addoption(parser): parser.addoption('--lm-mine')\n"
                "def pytest_report_header(config): return f'mine is {config.getoption(\"lm_mine\")}'\n"
            },
            says="mine is 1",
            on=("terminal",),
        ),
        refused_run(
            "environment",
            "a misspelt option in PYTEST_ADDOPTS",
            "unknown option --lm-cost; did you mean '--lm-max-cost'?",
            environment={"PYTEST_ADDOPTS": "-pno:asyncio --lm-cost=1"},
        ),
        run_of_its_own(
            "environment",
            "an option in PYTEST_ADDOPTS",
            environment={"PYTEST_ADDOPTS": "-pno:asyncio --lm-gate=none"},
            says="NOT GATED: gate none: no result can fail this run (",
            on=("terminal",),
        ),
        since_baseline(
            "changed unseen",
            "options in the ini file since the baseline",
            "the number of repeats differs from the baseline",
            {"pytest.ini": f"{PYTEST_INI}addopts = --lm-repeats=3\n"},
        ),
        run_of_its_own(
            "earlier run",
            "an order to resume what never began",
            "--lm-resume",
            fate="reported",
            says="--lm-resume: nothing to resume, there is no reports/ledger.jsonl",
            on=("terminal",),
        ),
        Row(kind="kept client", never="options are read before anything is asked"),
        Row(kind="cancelled", never="to read options waits for nothing"),
        table(
            "raising",
            "a plugin that cannot be imported",
            '[tool.lmeval]\nplugins = ["none_such"]\n',
            "importing none_su",
        ),
        refused_run(
            "secret",
            "a key as an option",
            "adapter 'model:Model' cannot be created: TypeError: Model() takes no arguments",
            "--lm-adapter-arg=api_key=sk-PLANTED-0123456789",
            unsaid="sk-PLANTED",
        ),
        table(
            "same name",
            "a profile called as an adapter",
            '[tool.lmeval.adapters.toy]\nadapter = "replay:x"\n',
            "tool.lmeval.adapters.toy: an adapter has that name",
        ),
    ),
)
