"""The border of environment variables and of the address that an adapter asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.border.table import Border, Row

RECORD = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'
# Nobody listens there.
NOBODY = "http://127.0.0.1:9/v1"
PROFILE = '[tool.lmeval.adapters.{}]\nadapter = "openai:m"\n{}\n'
# An application's tests set what its own client reads; the run has read it before.
LATE = """
import os

os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:7/v1"
os.environ["OPENAI_API_KEY"] = "late"

def test_nothing():
    pass
"""
# What is set while it runs leads to the run's own endpoint.
OWN = """
import os
from pytest_lmeval import Completion, eval_task

class Model:
    name = "stub.v1"
    base_url = property(lambda self: os.environ.get("TARGET", ""))

    async def complete(self, request):
        return Completion("x")

@eval_task("own")
async def test_own(lm, lm_base_url):
    os.environ["TARGET"] = lm_base_url
    lm.base_url
"""
# The child of an application asks once it is told to, when its parent's example has ended.
CHILD = (Path(__file__).parents[1] / "projects" / "eval_kept" / "test_child.py").read_text("utf-8")


def row(kind: str, what: str, base_url: str = "", *arguments: str, **more: Any) -> Row:
    """Return the row of a run whose environment has ``base_url``."""
    adapter = () if any(each.startswith("--lm-adapter=") for each in arguments) else ("--lm-adapter=openai:m",)
    environment = {"OPENAI_BASE_URL": base_url} if base_url else {}
    given: dict[str, Any] = {
        "code": 0,
        "on": ("terminal",),
        "environment": {**environment, "OPENAI_API_KEY": "sk-0123456789abcdef"},
    }
    return Row(kind=kind, what=what, alone=True, arguments=(*adapter, *arguments), **(given | more))


def shown(kind: str, what: str, base_url: str, says: str, *arguments: str, **more: Any) -> Row:
    """Return the row of an address that the header says, of a run that asks nothing."""
    return row(kind, what, base_url, "--collect-only", *arguments, says=says, **more)


def refused(kind: str, what: str, base_url: str, says: str, *arguments: str, **more: Any) -> Row:
    """Return the row of what ends a run before its first request."""
    return row(kind, what, base_url, *arguments, says=says, code=4, fate="refused", **more)


def child(what: str, says: str, code: int, *, asks: bool) -> Row:
    """Return the row of a child process that outlives its run; the next run of the example ``asks`` before it does."""
    return row(
        "kept client",
        what,
        "",
        "--lm-adapter=test_child:Model",
        "test_child.py",
        files={"test_child.py": CHILD},
        environment={"OPENAI_API_KEY": "sk-0123456789abcdef", "ASKS": "yes" if asks else ""},
        code=code,
        example="child:a",
        status="passed",
        fate="reported",
        says=says,
        on=("terminal", "board", "page", "markdown"),
    )


FROM = "(base_url is the environment variable OPENAI_BASE_URL)"
BORDER = Border(
    name="environment variables and the adapter's address",
    files={"tasks/t.jsonl": RECORD},
    arguments=("tasks", "--lm-retries=0"),
    rows=(
        shown("absent", "no variable", "", "adapter openai:m at https://api.openai.com/v1 (default)"),
        shown(
            "absent",
            "no variable of another server's",
            NOBODY,
            "adapter anthropic:m at https://api.anthropic.com (default)",
            "--lm-adapter=anthropic:m",
            environment={"OPENAI_BASE_URL": NOBODY, "ANTHROPIC_API_KEY": "sk-0123456789abcdef"},
        ),
        shown("empty", "a blank variable", "  ", "adapter openai:m at https://api.openai.com/v1 (default)"),
        refused("wrong type", "no URL", "localhost:8000", FROM),
        shown("too large", "a long path", f"{NOBODY}/{'a' * 5000}", f"at {NOBODY}/aaaa"),
        refused("not finite or negative", "a port below 0", "http://127.0.0.1:-1/v1", FROM),
        refused("control characters", "an order to the terminal", f"{NOBODY}\x1b[2J", FROM, unsaid="\x1b[2J"),
        shown("twice", "a variable", f"{NOBODY}\n", f"adapter openai:m at {NOBODY} (OPENAI_BASE_URL)"),
        shown(
            "twice",
            "an option beside a variable",
            "http://127.0.0.1:7/v1",
            f"adapter openai:m at {NOBODY} (--lm-adapter-arg)",
            f"--lm-adapter-arg=base_url={NOBODY}",
        ),
        shown(
            "twice",
            "a profile beside a variable",
            "http://127.0.0.1:7/v1",
            f"adapter mine at {NOBODY} (profile mine)",
            "--lm-adapter=mine",
            files={"pyproject.toml": PROFILE.format("mine", f'base_url = "{NOBODY}"')},
        ),
        row(
            "late",
            "a variable that a test module sets",
            NOBODY,
            "tests",
            code=3,
            files={"tests/test_application.py": LATE},
            example="t:a",
            status="error",
            says="Cannot connect to host 127.0.0.1:9",
            unsaid="127.0.0.1:7",
            on=("terminal", "board", "page"),
        ),
        Row(kind="out of order", never="variables have no order"),
        Row(kind="cancelled", never="to read a variable waits for nothing"),
        Row(kind="raising", never="to read a variable runs no code of anybody's"),
        refused(
            "secret", "a password in the address", "http://me:hunter2-hunter2@127.0.0.1:9/v1", FROM, unsaid="hunter2"
        ),
        refused(
            "same name",
            "a profile called as an adapter",
            "",
            "pyproject.toml: tool.lmeval.adapters.openai: an adapter has that name",
            files={"pyproject.toml": PROFILE.format("openai", "")},
        ),
        row(
            "same name",
            "the run's own endpoint",
            "",
            "--lm-adapter=test_own:Model",
            "test_own.py",
            files={"test_own.py": OWN},
            code=3,
            example="own:test_own",
            status="error",
            fate="refused",
            says="adapter stub.v1: its base_url http://127.0.0.1:",
            on=("terminal", "board", "page", "markdown"),
        ),
        shown(
            "beside",
            "a variable that a conftest sets",
            "",
            f"adapter openai:m at {NOBODY} (OPENAI_BASE_URL)",
            files={"conftest.py": f"import os\nos.environ['OPENAI_BASE_URL'] = '{NOBODY}'\n"},
        ),
        row(
            "environment",
            "a variable of an adapter that is not asked",
            NOBODY,
            "--lm-adapter=model:Model",
            example="t:a",
            status="passed",
            unsaid=NOBODY,
        ),
        Row(
            kind="changed unseen",
            never="an address is no part of what is asked: answers are compared, wherever they come from",
        ),
        Row(
            kind="earlier run", never="a process has the variables that it was started with, and none of an earlier run"
        ),
        child("a child process asks alone", "the current example: kept client of a (1)", 0, asks=False),
        child(
            "a child process asks beside",
            "1 request(s) to lm.base_url after their example had ended (child: a)",
            3,
            asks=True,
        ),
    ),
)
