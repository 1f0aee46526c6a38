"""``lmeval run [ARGUMENT...]``: run pytest so that a project's code cannot turn a failure into exit code 0."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from pytest_lmeval.cli.output import complain
from pytest_lmeval.errors import INCOMPLETE
from pytest_lmeval.records.receipt import RECEIPT, read_receipt

_PLUGIN = "pytest_lmeval.plugin.record.receipt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept any arguments, including pytest's options."""
    parser.usage = "lmeval run [ARGUMENT ...]"
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="of pytest: paths and options")
    # No argument begins with this prefix, so argparse leaves options to pytest.
    parser.prefix_chars = "\0"
    parser.set_defaults(run=run, help=parser.format_help)


def run(options: argparse.Namespace) -> int:
    """Run pytest in a separate process; return its exit code, but 0 only if the run also recorded an exit code of 0."""
    if options.arguments in (["-h"], ["--help"]):
        print(options.help(), end="")
        return 0
    with tempfile.TemporaryDirectory(prefix="lmeval-") as folder:
        receipt = Path(folder) / "receipt"
        code = _pytest(options.arguments, receipt)
        written = read_receipt(receipt)
    if code < 0:
        complain(f"lmeval run: pytest was ended by {signal.Signals(-code).name}")
        return 128 - code
    if code == 0 and written is None:
        complain("lmeval run: pytest exited with 0 but wrote no board: no eval ran, or the process was killed")
        return INCOMPLETE
    if code == 0 and written:
        complain(f"lmeval run: pytest exited with 0, but its run ended with {written}")
    return code or written or 0


def _pytest(arguments: list[str], receipt: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-p", _PLUGIN, *arguments]
    with subprocess.Popen(command, env={**os.environ, RECEIPT: str(receipt)}) as child:
        # A cancelled CI job sends SIGTERM: pass the signal on, and wait until pytest has finished the run.
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        try:
            while True:
                try:
                    return child.wait()
                except KeyboardInterrupt:  # the terminal also sends it to pytest
                    continue
        finally:
            signal.signal(signal.SIGTERM, before)
