"""What the machines that run CI jobs would take for a command in the log of a job.

The two parsers are those of GitHub's runner in short, and stricter: every name is a command, known or not. The other
machines look for a word and a bracket.
"""

from __future__ import annotations

import re

__all__ = ["ORDERS", "commands_in"]

ORDERS = (
    "said\n::set-output name=a::b",
    "  ::add-mask::the",
    "text ##[group]more",
    "over\r::stop-commands::token",
    "over\r\n\t::error file=a,line=1::b",
    "line\u2028::warning::b\u0085::notice::c",
    "\u00a0::debug::b",
    "::error::b::c",
    "\x1b[31m::error::b\x1b[0m",
    ":\x1b[0m:error::b",
    "###[error]b ##vso[task.setvariable variable=a]b ##teamcity[message text='a']",
)
"""Texts of which each gives an order if it is printed as it is."""

_OTHERS = re.compile(r"##\w+\[")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def commands_in(log: str) -> list[str]:
    """Return the lines of ``log`` that hold a command, with and without the colours that a runner may drop."""
    # GitHub's runner ends a line at CR and LF alone.
    return [line for line in log.splitlines() if any(_is_command(each) for each in (line, _ANSI.sub("", line)))]


def _is_command(line: str) -> bool:
    return _new_form(line) or _old_form(line) or _OTHERS.search(line) is not None


def _new_form(line: str) -> bool:
    # ``::name key=value,key=value::message``, after any blanks.
    after_blanks = line.lstrip()
    return after_blanks.startswith("::") and "::" in after_blanks[2:]


def _old_form(line: str) -> bool:
    # ``##[name key=value;key=value]message``, after anything.
    _, start, rest = line.partition("##[")
    return bool(start) and "]" in rest
