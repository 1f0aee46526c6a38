"""A page that goes through an example step by step: its files, its changes, and what its commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tests.conftest import NEEDLESS, RunModule

# Seconds, milliseconds of steps and per example, and those at the end of a row.
_TIMES = re.compile(r"\d+\.\d+ ?s\b|\d+(\.\d)? ms\b|\(\d+ ms\)|\s\d+\.\d$")
_FILES = ("csv", "jsonl", "python", "toml", "yaml")


class Tutorial:
    """A page of docs and the folder of its example, whose files are as they are at the page's beginning."""

    def __init__(self, page: Path, example: Path) -> None:
        self.blocks: list[tuple[str, str]] = re.findall(r"```(\w+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        self.example = example

    @property
    def shown(self) -> dict[str, str]:
        """The files that the page shows, by their names, but for those of CI."""
        found = {}
        for kind, text in self.blocks:
            head, _, content = text.partition("\n")
            if kind in _FILES and head.startswith("# ") and not head.startswith("# .github"):
                found[head.removeprefix("# ")] = content
        return found

    @property
    def files(self) -> dict[str, str]:
        """The files of the example."""
        paths = [path for path in self.example.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {path.relative_to(self.example).as_posix(): path.read_text("utf-8") for path in paths}

    def codes(self, folder: Path, run_module: RunModule) -> list[int]:
        """Go through the page in ``folder``; return the exit code of each command, after comparing what it prints."""
        shutil.copytree(self.example, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "reports"))
        found = []
        for kind, text in self.blocks:
            if kind == "diff":
                _apply(text, folder)
            elif kind == "console":
                found.append(_run(text, folder, run_module))
        return found


def _apply(diff: str, folder: Path) -> None:
    name = re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE)[0]
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    old, new = ("\n".join(line[1:] for line in lines if line[:1] == sign) for sign in "-+")
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def _run(block: str, folder: Path, run_module: RunModule) -> int:
    command, _, expected = block.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    if program == "python":
        dash_m, program, *arguments = arguments
        assert "-m" == dash_m
    if program == "pytest":
        arguments += [f"-pno:{plugin}" for plugin in (*NEEDLESS, "cacheprovider")]
    ran = run_module(folder, {"lmeval": "pytest_lmeval.cli"}.get(program, program), *arguments)
    assert _fits(_plain(expected), _plain(ran.stdout)), f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.returncode


def _plain(text: str) -> list[str]:
    # Rules are as long as the terminal is wide.
    short = re.sub(r"([=_-])\1{3,}", r"\1\1\1", text)
    lines = [" ".join(_TIMES.sub("", line.rstrip()).split()) for line in short.splitlines()]
    return [line for line in lines if line]


def _fits(expected: list[str], printed: list[str]) -> bool:
    """Tell whether ``printed`` is what the page says; ``...`` is any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(_fits(expected[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and expected[0] == printed[0] and _fits(expected[1:], printed[1:])
