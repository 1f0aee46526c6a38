"""What programs do out of habit and may not do here, made harmless in their own folder instead of failing.

The kernel cannot tell whose file a change of mode or times is meant for, so it denies all of them.
"""

from __future__ import annotations

import functools
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["forgive"]

ABILITIES = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


def forgive(folder: str) -> None:
    """Let changes of modes and times below ``folder`` do nothing, and copies leave attributes out."""
    for name in ("chmod", "utime"):
        setattr(os, name, _forgiving(getattr(os, name), folder))
    shutil._copyxattr = lambda *args, **kwargs: None  # type: ignore[attr-defined]  # private, and named nowhere


def _forgiving(function: Callable[..., None], folder: str) -> Callable[..., None]:
    @functools.wraps(function)
    def forgiving(path: Any, *args: Any, **kwargs: Any) -> None:
        try:
            function(path, *args, **kwargs)
        except PermissionError:
            if isinstance(path, int) or not os.path.realpath(os.fsdecode(path)).startswith(f"{folder}/"):
                raise

    for ability in ABILITIES:
        if function in ability:
            ability.add(forgiving)
    return forgiving
