"""Install this package, at the version that the action is used at, and what is tested."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path


def command() -> list[str]:
    """Return the command of pip."""
    here = str(Path(__file__).parents[1])
    extras = os.environ.get("EXTRAS", "").strip()
    wanted = f"{here}[{extras}]" if extras else here
    return [sys.executable, "-m", "pip", "install", wanted, *_beside()]


def _beside() -> list[str]:
    """Return what is asked for, else the project if it can be installed, else its requirements."""
    if given := shlex.split(os.environ.get("INSTALL", "")):
        return given
    project = Path("pyproject.toml")
    declared = project.is_file() and any(
        line.strip() in ("[project]", "[build-system]") for line in project.read_text("utf-8").splitlines()
    )
    if declared or Path("setup.py").is_file():
        return ["-e", "."]
    return ["-r", "requirements.txt"] if Path("requirements.txt").is_file() else []


if __name__ == "__main__":
    sys.exit(subprocess.run(command(), check=False).returncode)
