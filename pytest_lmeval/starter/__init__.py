"""Something small that runs green at once: two tasks, and a workflow that runs them on every pull request.

It writes the files below ``files/``, path for path.
"""

from __future__ import annotations

from pathlib import Path

from pytest_lmeval.errors import UsageError


def write_starter(folder: Path) -> list[Path]:
    """Write the starter's files below ``folder``, which need not exist yet; return their paths.

    Raises UsageError that names everything in the way; nothing is written then.
    """
    root = Path(__file__).with_name("files")
    files = {folder / file.relative_to(root): file for file in sorted(root.rglob("*")) if file.is_file()}
    try:
        if taken := sorted({str(path) for target in files for path in _in_the_way(target)}):
            names = ", ".join(taken)
            raise UsageError(f"{names}: in the way, and never overwritten; move it, or choose another folder")
        for target, file in files.items():
            _copy(file, target)
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    return list(files)


def _in_the_way(target: Path) -> list[Path]:
    """Return the target if it exists (a dangling link does), and the parents that are no folder."""
    taken = [target] if target.exists() or target.is_symlink() else []
    return taken + [parent for parent in target.parents if parent.exists() and not parent.is_dir()]


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as copy:
        copy.write(file.read_bytes())
