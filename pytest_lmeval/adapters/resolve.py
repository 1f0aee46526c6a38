"""From ``--lm-adapter SPEC`` to an adapter."""

from __future__ import annotations

import os
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
"""Returns the value of an environment variable. Its repr shows none: tracebacks have it."""
SERVERS = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
"""By the kind of an adapter, the variable that names its server where no option does, and the server without both."""
_MODEL_BY_REQUEST = (*SERVERS, "litellm")


@dataclass(frozen=True, slots=True)
class Made:
    """How an adapter was made: its spec and options, not those of a profile, and the module that the spec names.

    ``named_by`` is what named its ``base_url``: an option, a profile, an environment variable, or ``default``.
    ``project`` is the folder of the project that it was made for.

    All are empty for one that :func:`resolve_adapter` did not make.
    """

    spec: str = ""
    options: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    module: str = ""
    named_by: str = ""
    project: Path | None = None


_BY_HAND = Made()


class Making(NamedTuple):
    """What an adapter is made with besides its options: the arguments of :func:`resolve_adapter`."""

    registry: Registry
    project: Path | None = None
    offline: bool = False
    read: Read = os.getenv


_MAKING: ContextVar[Making] = ContextVar("making")


def check_spec(spec: str, registry: Registry, project: Path | None = None) -> None:
    """Raise UsageError, with the choices, unless ``spec`` is a profile, a registered adapter or a ``module:Object``."""
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
        return "a model of a server that speaks OpenAI's interface is openai:MODEL"
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
    """Return the adapter that ``spec`` names, made with ``options``; raise UsageError where that is impossible.

    A name of ``[tool.lmeval.adapters.NAME]`` in the project's pyproject.toml means the ``adapter`` and the
    options there; ``options`` win. A ``module:Object`` is looked for on the path and in ``project``. A class or
    function is called with the options; anything else is taken as the adapter itself. ``offline`` says that nothing
    will be asked: what is needed for that alone, such as a key, may be missing. ``read`` reads environment variables.
    """
    check_spec(spec, registry, project)
    spec, options, named_by = _resolved(spec, options, _profiles(project), read)
    name, colon, argument = spec.partition(":")
    if name in _MODEL_BY_REQUEST and not colon:
        by_request = f"'{name}:' asks for the model that each request of an application names"
        raise UsageError(f"adapter {name!r} needs the model's name: {name}:MODEL; {by_request}")
    token = _MAKING.set(Making(registry, project, offline, read))
    try:
        if name in registry.adapters:
            adapter, module = registry.adapters[name](argument, **options), _module_of(registry.adapters[name])
        else:
            from pytest_lmeval.adapters.objects import imported_object

            adapter, module = _made_from(imported_object(name, argument, project), options, spec), name
    except LmevalError as error:
        if named_by in SERVERS.get(name, ()) and "base_url" in str(error):
            raise UsageError(f"{error} (base_url is the environment variable {named_by})") from None
        raise
    except (Exception, SystemExit) as error:
        reason = Scrubber.of_options(options).scrub(f"{type(error).__name__}: {error}")
        raise UsageError(f"adapter {redact(spec)!r} could not be made: {reason}") from error
    finally:
        _MAKING.reset(token)
    check_adapter(adapter, spec)
    with suppress(TypeError):  # some objects cannot be referred to weakly: of them nothing is known
        weakref.finalize(adapter, _MADE.pop, id(adapter), None).atexit = False
        _MADE[id(adapter)] = Made(spec, options, module, named_by, project)
    return adapter


def making() -> Making:
    """Return what an adapter that is being made is made with."""
    return _MAKING.get(Making(Registry()))


def made_with(adapter: Any) -> Made:
    """Return how :func:`resolve_adapter` made ``adapter``."""
    return _MADE.get(id(adapter), _BY_HAND)


def as_judge(adapter: Any) -> Any:
    """Return what answers the questions to a judge that ``adapter`` is: a recording has its own for them."""
    make = method(adapter, "as_judge")
    return adapter if make is None else make()


class Resolved(NamedTuple):
    """The adapter and the options that a spec means, and what named its ``base_url``, "" where nothing did."""

    adapter: str
    options: Mapping[str, object]
    named_by: str = ""

    @property
    def base_url(self) -> str:
        """The address of the server; "" of an adapter that has none."""
        _, default = SERVERS.get(self.adapter.partition(":")[0], ("", ""))
        return str(self.options.get("base_url", default))


def resolve_profile(spec: str, options: Mapping[str, object], project: Path | None, read: Read = os.getenv) -> Resolved:
    """Return what ``spec`` means; ``options`` win over those of its profile, and they over environment variables.

    A variable that is empty or blank is as good as none.
    """
    found = _resolved(spec, options, _profiles(project), read)
    if found.adapter.startswith("ray:"):
        from pytest_lmeval.adapters.ray.options import shared_out

        # How many copies of the model answer does not decide what they answer.
        return resolve_profile(found.adapter[4:], shared_out(found.options)[1], project, read)
    return found


def server_kind(spec: str, project: Path | None) -> str:
    """Return the kind of an adapter that asks one of SERVERS itself, as far as its name or profile says so; else ""."""
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
    """Return what hides the secrets among the options of each spec, and those of every profile: a task may name one."""
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
            raise UsageError(f"{where}.{name}: adapter {profile['adapter']!r} is a profile itself; name an adapter")
    return profiles


def _module_of(factory: Any) -> str:
    # Of what is made by a partial, the function counts. What is built in is made by one, and known by its class.
    while isinstance(factory, partial):
        factory = factory.func
    module = str(getattr(factory, "__module__", None) or "")
    return "" if module.startswith("pytest_lmeval.") else module


def _is_module_path(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _made_from(value: Any, options: Mapping[str, object], spec: str) -> Any:
    if isinstance(value, type) or not any(method(value, name) for name in ANSWERING_METHODS):
        if not callable(value):
            raise UsageError(f"adapter {spec!r} is a {type(value).__name__}; expected an adapter, or what makes one")
        try:
            return value(**options)
        except TypeError as error:
            # What was called could not be: it is no fault of what it does.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None and not isinstance(value, type):
                name = getattr(value, "__name__", spec)
                how = f"{name} is called with the options of --lm-adapter-arg, and returns an adapter"
                raise UsageError(
                    f"adapter {spec!r}: {error}; {how}, such as an object with generate(prompts)"
                ) from None
            raise
    if options:
        raise UsageError(f"adapter {spec!r} is an object already; it takes no options, got {', '.join(options)}")
    return value
