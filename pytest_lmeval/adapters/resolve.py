"""Create the adapter that ``--lm-adapter SPEC`` names."""

from __future__ import annotations

import importlib
import os
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_lmeval.adapters.facts import ANSWERING_METHODS, check_adapter, method
from pytest_lmeval.errors import LmevalError, UnknownName, UsageError, did_you_mean
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.project import project_table
from pytest_lmeval.redaction import Scrubber, redact
from pytest_lmeval.registry import Registry

_NOTHING: Mapping[str, object] = MappingProxyType({})
_MADE: dict[int, Made] = {}
_Profiles = Mapping[str, Mapping[str, object]]
Read = Callable[[str], str | None]
"""A function that returns the value of an environment variable; its repr must not reveal values in tracebacks."""
SERVERS = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
"""Maps each kind of adapter to the environment variable with its server's address, and to the default address."""
_MODEL_BY_REQUEST = (*SERVERS, "litellm")


@dataclass(frozen=True, slots=True)
class Made:
    """The spec and options from which an adapter was created, with its profile resolved, and the module in the spec.

    ``named_by`` is the source of the adapter's ``base_url``: an option, a profile, an environment variable, or
    ``default``. ``project`` is the project's folder. All fields are empty if :func:`resolve_adapter` did not create the
    adapter.
    """

    spec: str = ""
    options: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    module: str = ""
    named_by: str = ""
    project: Path | None = None


class Making(NamedTuple):
    """The arguments of :func:`resolve_adapter`, except the spec and the options."""

    registry: Registry
    project: Path | None = None
    offline: bool = False
    read: Read = os.getenv


_MAKING: ContextVar[Making] = ContextVar("making")


def check_spec(spec: str, registry: Registry, project: Path | None = None) -> None:
    """Raise UsageError unless ``spec`` names a profile, a registered adapter or a ``module:Object``."""
    profiles = _profiles(project)
    if taken := sorted(profiles.keys() & registry.adapters.keys()):
        raise UsageError(f"pyproject.toml: tool.lmeval.adapters.{taken[0]}: an adapter has that name; choose another")
    spec = str(profiles[spec]["adapter"]) if spec in profiles else spec
    name, colon, _ = spec.partition(":")
    if name in registry.adapters or (colon and _is_module_path(name)):
        return
    choices = [*profiles, *registry.adapters, "package.module:Object"]
    raise UnknownName("adapter", spec, choices, _how_to_write(spec, choices, project))


def _how_to_write(spec: str, choices: Collection[str], project: Path | None) -> str:
    kind, slash, model = spec.partition("/")
    if slash and kind in choices:
        return f"did you mean '{kind}:{model}'?"
    if spec.isidentifier() and project is not None and (project / f"{spec}.py").is_file():
        return f"did you mean the object '{spec}:NAME' of that module?"
    if spec and not did_you_mean(spec, choices) and ":" not in spec:
        return "for a server with OpenAI's interface, write openai:MODEL"
    return ""


def resolve_adapter(
    spec: str,
    registry: Registry,
    options: Mapping[str, object] = _NOTHING,
    project: Path | None = None,
    *,
    offline: bool = False,
    read: Read = os.getenv,
) -> Any:
    """Create the adapter that ``spec`` names, with ``options``; raise UsageError if this fails.

    If the project's pyproject.toml has a table ``[tool.lmeval.adapters.NAME]``, the spec ``NAME`` selects the
    ``adapter`` and the options in that table. ``options`` override the options in the table. The function imports a
    ``module:Object`` from ``sys.path`` or ``project``. If the object is a class or a factory function, the options
    become its arguments; any other object is the adapter itself. If ``offline`` is True, the run sends no requests, so
    an API key may be missing. ``read`` returns the value of an environment variable.
    """
    check_spec(spec, registry, project)
    spec, options, named_by = _resolved(spec, options, _profiles(project), read)
    name, colon, argument = spec.partition(":")
    if name in _MODEL_BY_REQUEST and not colon:
        by_request = f"'{name}:' asks the model that each request of an application names"
        raise UsageError(f"adapter {name!r} needs the model's name: {name}:MODEL; {by_request}")
    token = _MAKING.set(Making(registry, project, offline, read))
    try:
        if name in registry.adapters:
            adapter, module = registry.adapters[name](argument, **options), _module_of(registry.adapters[name])
        else:
            adapter, module = _made_from(_imported_object(name, argument, project), options, spec), name
    except LmevalError as error:
        if named_by in SERVERS.get(name, ()) and "base_url" in str(error):
            raise UsageError(f"{error} (base_url is the environment variable {named_by})") from None
        raise
    except (Exception, SystemExit) as error:
        reason = Scrubber.of_options(options).scrub(f"{type(error).__name__}: {error}")
        raise UsageError(f"adapter {redact(spec)!r} cannot be created: {reason}") from error
    finally:
        _MAKING.reset(token)
    check_adapter(adapter, spec)
    with suppress(TypeError):  # some objects have no weak references, and stay unknown
        weakref.finalize(adapter, _MADE.pop, id(adapter), None).atexit = False
        _MADE[id(adapter)] = Made(spec, options, module, named_by, project)
    return adapter


def making() -> Making:
    """Return the arguments of the current call to :func:`resolve_adapter`."""
    return _MAKING.get(Making(Registry()))


def made_with(adapter: Any) -> Made:
    """Return the spec and options from which :func:`resolve_adapter` created ``adapter``."""
    return _MADE.get(id(adapter), Made())


def as_judge(adapter: Any) -> Any:
    """Return the adapter for requests to a judge, either ``adapter`` or the separate adapter of a recording."""
    make = method(adapter, "as_judge")
    return adapter if make is None else make()


class Resolved(NamedTuple):
    """The adapter and options that a spec selects, and the source of their ``base_url``, or ""."""

    adapter: str
    options: Mapping[str, object]
    named_by: str = ""

    @property
    def base_url(self) -> str:
        """The address of the adapter's server, or ""."""
        _, default = SERVERS.get(self.adapter.partition(":")[0], ("", ""))
        return str(self.options.get("base_url", default))


def resolve_profile(spec: str, options: Mapping[str, object], project: Path | None, read: Read = os.getenv) -> Resolved:
    """Resolve ``spec``; ``options`` override the profile, and the profile overrides environment variables.

    An environment variable without a value, or with only whitespace, counts as missing.
    """
    found = _resolved(spec, options, _profiles(project), read)
    if found.adapter.startswith("ray:"):
        from pytest_lmeval.adapters.ray.options import shared_out

        # The number of copies does not affect the answers.
        return resolve_profile(found.adapter[4:], shared_out(found.options)[1], project, read)
    return found


def server_kind(spec: str, project: Path | None) -> str:
    """Return the kind (a key of SERVERS) of the adapter that ``spec`` selects, or "" for other adapters."""
    kind = _resolved(spec, _NOTHING, _profiles(project), os.getenv).adapter.partition(":")[0]
    return kind if kind in SERVERS else ""


def _resolved(spec: str, options: Mapping[str, object], profiles: _Profiles, read: Read) -> Resolved:
    named_by = "--lm-adapter-arg" if "base_url" in options else ""
    if spec in profiles:
        profile = dict(profiles[spec])
        named_by = named_by or (f"profile {spec}" if "base_url" in profile else "")
        spec, options = str(profile.pop("adapter")), {**profile, **options}
    variable, _ = SERVERS.get(spec.partition(":")[0], ("", ""))
    if named_by or not variable:
        return Resolved(spec, options, named_by)
    value = (read(variable) or "").strip()
    return Resolved(spec, {**options, "base_url": value}, variable) if value else Resolved(spec, options, "default")


def scrubber_of(options: Iterable[tuple[str, Mapping[str, object]]], project: Path | None) -> Scrubber:
    """Return a scrubber for secrets in the given options and in all profiles, because a task may name any profile."""
    profiles = _profiles(project)
    given = (_resolved(spec, given, profiles, os.getenv).options for spec, given in options)
    return Scrubber.of_options(*given, *profiles.values())


def _profiles(project: Path | None) -> _Profiles:
    profiles: _Profiles = project_table(project).get("adapters", {}) if project is not None else {}
    where = "pyproject.toml: tool.lmeval.adapters"
    if not isinstance(profiles, dict):
        raise UsageError(f"{where} must be a table of tables, one per name")
    for name, profile in profiles.items():
        if not isinstance(profile, dict) or not isinstance(profile.get("adapter"), str):
            raise UsageError(f'{where}.{name}: expected a table with adapter = "SPEC", such as "openai:MODEL"')
        if profile["adapter"] in profiles:
            raise UsageError(f"{where}.{name}: adapter {profile['adapter']!r} is itself a profile; name an adapter")
    return profiles


def _imported_object(module_name: str, object_name: str, project: Path | None) -> Any:
    """Import an object from a module on ``sys.path`` or in ``project``; raise UsageError if this fails."""
    spec = f"{module_name}:{object_name}"
    # pytest itself does not add the project folder to the path. Add it at the end, so that it shadows nothing.
    if project is not None and str(project) not in sys.path:
        sys.path.append(str(project))
    try:
        value: Any = importlib.import_module(module_name)
    except Exception as error:
        detail = f"importing {module_name} failed: {type(error).__name__}: {error}"
        if module_name.endswith(".py"):
            detail += f"; a module has a name, not a path: {module_name.removesuffix('.py')}:{object_name}"
        raise UsageError(f"adapter {spec!r}: {detail}") from error
    for part in object_name.split("."):
        if not hasattr(value, part):
            public = ", ".join(sorted(name for name in vars(value) if not name.startswith("_"))) or "nothing"
            raise UsageError(f"adapter {spec!r}: {module_name} has no {part!r}; it has {public}")
        value = getattr(value, part)
    return value


def _module_of(factory: Any) -> str:
    # Examine the function inside a partial; this package's own adapters are recognized by their classes.
    while isinstance(factory, partial):
        factory = factory.func
    module = str(getattr(factory, "__module__", None) or "")
    return "" if module.startswith("pytest_lmeval.") else module


def _is_module_path(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _made_from(value: Any, options: Mapping[str, object], spec: str) -> Any:
    if isinstance(value, type) or not any(method(value, name) for name in ANSWERING_METHODS):
        if not callable(value):
            raise UsageError(f"adapter {spec!r} is a {type(value).__name__}; expected an adapter or its factory")
        try:
            return value(**options)
        except TypeError as error:
            # The call itself failed, not the function's code.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None and not isinstance(value, type):
                name = getattr(value, "__name__", spec)
                how = f"{name} gets the options of --lm-adapter-arg and must return an adapter"
                raise UsageError(
                    f"adapter {spec!r}: {error}; {how}, such as an object with generate(prompts)"
                ) from None
            raise
    if options:
        raise UsageError(f"adapter {spec!r} is an object, which takes no options; got {', '.join(options)}")
    return value
