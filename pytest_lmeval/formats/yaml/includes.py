"""``!include FILE``: the text of a file beside the one that names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_lmeval.formats.yaml.document import Included

MAX_BYTES = 1 << 18
_YAML = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Includer:
    """Reads what the file at ``path`` may include: text files of its own folder and the folders below it."""

    path: Path

    def read(self, name: str) -> Included:
        """Return the file called ``name``; raise ValueError that says why it cannot be had."""
        folder = self.path.parent.resolve()
        file = (folder / name).resolve()
        if not name.strip():
            raise ValueError("!include expects the name of a file")
        if not file.is_relative_to(folder):
            raise ValueError(f"!include {name}: outside of the folder of {self.path.name}; only files in it are read")
        if file == self.path.resolve():
            raise ValueError(f"!include {name}: the file includes itself")
        if file.suffix in _YAML:
            raise ValueError(f"!include {name}: only text is included, such as a Python snippet; not YAML")
        return Included(file, _read(file, name))


def _read(file: Path, name: str) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"!include {name}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"!include {name}: more than {MAX_BYTES:,} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"!include {name}: not UTF-8 (byte {error.start + 1})") from None
    return data
