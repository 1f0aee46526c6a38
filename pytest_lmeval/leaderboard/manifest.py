"""Under what circumstances a run took place, without its secrets."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["HIDDEN", "build_manifest", "redact_arguments", "redact_options"]

# Whole words at the end of a name: api_key and Authorization, but neither max_tokens nor author.
_SECRET_NAME = re.compile(
    r"(?:^|[^a-z])(?:key|apikey|token|secret|password|passwd|credentials?|auth|authorization|bearer)$", re.IGNORECASE
)
_INNER_SECRET = re.compile(r"(?:key|token|secret|password|authorization|bearer)[\"']?\s*[=:]", re.IGNORECASE)
_URL_SECRET = re.compile(r"(\w+://)[^/@\s]+@")
_HARMLESS = frozenset({"--lm-threshold", "-k", "-m"})
HIDDEN = "***"
"""What is written in place of a secret."""
_PACKAGES = ("pytest-lmeval", "pytest", "pytest-xdist", "pytest-json-report")


def build_manifest(project: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return versions, platform and git commit, and whatever ``facts`` adds."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": platform.platform(),
        "git": _git(project),
        **facts,
    }


def redact_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` as JSON values, without what is named like a secret or stands as one in a URL."""
    redacted: dict[str, Any] = json.loads(json.dumps(_redact(dict(options)), default=str))
    return redacted


def redact_arguments(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` without the values that are named like a secret, and without the passwords in URLs."""
    return [_redact_argument(argument) for argument in argv]


def _redact(value: Any, name: str = "") -> Any:
    if _SECRET_NAME.search(name):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: _redact(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(inner) for inner in value]
    return _URL_SECRET.sub(rf"\1{HIDDEN}@", value) if isinstance(value, str) else value


def _redact_argument(argument: str) -> str:
    option, equals, rest = argument.partition("=")
    # --lm-adapter-arg NAME=VALUE may come in one piece or two.
    name, inner, value = rest.partition("=") if option == "--lm-adapter-arg" else (option, equals, rest)
    prefix = f"{option}={name}=" if option == "--lm-adapter-arg" else f"{option}="
    if not equals or not inner or option in _HARMLESS:
        return str(_redact(argument))
    if _SECRET_NAME.search(name) or _INNER_SECRET.search(value):
        return f"{prefix}{HIDDEN}"
    return f"{prefix}{_redact(value)}"


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
