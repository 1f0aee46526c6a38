"""Handle images, audio and other files in prompts: their sources, types and bytes.

A :class:`~pytest_lmeval.types.Media` holds no bytes. When a request is built, :func:`read` reads the bytes, and refuses
bytes that have changed since collection. In this package, :mod:`.sources` creates media from files, addresses and
bytes, :mod:`.content` detects their types, and :mod:`.given` reads the media in task files' prompts.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from pathlib import Path

from pytest_lmeval.errors import RequestRefused, UsageError
from pytest_lmeval.media.sources import MediaFault, media_of
from pytest_lmeval.text import calling_file
from pytest_lmeval.types import Media

__all__ = ["Audio", "File", "Image", "base64_of", "read"]


def Image(source: str | Path | bytes, *, detail: str = "") -> Media:  # noqa: N802  # it reads like a class
    """Return an image for a prompt.

    For example, ``lm.ask(["What is this?", Image("cat.png")])`` asks about a file in the calling file's folder.
    ``source`` is a path, a ``data:`` address, or bytes. A path given as a string must be inside the project, but a
    :class:`~pathlib.Path` may point to any file. For servers with OpenAI's interface, ``detail`` is ``low``, ``high``
    or ``auto``. Raise UsageError for a file that is unreadable, too large, or not a PNG, JPEG, GIF or WebP image.
    """
    return _made("image", source, detail)


def Audio(source: str | Path | bytes) -> Media:  # noqa: N802  # it reads like a class
    """Return audio (WAV, MP3, FLAC, Ogg or M4A) for a prompt, from a ``source`` as in :func:`Image`."""
    return _made("audio", source)


def File(source: str | Path | bytes) -> Media:  # noqa: N802  # it reads like a class
    """Return a document, such as a PDF or text file, for a prompt, from a ``source`` as in :func:`Image`."""
    return _made("file", source)


def of_path(path: Path) -> Media:
    """Return the file at ``path`` as an image, audio or other file, depending on its content."""
    return _made("", path)


def _made(kind: str, source: str | Path | bytes, detail: str = "") -> Media:
    caller = Path(calling_file())
    try:
        return media_of(kind, source, caller.parent, detail)
    except MediaFault as fault:
        raise UsageError(f"{kind.capitalize() or 'Path'}: {fault}") from None


def read(media: Media) -> bytes:
    """Return the bytes of ``media``; raise RequestRefused if they are unreadable or have changed since collection."""
    if not media.sha256:
        raise RequestRefused(f"{media}: an address, which only the model's server reads")
    try:
        data = Path(media.path).read_bytes()
    except OSError as error:
        raise RequestRefused(f"{media}: cannot be read any more: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != media.sha256:
        raise RequestRefused(f"{media}: changed between collection and asking; run again")
    return data


def base64_of(media: Media) -> str:
    """Return the bytes of ``media`` in base64; raise RequestRefused as :func:`read` does."""
    return b64encode(read(media)).decode("ascii")
