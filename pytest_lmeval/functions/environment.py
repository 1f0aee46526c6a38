"""Set environment variables that point an application's clients to the endpoint."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_lmeval.functions.lm import LmBase

_V1 = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
# These clients add the rest of the path themselves.
_ROOT = (
    *("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    *("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
)
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY")
_AZURE = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
_TYPE = "OPENAI_API_TYPE"
_DEFAULTS = {"OPENAI_API_VERSION": "2024-10-21", "AZURE_API_VERSION": "2024-10-21"}
# Each of these variables would add an account, replace the key, or point to another server.
_REMOVED = (
    *("OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT", "OPENAI_PROJECT_ID"),
    *("OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS"),
    *("AZURE_OPENAI_AD_TOKEN", "AZURE_AD_TOKEN"),
    *("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
)
_NO_PROXY = ("no_proxy", "NO_PROXY")
_LOOPBACK = ("127.0.0.1", "localhost")
_NAMES = (*_V1, *_ROOT, *_KEYS, _TYPE, *_DEFAULTS, *_REMOVED, *_NO_PROXY)


@contextmanager
def pointed(lm: LmBase) -> Iterator[None]:
    """Set the variables for ``lm``'s example, with a new address for each repeat, and restore them afterwards.

    The clients of OpenAI, Azure OpenAI and Anthropic read these variables, and so do some other clients. Child
    processes inherit the variables.
    """
    before = {name: os.environ[name] for name in _NAMES if name in os.environ}
    module, members = _of_module(before)
    lm.on_enter = _point
    try:
        for name in _REMOVED:
            os.environ.pop(name, None)
        os.environ.update(_shared(before))
        if lm.state is not None:
            _point(lm)
        yield
    finally:
        lm.on_enter = None
        for name in _NAMES:
            os.environ.pop(name, None)
        os.environ.update(before)
        for name, value in members.items():
            setattr(module, name, value)


def _point(lm: LmBase) -> None:
    base_url, root = lm.base_url, lm.base_url.removesuffix("/v1")
    os.environ.update(dict.fromkeys(_V1, base_url) | dict.fromkeys(_ROOT, root) | dict.fromkeys(_KEYS, lm.token))
    module = sys.modules.get("openai")
    if getattr(module, "azure_endpoint", None) is not None:
        module.azure_endpoint = root  # type: ignore[union-attr]  # only a module with the member gets here


def _shared(before: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose values are the same for all repeats."""
    found = {name: before.get(name, value) for name, value in _DEFAULTS.items()}
    found[_TYPE] = before.get(_TYPE, _api_type(before))
    if any(name.lower().endswith("_proxy") and name not in _NO_PROXY for name, value in os.environ.items() if value):
        found |= {name: _with_loopback(before, name) for name in _NO_PROXY}
    return found


def _api_type(before: Mapping[str, str]) -> str:
    """Return the kind of client, ``openai`` or ``azure``, for module functions such as ``openai.embeddings.create``."""
    return "azure" if "OPENAI_API_KEY" not in before and any(name in before for name in _AZURE) else "openai"


def _with_loopback(before: Mapping[str, str], name: str) -> str:
    """Return the hosts that need no proxy, including this machine; if ``name`` is unset, use its other spelling."""
    given = before.get(name) or next((before[each] for each in _NO_PROXY if before.get(each)), "")
    hosts = [host for each in given.split(",") if (host := each.strip())]
    return ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])


def _of_module(before: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """Return the module ``openai``, which reads two of the variables when imported, and the values to restore in it.

    Choose the kind of client for the module's functions, such as ``openai.chat.completions.create``, unless the project
    has chosen it.
    """
    module: Any = sys.modules.get("openai")
    members = {name: getattr(module, name) for name in ("api_type", "azure_endpoint") if hasattr(module, name)}
    if "api_type" in members and members["api_type"] is None:
        module.api_type = _api_type(before)
    return module, members
