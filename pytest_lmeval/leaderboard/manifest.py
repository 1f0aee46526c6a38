"""Under what circumstances a run took place, without its secrets."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("pytest-lmeval", "pytest", "pytest-xdist", "pytest-json-report")


def build_manifest(project: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return versions, platform and git commit, and whatever ``facts`` adds."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": platform.platform(),
        "git": _git(project),
        **facts,
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git(project: Path) -> dict[str, Any] | None:
    commit = _run_git(project, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(_run_git(project, "status", "--porcelain", "--untracked-files=no"))}


def _run_git(project: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=project, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
