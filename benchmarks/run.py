"""Measures the plugin beside plain parametrized tests and prints one table.

Usage: ``python benchmarks/run.py [--quick] [--only NAME]...``; about ten minutes, seconds with ``--quick``. Run it on
an idle machine with the plugin installed. The method is described in ``docs/reference/measured.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from machine import describe_machine
from measure import interleave
from parts import BARE, FULL, PARTS, QUICK
from project import write_scene
from table import render_table


def main() -> None:
    """Run the parts that were asked for and print their rows."""
    options = _parse()
    sizes = QUICK if options.quick else FULL
    started = time.monotonic()
    rows = []
    with tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as scene:
        write_scene(Path(scene), sizes.files)
        for name in options.only or PARTS:
            # The same run before every part: where it differs, the machine's speed did, and so do the figures.
            bare = interleave({"bare": BARE}, Path(scene), min(3, sizes.rounds))["bare"]
            print(f"measuring: {name} (bare pytest takes {bare.cpu * 1000:.0f} ms of CPU)", flush=True)
            rows += PARTS[name](Path(scene), sizes)
    print(f"\n{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    print(render_table(rows))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure pytest-lmeval beside plain parametrized tests.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="NAME", help=f"one of {', '.join(PARTS)}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
