"""Under what circumstances a run took place, without its secrets."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["build_manifest", "redact_arguments", "redact_options"]

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_HIDDEN = "***"
_PACKAGES = ("pytest-lmeval", "pytest", "pytest-xdist", "pytest-json-report")


def build_manifest(project: Path, argv: Sequence[str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return versions, platform, git commit and arguments, and whatever ``facts`` adds."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": platform.platform(),
        "git": _git(project),
        "argv": redact_arguments(argv),
        **facts,
    }


def redact_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` with the value of everything that is named like a secret hidden."""
    return {key: _HIDDEN if _SECRET_NAME.search(key) else value for key, value in options.items()}


def redact_arguments(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` with the value hidden in every ``[--option=]NAME=VALUE`` that is named like a secret."""
    return [_redact_argument(argument) for argument in argv]


def _redact_argument(argument: str) -> str:
    first, equals, _ = argument.partition("=")
    if not equals:
        return argument
    if _SECRET_NAME.search(first):
        return f"{first}={_HIDDEN}"
    # --lm-adapter-arg=api_key=VALUE: the name stands between two equals signs.
    inner = argument[len(first) + 1 :].partition("=")
    if inner[1] and _SECRET_NAME.search(inner[0]):
        return f"{first}={inner[0]}={_HIDDEN}"
    return argument


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
