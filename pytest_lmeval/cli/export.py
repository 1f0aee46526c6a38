"""``lmeval export KEY [-o FILE]``: a declarative task as one file, with what it includes written out."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from pytest_lmeval.atomic import is_stream, link_target, write_atomically
from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.placing import Placing, changes, differences, refused
from pytest_lmeval.cli.task_folder import Project, read_document
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.document import Includer
from pytest_lmeval.text import holds_command

_INCLUDE = re.compile(
    r"""^(?P<indent>[ ]*+)(?P<before>.*?)!include[ ]+(?P<name>"[^"]*"|'[^']*'|[^#\s,\]}]+)(?P<after>.*)$"""
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("key", metavar="KEY", help="the key of the task")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="where to (default: standard output)")
    parser.add_argument("--force", action="store_true", help="replace another file, too, and show a diff")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the task; raise UsageError rather than replace a file that is not this task's."""
    found = Project().declarative(options.key)
    text = written_out(found.path.read_text(encoding="utf-8-sig"), found.path)
    if options.output is None:
        if holds_command(text):
            # Spelled out it would be another task; as it is, it would give orders.
            raise UsageError(
                f"{found.path}: holds a text that CI runners take for a command; write a file with -o FILE"
            )
        sys.stdout.write(text)
        return 0
    if is_stream(options.output):
        write_atomically(options.output, text.encode("utf-8"))
        return 0
    output = link_target(options.output)
    there = read_document(output)
    stored = output if there is not None and there.get("key") == found.key else None
    placing = Placing(found.path, output, text.encode("utf-8"), stored, frozenset())
    reasons = refused([placing], output.parent, force=options.force)
    if reasons:
        raise UsageError("; ".join(reasons))
    show(differences(changes([placing])) if options.force else ())
    try:
        write_atomically(output, placing.data)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot be written: {error.strerror}") from None
    show([f"wrote {output}"])
    return 0


def written_out(text: str, path: Path) -> str:
    """Return the YAML of the file at ``path`` with the text of every file that it includes instead of its name."""
    includer = Includer(path)
    return "".join(_line(line, includer) for line in text.splitlines(keepends=True))


def _line(line: str, includer: Includer) -> str:
    match = _INCLUDE.match(line.rstrip("\r\n"))
    if match is None or "#" in match["before"]:
        return line
    data = includer.read(match["name"].strip("\"'")).data.decode("utf-8").replace("\r\n", "\n")
    head = f"{match['indent']}{match['before']}"
    if match["after"].strip() or not _fits_a_block(data):
        return f"{head}{json.dumps(data)}{match['after']}\n"
    # One step further in than the key: a list element's key comes after its dash.
    depth = len(match["indent"]) + 2 * match["before"].count("- ") + 2
    body = "".join(f"{' ' * depth}{each}\n" if each else "\n" for each in data.removesuffix("\n").split("\n"))
    return f"{head}|\n{body}"


def _fits_a_block(text: str) -> bool:
    """Tell whether a literal block gives back the very text."""
    lines = text.split("\n")
    ends_once = text.endswith("\n") and not text.endswith("\n\n")
    plain = all(line.isprintable() or line.replace("\t", "").isprintable() for line in lines)
    return ends_once and plain and not lines[0].startswith((" ", "\t")) and lines[0] != ""
