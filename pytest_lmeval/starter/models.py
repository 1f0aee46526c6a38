"""Parse the model that the user chooses for a new project, and derive its settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name

APPLICATION = "openai:gpt-4o-mini"
"""The default model of a new project's eval function."""
KINDS = ("toy", "openai:NAME", "anthropic:NAME", "hf:PATH", "module:Object")
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_ON_THIS_MACHINE = re.compile(r"localhost|127\.[\d.]+|\[?::1\]?|0\.0\.0\.0")


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The values of ``--model`` and ``--base-url``, as :func:`parse_model` returns them.

    ``named`` is the model that an eval function names in its requests, if the adapter has no model of its own.
    """

    spec: str
    base_url: str = ""
    named: str = ""

    @property
    def kind(self) -> str:
        """The kind of adapter: ``toy``, ``openai``, ``anthropic``, ``hf``, or ``object`` for a ``module:Object``."""
        kind = self.spec.partition(":")[0]
        return kind if kind in ("toy", "openai", "anthropic", "hf") else "object"

    @property
    def profile(self) -> str:
        """The name of the profile that stores the address, or "" if there is no address."""
        last = re.split("[/:]", self.spec)[-1] or "app"
        return safe_name(last, "app") if self.base_url else ""

    @property
    def key(self) -> str:
        """The environment variable of the API key, or "" for a server on this machine and for other adapters."""
        return "" if self.is_local else _KEYS.get(self.kind, "")

    @property
    def is_local(self) -> bool:
        """True if the server's address is on this machine, so that other machines cannot reach it."""
        return bool(_ON_THIS_MACHINE.fullmatch(urlsplit(self.base_url).hostname or ""))

    @property
    def folder(self) -> Path | None:
        """The folder of a local ``hf`` model, or None for a model on the hub or another adapter."""
        name = self.spec.partition(":")[2]
        return Path(name).expanduser() if self.kind == "hf" and name.startswith(("/", ".", "~")) else None


def parse_model(spec: str, base_url: str = "") -> ChosenModel:
    """Return the model for a spec and an address; raise UsageError for an invalid spec or address."""
    model = ChosenModel(spec, base_url.rstrip("/"))
    kind, colon, name = spec.partition(":")
    known = spec == "toy" or (kind in ("openai", "anthropic", "hf") and name) or _OBJECT.fullmatch(spec)
    if not known or not spec.isprintable() or (kind == "toy" and colon):
        raise UsageError(f"--model {spec!r}: expected one of {', '.join(KINDS)}")
    if base_url and model.kind not in _KEYS:
        raise UsageError(f"--base-url: {spec} has no address; openai:NAME and anthropic:NAME have one")
    if base_url:
        _check_address(base_url)
    return model


def of_application(model: ChosenModel) -> ChosenModel:
    """Return the model for an application that names it in each request; return a model without a server unchanged."""
    kind, _, name = model.spec.partition(":")
    return replace(model, spec=f"{kind}:", named=name) if kind in _KEYS else model


def check_module(model: ChosenModel, folder: Path, pythonpath: str | Sequence[str] = ()) -> None:
    """Raise UsageError if the model is in a module that is neither in the project nor installed.

    ``pythonpath`` is pytest's ini option: folders to search in addition to the project and its ``src``.
    """
    top = model.spec.partition(":")[0].partition(".")[0]
    if model.kind != "object" or find_spec(top) is not None:
        return
    below = ["", "src", *(pythonpath.split() if isinstance(pythonpath, str) else pythonpath)]
    if not any((folder / each / name).exists() for each in below for name in (top, f"{top}.py")):
        raise UsageError(f"--model {model.spec!r}: no module {top!r} in {folder} or its src, and none is installed")


def _check_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not base_url.isprintable():
        raise UsageError(f"--base-url {base_url!r}: expected an address such as http://localhost:8000/v1")
    if parts.username or parts.password:
        raise UsageError("--base-url: an address with a user or password in it is not written to a file")
