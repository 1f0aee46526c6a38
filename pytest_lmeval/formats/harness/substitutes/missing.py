"""A placeholder for a name of a module that is not installed."""

from __future__ import annotations

from typing import Any, NoReturn


class Missing:
    """Replaces an imported name; any use raises ImportError with the package to install."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        top = self._name.partition(".")[0]
        package = {"sklearn": "scikit-learn", "rouge_score": "rouge-score", "PIL": "pillow"}.get(top, top)
        raise ImportError(f"{self._name} is not installed: pip install {package}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __call__ = __getitem__ = __iter__ = __enter__ = __mro_entries__ = _refuse
