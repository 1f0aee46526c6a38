"""Read the options and the ini file, and build the registry to check them against."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

from pytest_lmeval.arguments import named_share
from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.plugin.settings.models import ENVIRONMENT, OWN, whole

if TYPE_CHECKING:
    from pytest_lmeval.adapters.resolve import Resolved
    from pytest_lmeval.asking.caching import CacheSettings
    from pytest_lmeval.compare.gate import GateSettings
    from pytest_lmeval.formats.task import LoadOptions
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.redaction import Scrubber
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings

_Result = TypeVar("_Result")


def with_usage_errors(action: Callable[[], _Result]) -> _Result:
    """Call ``action``; raise pytest.UsageError for an error that the user can fix."""
    try:
        return action()
    except LmevalError as error:
        raise pytest.UsageError(str(error)) from None


def label_of(config: pytest.Config) -> str:
    """Return the label of the config's model, or "" in a single-model run."""
    return str(getattr(config, "lm_label", ""))


def spec_of(config: pytest.Config) -> str:
    """Return the adapter's spec from the option or the ini file, or "" if neither names an adapter."""
    return str(config.option.lm_adapter or config.getini("lm_adapter"))


def gate_mode(config: pytest.Config) -> str:
    """Return the gate's mode, by default ``baseline`` if the run has a baseline, else ``examples``."""
    option = config.option
    return str(option.lm_gate or ("baseline" if option.lm_baseline else "examples"))


def gate_settings(config: pytest.Config) -> GateSettings:
    """Return the gate's settings; all but six fields come from the option of the same name."""
    from pytest_lmeval.compare.gate import GateSettings

    option = config.option
    special = {
        "mode": gate_mode(config),
        "floors": {**ini_floors(config), **dict(option.lm_min_score)},
        "limits": dict(option.lm_max),
        "baseline": option.lm_baseline or "",
        "update": option.lm_update_baseline,
        "models": getattr(config, "lm_models_named", 1),
    }
    names = [each.name for each in fields(GateSettings) if each.name not in special]
    return GateSettings(**special, **{name: getattr(option, f"lm_{name}") for name in names})


def ini_thresholds(config: pytest.Config) -> dict[str, float]:
    """Return the ini file's thresholds by task or metric name."""
    return _named_numbers(config, "lm_thresholds")


def ini_floors(config: pytest.Config) -> dict[str, float]:
    """Return the ini file's floors by the name of a task, or by ``overall``."""
    return _named_numbers(config, "lm_min_scores")


def _named_numbers(config: pytest.Config, name: str) -> dict[str, float]:
    try:
        return dict(named_share(line) for line in config.getini(name))
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini {name}: {error}") from None


def max_line_bytes(config: pytest.Config) -> int:
    """Return the maximum length of a line in a task file, in bytes."""
    given = config.getini("lm_max_line_bytes")
    if not str(given).isdecimal() or int(given) < 1:
        raise pytest.UsageError(f"ini lm_max_line_bytes: expected a whole number >= 1, got {given!r}")
    return int(given)


def apply_ini_limits(config: pytest.Config) -> None:
    """Apply limits on data sets and media, and check ``lm_forward_paths``; raise pytest.UsageError for a bad value."""
    if size := config.getini("lm_max_data_bytes"):
        from pytest_lmeval.data.limits import set_max_data_bytes

        with_usage_errors(lambda: set_max_data_bytes(size))
    if size := config.getini("lm_max_media_bytes"):
        from pytest_lmeval.data.limits import set_max_media_bytes

        with_usage_errors(lambda: set_max_media_bytes(size))
    if paths := config.getini("lm_forward_paths"):
        from pytest_lmeval.functions.clients.body import ForwardPaths

        with_usage_errors(lambda: ForwardPaths(paths))


def load_options(config: pytest.Config) -> LoadOptions:
    """Return the options for loading task files."""
    from pytest_lmeval.formats.task import LoadOptions

    option = config.option
    trusted: list[str] | None = config.getini("lm_trusted_paths")
    return LoadOptions(
        max_line_bytes=max_line_bytes(config),
        num_fewshot=option.lm_num_fewshot,
        subjects=tuple(option.lm_subject),
        limit=option.lm_limit,
        sample=option.lm_sample,
        seed=option.lm_seed,
        configs=configs_of(config),
        trusted=tuple(config.rootpath / path for path in trusted) if trusted is not None else None,
    )


def selected_places(config: pytest.Config, task: str, count: int) -> Sequence[int]:
    """Return the positions that ``--lm-limit`` and ``--lm-sample`` select among a task's ``count`` examples."""
    option = config.option
    if option.lm_limit is None and option.lm_sample is None:
        return range(count)
    from pytest_lmeval.formats.task import LoadOptions

    return LoadOptions(limit=option.lm_limit, sample=option.lm_sample, seed=option.lm_seed).used(task, count)


def configs_of(config: pytest.Config) -> tuple[Mapping[str, Any], ...]:
    """Return the contents of ``--lm-config``: one mapping for each of a task's variants."""
    given = config.option.lm_config
    if not given:
        return ()
    from pytest_lmeval.formats.yaml.configs import read_configs

    return with_usage_errors(lambda: read_configs(config.invocation_params.dir / given))


def cache_of(config: pytest.Config) -> CacheSettings | None:
    """Return the answer cache's folder and mode, or None without a cache."""
    option, ini = config.option, config.getini("lm_cache")
    folder = config.invocation_params.dir / option.lm_cache if option.lm_cache else config.rootpath / ini
    if not (option.lm_cache or ini):
        if option.lm_cache_mode:
            raise pytest.UsageError(f"--lm-cache-mode={option.lm_cache_mode} needs --lm-cache DIR, or the ini lm_cache")
        return None
    from pytest_lmeval.asking.caching import CacheSettings

    return CacheSettings(folder, option.lm_cache_mode or "use")


def run_settings(config: pytest.Config, scrubber: Scrubber, baseline: RunFile | None) -> RunSettings:
    """Return this process's settings for requests and scoring; a ``baseline`` determines the quarantined examples."""
    from pytest_lmeval.leaderboard.quarantine import Quarantine, quarantined
    from pytest_lmeval.plugin.private.workers import is_worker, worker_input
    from pytest_lmeval.run.settings import RunSettings, today

    option = config.option
    return RunSettings(
        batch_size=option.lm_batch_size,
        concurrency=option.lm_concurrency,
        timeout_s=option.lm_timeout,
        retries=option.lm_retries,
        max_cost=option.lm_max_cost,
        repeats=option.lm_repeats or 1,
        thresholds=dict(option.lm_threshold),
        default_thresholds=ini_thresholds(config),
        gate=gate_mode(config),
        sandbox=option.lm_sandbox,
        packages=config.getini("lm_sandbox_packages"),
        share=worker_input(config).get("workercount", 1),
        passthrough=(pytest.exit.Exception,),
        may_crash=is_worker(config),
        adapter=spec_of(config),
        reuses=option.lm_resume,
        scrubber=scrubber,
        think_tags=option.lm_think_tags,
        quarantine=Quarantine(today(), None if baseline is None else quarantined(baseline.results or ())),
        cache=cache_of(config),
    )


def resolved_of(config: pytest.Config) -> Resolved:
    """Return the adapter's spec and options with the profile applied; raise LmevalError for an invalid profile."""
    if _RESOLVED not in config.stash:
        from pytest_lmeval.adapters.resolve import resolve_profile

        given = dict(config.option.lm_adapter_arg)
        config.stash[_RESOLVED] = resolve_profile(spec_of(config), given, config.rootpath, config.stash[ENVIRONMENT])
    return config.stash[_RESOLVED]


def address_text(config: pytest.Config) -> str:
    """Return the address of the adapter's server and the setting that contains it, or "" if no setting does."""
    from pytest_lmeval.redaction import redact

    resolved = with_usage_errors(lambda: resolved_of(config))
    return f" at {redact(resolved.base_url)} ({resolved.named_by})" if resolved.named_by else ""


def scrubber_of_run(config: pytest.Config) -> Scrubber:
    """Return the scrubber that hides the run's secrets; all models share it, and it learns adapters' secrets."""
    if _SCRUBBER not in config.stash:
        config.stash[_SCRUBBER] = _new_scrubber(whole(config))
    return config.stash[_SCRUBBER]


def _new_scrubber(config: pytest.Config) -> Scrubber:
    """Create a scrubber of secrets in options, profiles and environment variables with secret-sounding names."""
    from pytest_lmeval.redaction import Scrubber, secrets_in_environment

    option, spec = config.option, spec_of(config)
    if not (spec or option.lm_judge or option.lm_user):
        return Scrubber()
    from pytest_lmeval.adapters.resolve import scrubber_of

    models: list[tuple[str, Mapping[str, Any]]] = [(of, {}) for _, of in option.lm_models]
    # The judge and the simulated user may have the same spec with different options.
    others = [(option.lm_judge or "", dict(option.lm_judge_arg)), (option.lm_user or "", dict(option.lm_user_arg))]
    specs = [*models, *others, (spec, dict(option.lm_adapter_arg))]
    try:
        known = scrubber_of(specs, config.rootpath)
    except LmevalError:  # an unreadable profile: reported when the adapter is created
        known = scrubber_of(specs, None)
    known.learn(secrets_in_environment())
    return known


def registry_of(config: pytest.Config) -> Registry:
    """Return the registry: built-in and installed parts, and the parts that the project has added so far.

    A project adds parts in pyproject.toml and in conftests. When another conftest that registers parts has been loaded,
    rebuild the registry.
    """
    hooks = len(config.hook.pytest_lmeval_register.get_hookimpls())
    made = config.stash.get(_REGISTRY, None)
    if made is None or made.hooks != hooks:
        made = config.stash[_REGISTRY] = with_usage_errors(lambda: _made(config, made, hooks))
    return made.registry


class _Made(NamedTuple):
    registers: Sequence[Callable[[Registry], Any]]  # named in pyproject.toml
    fixed: Registry  # without conftest files; cached, as scanning installed packages is slow
    registry: Registry
    hooks: int


def _made(config: pytest.Config, before: _Made | None, hooks: int) -> _Made:
    registers, fixed = (before.registers, before.fixed) if before is not None else _fixed(config)
    registry = fixed.copy()
    try:
        _own_register(config, registers)(registry=registry)
    except SystemExit as error:  # otherwise pytest reports an internal error
        raise UsageError(f"the hook pytest_lmeval_register called sys.exit({error.code!r})") from error
    return _Made(registers, fixed, registry, hooks)


def _own_register(config: pytest.Config, registers: Sequence[Callable[[Registry], Any]]) -> Any:
    """Return the registration hook, excluding implementations that pyproject.toml also names."""
    done = {register.__code__ for register in registers if hasattr(register, "__code__")}
    hook = config.hook.pytest_lmeval_register
    twice = [each.plugin for each in hook.get_hookimpls() if getattr(each.function, "__code__", None) in done]
    return config.pluginmanager.subset_hook_caller("pytest_lmeval_register", twice) if twice else hook


def _fixed(config: pytest.Config) -> tuple[Sequence[Callable[[Registry], Any]], Registry]:
    from pytest_lmeval.loading import default_registry
    from pytest_lmeval.project import project_plugins

    registry = default_registry()
    registers = project_plugins(config.rootpath)
    for register in registers:
        register(registry)
    return registers, registry


_REGISTRY = pytest.StashKey[_Made]()
_SCRUBBER = pytest.StashKey["Scrubber"]()
_RESOLVED = pytest.StashKey["Resolved"]()
OWN.add(_RESOLVED)
