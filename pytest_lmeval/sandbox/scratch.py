"""The private working folder of one program."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from pytest_lmeval.errors import SandboxError

__all__ = ["make", "remove"]


def make() -> str:
    """Return the path of a new empty folder of mode 700; raise `SandboxError` if there can be none."""
    try:
        return os.path.realpath(tempfile.mkdtemp(prefix="lmeval-"))
    except OSError as error:
        raise SandboxError(f"no scratch folder in {tempfile.gettempdir()!r}: {error}") from error


def remove(path: str) -> None:
    """Remove the folder whatever a program did inside; raise `SandboxError` if something is left."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        # Folders without permissions, or nested too deep for Python: these tools follow no link and have no such limit.
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", path], check=False, capture_output=True)
    if os.path.lexists(path):
        raise SandboxError(f"the scratch folder {path!r} could not be removed")
