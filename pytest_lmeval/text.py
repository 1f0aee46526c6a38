"""Make untrusted text safe to show."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from types import FrameType

OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
"""The folder of this package, as the beginning of its modules' paths."""
PACKAGE_FOLDERS = frozenset({"dist-packages", "site-packages"})
"""The names of folders that hold installed packages."""

# CI runners obey these commands in a job's output: ``::`` at the start of a line, also after whitespace, and ``##[``,
# ``##vso[``, ``##teamcity[`` anywhere. Each match ends with the character to escape.
_COMMAND = re.compile(r"^[^\S\n]*:(?=:)|#(?=#\w*\[)", re.MULTILINE)
# Line beginnings that make Buildkite and Travis fold the lines below.
_FOLD = re.compile(
    r"^(?:-(?=--[^\S\n])|\+(?=\+\+[^\S\n])|~(?=~~[^\S\n])|\^(?=\^\^[^\S\n]+\+\+\+)|t(?=ravis_(?:fold|time):))",
    re.MULTILINE,
)
# A path must not contain ``::``, which ends the path in a node id, or invisible characters that break a line, control a
# terminal, change the direction of writing, or cannot be encoded.
_NOT_IN_A_PATH = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|::|#(?=#\w*\[)"
)
# Characters that have no meaning to pytest and need no quotes in a shell.
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_NOT_IN_A_NODE = re.compile(r"[^ -~]")

_WWW = re.compile(r"(www)\.", re.IGNORECASE)
_MARKUP = str.maketrans(
    {
        **{char: f"\\{char}" for char in "\\`*_[]>|"},
        # In a comment, mentions would notify people, and references and mail addresses would become links. Some are
        # matched after decoding, so a zero-width space separates the mark from the next character.
        **{char: f"&#{ord(char)};&#8203;" for char in "@#"},
        "<": "&lt;",
        "&": "&amp;",
    }
)


def calling_frame() -> FrameType:
    """Return the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame


def calling_file() -> str:
    """Return the file of the innermost call outside this package."""
    return calling_frame().f_code.co_filename


def printable(text: str, *, keep: str = "\n\t", folds: bool = True) -> str:
    r"""Escape everything in ``text`` that a terminal or a CI runner would interpret rather than show.

    Escape every unprintable character that is not in ``keep``, and the first character of each command to a CI runner.
    If ``folds`` is False, also escape line beginnings that make a CI runner fold its log; the default allows them for
    diff headings. Printable text stays unchanged.

    >>> print(printable("  ::error::no"), printable("see ##[group]", keep=""))
      \x3a:error::no see \x23#[group]
    """
    if not text.isprintable():
        lines = text.split("\n") if "\n" in keep else [text]
        text = "\n".join(line if line.isprintable() else _line(line, keep) for line in lines)
    if "##" in text or ("::" in text and any(line.lstrip().startswith("::") for line in text.split("\n"))):
        text = _COMMAND.sub(lambda found: found[0][:-1] + _spelled_out(found[0][-1]), text)
    return text if folds else _FOLD.sub(lambda found: _spelled_out(found[0]), text)


def escape_markdown(text: str) -> str:
    """Return ``text`` on one line with markup escaped, so that it cannot begin a table cell, a tag or a link."""
    text = printable(" ".join(text.split())).translate(_MARKUP)
    # GitHub also links addresses without markup.
    return _WWW.sub(r"\1&#46;", text.replace("://", "&#58;//"))


def holds_command(text: str) -> bool:
    """Return True if a CI runner would find a command in the unescaped ``text``."""
    return _COMMAND.search("\n".join(text.splitlines())) is not None


def node_path(path: str) -> str:
    """Return ``path`` in a form for node ids: on one line, without ``::`` or characters that control a terminal."""
    return _NOT_IN_A_PATH.sub(lambda found: "".join(map(_spelled_out, found[0])), path)


def item_name(text: str) -> str:
    """Turn ``text`` into a test item's name: replace all characters except ASCII letters, digits and ``_.-``."""
    return _NOT_IN_A_NAME.sub("-", text) or "-"


def unique(name: str, taken: set[str]) -> str:
    """Return ``name``, with a number appended if ``taken`` already contains it; add the result to ``taken``."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free


def own_name(nodeid: str, id: str) -> str:
    """Return an example's item name, or "" if the name follows from the example's id."""
    name = nodeid.partition("::")[2]
    return "" if name == item_name(id) else name


def node_name(text: str) -> str:
    """Return ``text`` in printable ASCII, for the part of a node id after the file name."""
    return _NOT_IN_A_NODE.sub("-", printable(text, keep="")) or "-"


LONGEST_SHOWN = 60_000
"""The maximum number of characters that a page shows of each text."""


def cut(text: str, longest: int = LONGEST_SHOWN) -> str:
    """Return ``text``; if it is longer than ``longest`` characters, replace its middle with a note."""
    if len(text) <= longest:
        return text
    half = longest // 2
    gap = f"[... {len(text) - 2 * half:,} characters are left out here; they are in the ledger ...]"
    return f"{text[:half]}\n{gap}\n{text[-half:]}"


def _line(line: str, keep: str) -> str:
    return "".join(char if char.isprintable() or char in keep else _spelled_out(char) for char in line)


def _spelled_out(char: str) -> str:
    escaped = char.encode("unicode_escape").decode("ascii")
    return escaped if escaped != char else f"\\x{ord(char):02x}"


def error_text(error: BaseException) -> str:
    """Return an error's type, and its message if it has one."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def raised_in(error: BaseException, *, skips: Callable[[str], bool]) -> str:
    """Return ``file:line in function`` of the innermost frame that ``skips`` does not exclude, or ``""``."""
    # Only show positions: lines and variables of a frame may contain secrets.
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    for code, line in reversed(frames):
        if not skips(code.co_filename):
            return f"{portable_path(code.co_filename)}:{line} in {code.co_name}"
    return ""


def is_of_package(path: str) -> bool:
    """Return True if a source file belongs to an installed package."""
    return not PACKAGE_FOLDERS.isdisjoint(path.split(os.sep))


def is_installed(path: str) -> bool:
    """Return True if a source file belongs to an installed package or to the standard library."""
    return is_of_package(path) or path.startswith((sys.base_prefix, "<"))


def portable_path(path: str) -> str:
    """Return the part of a source file's path that is the same on every machine.

    The result is the part after ``site-packages`` or the working folder, or else the file's name.
    """
    _, installed, inside = path.rpartition(f"{os.sep}site-packages{os.sep}")
    if installed:
        return inside
    try:
        project = os.path.join(os.getcwd(), "")
    except OSError:  # the folder is gone
        return os.path.basename(path)
    return path.removeprefix(project) if path.startswith(project) else os.path.basename(path)
