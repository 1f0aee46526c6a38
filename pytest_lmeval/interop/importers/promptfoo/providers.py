"""The providers of a config as profiles of pyproject.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.interop.importers.promptfoo.files import Folder, is_reference
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks
from pytest_lmeval.redaction import is_secret_name

Profile = dict[str, Any]
_LOCAL = {"api_key_env": ""}
# By the name in front of the model: the adapter, and options that reach that service.
_SERVICES: Mapping[str, tuple[str, Profile]] = MappingProxyType(
    {
        "openai": ("openai", {}),
        "anthropic": ("anthropic", {}),
        "ollama": ("openai", {"base_url": "http://localhost:11434/v1", **_LOCAL}),
        "localai": ("openai", {"base_url": "http://localhost:8080/v1", **_LOCAL}),
        "llama": ("openai", {"base_url": "http://localhost:8080/v1", **_LOCAL}),
        "vllm": ("openai", {"base_url": "http://localhost:8000/v1", **_LOCAL}),
        "openrouter": ("openai", {"base_url": "https://openrouter.ai/api/v1", "api_key_env": "OPENROUTER_API_KEY"}),
        "groq": ("openai", {"base_url": "https://api.groq.com/openai/v1", "api_key_env": "GROQ_API_KEY"}),
        "deepseek": ("openai", {"base_url": "https://api.deepseek.com/v1", "api_key_env": "DEEPSEEK_API_KEY"}),
        "mistral": ("openai", {"base_url": "https://api.mistral.ai/v1", "api_key_env": "MISTRAL_API_KEY"}),
        "togetherai": ("openai", {"base_url": "https://api.together.xyz/v1", "api_key_env": "TOGETHER_API_KEY"}),
        # Whose models are litellm's, by the prefix that it has for them.
        **dict.fromkeys(("azure", "azureopenai", "bedrock", "google", "vertex", "litellm"), ("litellm", {})),
        "xai": ("openai", {"base_url": "https://api.x.ai/v1", "api_key_env": "XAI_API_KEY"}),
    }
)
_PREFIXES = {
    "azure": "azure/",
    "azureopenai": "azure/",
    "bedrock": "bedrock/",
    "google": "gemini/",
    "vertex": "vertex_ai/",
}
_WAYS = frozenset({"chat", "completion", "completions", "messages", "responses", "converse"})
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "temperature": "temperature",
        "max_tokens": "max_tokens",
        "top_p": "top_p",
        "stop": "stop",
        "seed": "seed",
        "apiBaseUrl": "base_url",
        "apiKeyEnvar": "api_key_env",
        "stream": "stream",
    }
)
_BODY = frozenset(
    {"frequency_penalty", "presence_penalty", "response_format", "reasoning_effort", "top_k", "min_p", "service_tier"}
)
_KNOWN = frozenset({"id", "label", "config"})
_VARIABLE = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{(\w+)\}")


def read_providers(config: Node, folder: Folder, remarks: Remarks) -> dict[str, Profile]:
    """Return the profiles by name; what has no counterpart is noted."""
    found: dict[str, Profile] = {}
    names = FileNames(_SERVICES)
    given = config.at("providers" if config.value.get("providers") is not None else "targets")
    for node in given.elements():
        try:
            for name, profile in _profiles(node, folder, remarks):
                found[names.give(name)] = profile
        except LeftOut as left:
            remarks.leave(left.node or node, left.why)
    return found


def profiles_text(profiles: Mapping[str, Profile]) -> str:
    """Return the tables for pyproject.toml."""
    lines = []
    for name, profile in profiles.items():
        lines += [f"[tool.lmeval.adapters.{_key(name)}]"]
        lines += [*(f"{_key(key)} = {_toml(value)}" for key, value in profile.items()), ""]
    return "\n".join(lines)


def _profiles(node: Node, folder: Folder, remarks: Remarks) -> Iterator[tuple[str, Profile]]:
    if is_reference(node.value):
        for path in folder.find(node):
            for each in folder.parsed(path, node).elements():
                yield from _profiles(each, folder, remarks)
        return
    name, holder = node.value, node
    if isinstance(node.value, dict) and "id" not in node.value and len(node.value) == 1:
        # An older form: {ID: {config: ...}}.
        name, holder = next(iter(node.items()))
    elif isinstance(node.value, dict):
        name = node.value.get("id")
    if not isinstance(name, str):
        raise LeftOut(f"expected the name of a provider, got {name!r:.60}")
    yield _profile(name, holder, remarks)


def _profile(name: str, node: Node, remarks: Remarks) -> tuple[str, Profile]:
    service, _, rest = name.partition(":")
    if service not in _SERVICES or not rest:
        raise LeftOut(f"provider {name!r:.60}: no adapter here has this name; your own is module:Object (adapters.md)")
    adapter, options = _SERVICES[service]
    way, _, model = rest.partition(":")
    if way not in _WAYS or not model:
        way, model = "", rest
    if way == "" and service == "openai" and ":" in rest:
        raise LeftOut(f"provider {name!r:.60}: only chat and completions are asked")
    if adapter == "litellm" and (way.startswith("completion") or model.startswith("embedding")):
        raise LeftOut(f"provider {name!r:.60}: only chats are asked by litellm")
    if "transform" in node.value if isinstance(node.value, dict) else False:
        raise LeftOut(
            "a transform of the answers: adapters.md says how one adapter wraps another", node.at("transform")
        )
    profile = {"adapter": f"{adapter}:{_PREFIXES.get(service, '')}{model}", **options}
    if way in ("completion", "completions") and adapter == "openai" and service != "ollama":
        profile["endpoint"] = "completions"
    if way == "responses":
        remarks.differ(node, "the model is asked by chat completions", "openai:responses")
    label = node.value.get("label") if isinstance(node.value, dict) else None
    remarks.leave_others(node, _KNOWN, "an option of the provider that profiles do not have")
    _configure(profile, adapter, node.at("config"), remarks)
    return safe_name(str(label or model.rpartition("/")[2]), "model", dots=True), profile


def _configure(profile: Profile, adapter: str, config: Node, remarks: Remarks) -> None:
    for key, node in config.items():
        if node.value is None:
            continue
        if key == "apiKey" or is_secret_name(key):
            _key_of(profile, node, remarks)
        elif forms := _forms(key, node.value, profile):
            faults = [_fault(adapter, form) for form in forms]
            if "" in faults:
                profile |= forms[faults.index("")]
            else:
                remarks.leave(node, faults[0])
        else:
            remarks.leave(node, "an option of the provider; extra_body of a profile has further fields of requests")


def _forms(key: str, value: Any, profile: Profile) -> list[Profile]:
    """Return how an option may be written in a profile; the first that the adapter takes is."""
    if key in _NAMES:
        return [{_NAMES[key]: value}]
    if key == "max_completion_tokens":
        return [{"max_tokens": value, "max_tokens_field": key}, {"max_tokens": value}]
    if key in _BODY:
        return [{"extra_body": {**profile.get("extra_body", {}), key: value}}, {key: value}]
    return []


def _fault(adapter: str, options: Profile) -> str:
    """Return why the adapter refuses options, by its own reading of them; "" where it takes them."""
    try:
        import_module(f"pytest_lmeval.adapters.{adapter}.options").read_options(options)
    except UsageError as error:
        return str(error)
    return ""


def _key_of(profile: Profile, node: Node, remarks: Remarks) -> None:
    named = _VARIABLE.fullmatch(str(node.value))
    if named:
        profile["api_key_env"] = named[1] or named[2]
    else:
        remarks.leave(node, "a key is never written down; name a variable with api_key_env")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_toml(each)}' for key, each in value.items() if each is not None)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
