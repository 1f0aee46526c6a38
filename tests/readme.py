"""The commands of the README that make an environment, for CI and for the tests: nothing has a copy of them.

``python3 tests/readme.py 2`` prints the second.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["commands"]

README = Path(__file__).parents[1] / "README.md"


def commands() -> list[str]:
    """Return the ``sh`` blocks below the heading "Try it" that make an environment, in their order."""
    section = README.read_text("utf-8").partition("\n## Try it\n")[2].partition("\n## ")[0]
    return [block for block in re.findall(r"```sh\n(.*?)\n```", section, re.DOTALL) if "python3 -m venv" in block]


if __name__ == "__main__":
    print(commands()[int(sys.argv[1]) - 1])
