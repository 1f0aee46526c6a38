"""The tutorial on testing an application: its files are the example's, and its commands print what it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tests.conftest import NEEDLESS, RunModule

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/agent"
PAGE = (ROOT / "docs/test-your-application.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
# Seconds, milliseconds of steps, and those at the end of a row.
TIMES = re.compile(r"\d+\.\d+ ?s\b|\(\d+ ms\)|\s\d+\.\d$")


def _plain(text: str) -> list[str]:
    lines = [" ".join(TIMES.sub("", line.rstrip()).split()) for line in text.splitlines()]
    return [line for line in lines if line]


def _is_told(told: list[str], printed: list[str]) -> bool:
    """Tell whether ``printed`` is what the page says; ``...`` is any number of lines."""
    if not told:
        return not printed
    if told[0] == "...":
        return any(_is_told(told[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and told[0] == printed[0] and _is_told(told[1:], printed[1:])


def test_its_files_are_those_of_the_example() -> None:
    shown = {}
    for kind, text in BLOCKS:
        if kind in ("python", "jsonl", "toml"):
            head, _, content = text.partition("\n")
            shown[head.removeprefix("# ")] = content
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".jsonl", ".toml")]
    assert {path.relative_to(EXAMPLE).as_posix(): path.read_text("utf-8") for path in files} == shown


def test_its_commands_print_what_it_says(tmp_path: Path, run_module: RunModule) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "reports"))
    codes = []
    for kind, text in BLOCKS:
        if kind == "diff":
            path = folder / "shop_agent.py"
            lines = [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            old, new = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        if kind == "console":
            command, _, told = text.partition("\n")
            program, *arguments = shlex.split(command.removeprefix("$ "))
            if program == "pytest":
                arguments += [f"-pno:{plugin}" for plugin in (*NEEDLESS, "cacheprovider")]
            ran = run_module(folder, {"lmeval": "pytest_lmeval.cli"}.get(program, program), *arguments)
            assert _is_told(_plain(told), _plain(ran.stdout)), f"{command}\n{ran.stdout}{ran.stderr}"
            codes.append(ran.returncode)
    assert [0, 0, 0, 1, 1] == codes
