"""Build links to this version's docs for use in messages; an installed package has no ``docs/`` folder."""

from __future__ import annotations

from pytest_lmeval import __version__

__all__ = ["REPOSITORY", "page"]

REPOSITORY = "https://github.com/pytest-lmeval/pytest-lmeval"


def page(name: str, version: str = __version__) -> str:
    """Return the URL of the page ``name``, such as ``tasks.md#metrics``, for ``version``."""
    ref = "main" if ".dev" in version else f"v{version}"
    return f"{REPOSITORY}/blob/{ref}/docs/{name}"
