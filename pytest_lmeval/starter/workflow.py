"""The workflow of a new project: install the project, run against the baseline, comment on the pull request."""

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
    # A pull request from a fork has no secrets: its run could only end in an error about the key.
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
    """Return the command that installs the project, where it can be installed, and this package."""
    extra = f"[{model.extra}]" if model.extra else ""
    project = folder / "pyproject.toml"
    content = parsed(project, read_text(project))
    parts = ["-e ."] if content.keys() & {"project", "build-system"} or (folder / "setup.py").exists() else []
    if not parts and (folder / "requirements.txt").exists():
        parts = ["-r requirements.txt"]
    address = origin()
    wanted = f"{_PACKAGE}{extra} @ {address}" if address else f"{_PACKAGE}{extra}"
    return " ".join(["pip install", *parts, f"'{wanted}'" if extra or address else wanted])


def origin() -> str:
    """Return the address that this package was installed from, or none where that is an index or a file here."""
    try:
        recorded = _recorded()
        address, revision = recorded.get("url", ""), recorded.get("vcs_info", {})
    except AttributeError:
        return ""
    if not isinstance(address, str) or not address.startswith("https://"):
        return ""
    if not revision:
        return address
    return f"{revision['vcs']}+{address}@{revision['commit_id']}"


def comes_from_here() -> bool:
    """Tell whether this package was installed from a folder or a file of this machine, where no workflow finds it."""
    try:
        return str(_recorded().get("url", "")).startswith("file:")
    except AttributeError:
        return False


def _recorded() -> Any:
    """Return what the installer noted of where the package is from."""
    try:
        return json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
