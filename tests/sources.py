"""The projects that runs inside tests are about, as files that one can open, run by hand, lint and type-check."""

from __future__ import annotations

from pathlib import Path

from tests import needs

__all__ = ["PROJECTS", "source"]

PROJECTS = Path(__file__).parent / "projects"


def source(name: str) -> str:
    """Return the text of a file of ``tests/projects``."""
    needs.of_projects(name)
    return (PROJECTS / name).read_text("utf-8")
