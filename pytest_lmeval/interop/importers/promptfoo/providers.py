"""Turn a config's providers into profiles for pyproject.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.interop.importers.promptfoo.config import LeftOut, Node, Remarks
from pytest_lmeval.redaction import is_secret_name

Profile = dict[str, Any]
# The address of an OpenAI-compatible server, and the variable with its key, by the provider's prefix.
_SERVERS: Mapping[str, tuple[str, str]] = {
    "ollama": ("http://localhost:11434/v1", ""),
    "localai": ("http://localhost:8080/v1", ""),
    "llama": ("http://localhost:8080/v1", ""),
    "vllm": ("http://localhost:8000/v1", ""),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "togetherai": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
}
# The prefix that litellm uses for a service's models.
_LITELLM = {"azure": "azure/", "azureopenai": "azure/", "bedrock": "bedrock/", "google": "gemini/"}
_LITELLM |= {"vertex": "vertex_ai/", "litellm": ""}
_SERVICES = {"openai", "anthropic", *_SERVERS, *_LITELLM}
_WAYS = frozenset({"chat", "messages", "responses", "converse"})
_OTHER_WAYS = frozenset({"completion", "completions", "embedding", "embeddings", "image", "realtime", "assistant"})
_NAMES = {"apiBaseUrl": "base_url", "apiKeyEnvar": "api_key_env"}
_NAMES |= {name: name for name in ("temperature", "max_tokens", "top_p", "stop", "seed", "stream")}
_BODY = frozenset(
    {"frequency_penalty", "presence_penalty", "response_format", "reasoning_effort", "top_k", "min_p", "service_tier"}
)
_KNOWN = frozenset({"id", "label", "config"})
_VARIABLE = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{(\w+)\}")


def read_providers(config: Node, remarks: Remarks) -> dict[str, Profile]:
    """Return the profiles by name; add remarks about providers and options without a counterpart."""
    found: dict[str, Profile] = {}
    names = FileNames(_SERVICES)
    given = config.at("providers" if config.value.get("providers") is not None else "targets")
    for node in given.elements():
        try:
            name, profile = _profile(node.written_out(), remarks)
            found[names.give(name)] = profile
        except LeftOut as left:
            remarks.leave_for(left, node)
    return found


def profiles_text(profiles: Mapping[str, Profile]) -> str:
    """Return the tables for pyproject.toml."""
    lines = []
    for name, profile in profiles.items():
        lines += [f"[tool.lmeval.adapters.{_key(name)}]"]
        lines += [*(f"{_key(key)} = {_toml(value)}" for key, value in profile.items()), ""]
    return "\n".join(lines)


def _profile(node: Node, remarks: Remarks) -> tuple[str, Profile]:
    name = node.value if isinstance(node.value, str) else node.at("id").value
    if not isinstance(name, str):
        raise LeftOut(f"expected the name of a provider, or a mapping with its id, got {node.value!r:.60}")
    service, _, rest = name.partition(":")
    if service not in _SERVICES or not rest:
        raise LeftOut(f"provider {name!r:.60}: no adapter here has this name; your own is module:Object (adapters.md)")
    way, _, model = rest.partition(":")
    if way in _OTHER_WAYS:
        raise LeftOut(f"provider {name!r:.60}: only chat interfaces are supported")
    model = model if way in _WAYS and model else rest
    if (transform := node.at("transform")).value is not None:
        raise LeftOut("a transform of the answers: wrap the adapter in your own (adapters.md)", transform)
    if way == "responses":
        remarks.differ(node, "the model is asked by chat completions", "openai:responses")
    adapter = "litellm" if service in _LITELLM else "anthropic" if service == "anthropic" else "openai"
    profile: Profile = {"adapter": f"{adapter}:{_LITELLM.get(service, '')}{model}"}
    if service in _SERVERS:
        profile["base_url"], profile["api_key_env"] = _SERVERS[service]
    remarks.leave_others(node, _KNOWN, "an option of the provider that profiles do not have")
    for key, option in node.at("config").items():
        if option.value is not None:
            _configure(profile, adapter, key, option, remarks)
    return safe_name(str(node.at("label").value or model.rpartition("/")[2]), "model", dots=True), profile


def _configure(profile: Profile, adapter: str, key: str, node: Node, remarks: Remarks) -> None:
    """Add an option to a profile in the first form that its adapter accepts."""
    if key == "apiKey" or is_secret_name(key):
        why = "a key is never written to a file; name a variable with api_key_env"
        named = _VARIABLE.fullmatch(str(node.value))
        forms: list[Profile] = [{"api_key_env": named[1] or named[2]}] if named else []
    else:
        why = "an option of the provider; extra_body of a profile has further fields of requests"
        forms = _forms(key, node.value, profile)
    for form in forms:
        try:
            import_module(f"pytest_lmeval.adapters.{adapter}.options").read_options(form)
        except UsageError as error:
            why = str(error)
            continue
        profile |= form
        return
    remarks.leave(node, why)


def _forms(key: str, value: Any, profile: Profile) -> list[Profile]:
    if key == "max_completion_tokens":
        return [{"max_tokens": value, "max_tokens_field": key}, {"max_tokens": value}]
    if key in _BODY:
        return [{"extra_body": {**profile.get("extra_body", {}), key: value}}, {key: value}]
    return [{_NAMES[key]: value}] if key in _NAMES else []


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_toml(each)}' for key, each in value.items() if each is not None)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # TOML writes scalars as JSON does, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
