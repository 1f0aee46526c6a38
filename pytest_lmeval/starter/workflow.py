"""Create a workflow that runs a project's evals against the baseline, and comments on the pull request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from pytest_lmeval.starter.models import ChosenModel
from pytest_lmeval.starter.settings import parsed, read_text

_PACKAGE = "pytest-lmeval"


def evals_workflow(folder: Path, model: ChosenModel, paths: Sequence[str]) -> str:
    """Return the text of ``.github/workflows/evals.yml`` for the tests at ``paths``."""
    text = Path(__file__).with_name("files").joinpath("evals.yml").read_text("utf-8")
    key = model.key
    secrets = f"        env:\n          {key}: ${{{{ secrets.{key} }}}}\n" if key else ""
    # A pull request from a fork has no access to secrets, so its run would fail without the key.
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    condition = f"    if: github.event_name != 'pull_request' || {own}\n" if key else ""
    local = "          # The model's address is this machine's own: name one that the job can reach.\n"
    return (
        text.replace("@INSTALL@", _install(folder, model))
        .replace("@PATHS@", " ".join(paths))
        .replace("    # @CONDITION@\n", condition)
        .replace("        # @SECRETS@\n", secrets)
        .replace("      # @LOCAL@\n", local if model.is_local else "")
    )


def _install(folder: Path, model: ChosenModel) -> str:
    """Return the command that installs this package, and the project if it can be installed."""
    extra = "[hf]" if model.kind == "hf" else ""
    project = folder / "pyproject.toml"
    content = parsed(project, read_text(project))
    parts = ["-e ."] if content.keys() & {"project", "build-system"} or (folder / "setup.py").exists() else []
    if not parts and (folder / "requirements.txt").exists():
        parts = ["-r requirements.txt"]
    address = origin()
    wanted = f"{_PACKAGE}{extra} @ {address}" if address else f"{_PACKAGE}{extra}"
    return " ".join(["pip install", *parts, f"'{wanted}'" if extra or address else wanted])


def origin() -> str:
    """Return the address from which this package was installed, or "" for a package index or a local file."""
    address, revision = _recorded().get("url", ""), _recorded().get("vcs_info", {})
    if not isinstance(address, str) or not address.startswith("https://"):
        return ""
    return f"{revision['vcs']}+{address}@{revision['commit_id']}" if revision else address


def comes_from_here() -> bool:
    """Return True if this package was installed from a local folder or file, which a workflow cannot access."""
    return str(_recorded().get("url", "")).startswith("file:")


def _recorded() -> dict[str, Any]:
    """Return the installer's record of this package's origin, or an empty dict if there is no record."""
    try:
        found = json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
