"""Images, audio and other files in prompts: their sources, their types and their bytes.

A :class:`~pytest_lmeval.types.Media` has no bytes. :func:`read` reads them when a request is built, and refuses bytes
that changed since the collection. :mod:`.sources` makes media from files, addresses and bytes, :mod:`.content` finds
their type, and :mod:`.given` reads the parts of prompts in task files.
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

    ``lm.ask(["What is this?", Image("cat.png")])`` asks about a file beside the calling file. ``source`` is a path, a
    ``data:`` address, or bytes. A text must name a file of the project; a :class:`~pathlib.Path` may name any file.
    ``detail`` is ``low``, ``high`` or ``auto``, for servers with OpenAI's interface. Raise UsageError for a file that
    cannot be read, is too large, or is no PNG, JPEG, GIF or WebP.
    """
    return _made("image", source, detail)


def Audio(source: str | Path | bytes) -> Media:  # noqa: N802  # it reads like a class
    """Return audio for a prompt, from a ``source`` as in :func:`Image`: WAV, MP3, FLAC, Ogg or M4A."""
    return _made("audio", source)


def File(source: str | Path | bytes) -> Media:  # noqa: N802  # it reads like a class
    """Return a document for a prompt, from a ``source`` as in :func:`Image`: for example PDF or text."""
    return _made("file", source)


def of_path(path: Path) -> Media:
    """Return the file at ``path`` as an image, audio or a file, by its content."""
    return _made("", path)


def _made(kind: str, source: str | Path | bytes, detail: str = "") -> Media:
    caller = Path(calling_file())
    try:
        return media_of(kind, source, caller.parent, detail)
    except MediaFault as fault:
        raise UsageError(f"{kind.capitalize() or 'Path'}: {fault}") from None


def read(media: Media) -> bytes:
    """Return the bytes of ``media``; raise RequestRefused if they are not the bytes that were collected."""
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
