"""Files that nobody may touch, and how to tell that someone did."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Canaries", "plant"]

# In the future, so that reading a file does not bring its access time up to date.
READ_NS = 4_000_000_000 * 10**9
WRITTEN_NS = 1_000_000_000 * 10**9
ATTRIBUTE = "user.canary"


@dataclass(frozen=True, slots=True)
class Canaries:
    """A folder outside, one in the home, a task file and another program's scratch, all with a secret in them."""

    roots: tuple[Path, ...]
    before: Mapping[str, tuple[object, ...]]

    def changes(self) -> list[str]:
        """Return what is different from how it was planted."""
        after = _look(self.roots)
        return [
            f"{path}: {_difference(self.before.get(path), after.get(path))}"
            for path in sorted(self.before.keys() | after.keys())
            if self.before.get(path) != after.get(path)
        ]


def plant(base: Path, scratches: Path, token: str, secret: str) -> tuple[Canaries, dict[str, str]]:
    """Make the files below ``base`` and ``scratches`` and return them with their paths by name."""
    outside, home, tasks, beside = roots = (base / "out", base / "home", base / "tasks", scratches / f"other-{token}")
    for root in roots:
        root.mkdir(parents=True)
    (outside / "empty").mkdir()
    (outside / "link").symlink_to("canary")
    files = {"file": outside / "canary", "home": home / "canary", "task": tasks / "t.jsonl", "beside": beside / "mine"}
    for path in files.values():
        path.write_text(f'{{"prompt": "f(3)", "answer": "{secret}"}}\n', encoding="utf-8")
    (outside / "canary_module.py").write_text(f"SECRET = {secret!r}\n", encoding="utf-8")
    for path in files.values():
        path.chmod(0o640)
        _set_attribute(path, secret)
    for path in _below(roots):
        os.utime(path, ns=(READ_NS, WRITTEN_NS), follow_symlinks=False)
    paths = {"folder": outside, "empty": outside / "empty", "link": outside / "link", **files}
    return Canaries(roots, _look(roots)), {name: str(path) for name, path in paths.items()}


def _set_attribute(path: Path, secret: str) -> None:
    if hasattr(os, "setxattr"):
        try:
            os.setxattr(path, ATTRIBUTE, secret.encode())
        except OSError:
            # Not every file system has them; programs that are after them are left out there.
            return


def _below(roots: tuple[Path, ...]) -> Iterator[Path]:
    for root in roots:
        for folder, folders, files in os.walk(root):
            yield from (Path(folder, name) for name in folders + files)
        if root.exists():
            yield root


def _look(roots: tuple[Path, ...]) -> dict[str, tuple[object, ...]]:
    return {str(path): _facts(path) for path in _below(roots)}


def _facts(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(found.st_mode) else ""
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    attributes = _attributes(path)
    return (content, oct(found.st_mode), found.st_uid, found.st_gid, found.st_nlink, found.st_ino, *times, attributes)


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    except OSError:
        return ()


NAMES = ("content", "mode", "owner", "group", "links", "inode", "read", "written", "changed", "attributes")


def _difference(before: tuple[object, ...] | None, after: tuple[object, ...] | None) -> str:
    if before is None or after is None:
        return "is new" if before is None else "is gone"
    return ", ".join(name for name, old, new in zip(NAMES, before, after, strict=True) if old != new)
