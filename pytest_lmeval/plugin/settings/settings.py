"""What the options and the ini file ask for, and the registry that they are checked against."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

from pytest_lmeval.arguments import MaxErrors, named_share
from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.plugin.settings.ini_gate import from_ini
from pytest_lmeval.plugin.settings.models import OWN, labels_of, names_one_file, whole
from pytest_lmeval.plugin.settings.unheeded import check_ini_keys, note_unheeded
from pytest_lmeval.plugin.stash import ENVIRONMENT

if TYPE_CHECKING:
    from pytest_lmeval.adapters.resolve import Resolved
    from pytest_lmeval.asking.caching import CacheSettings
    from pytest_lmeval.formats.task import LoadOptions
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.redaction import Scrubber
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings

_Result = TypeVar("_Result")
_HOW_TO_WRITE_ONE = "write one with --lm-update-baseline, from a run of the state to compare with"


def check_options(config: pytest.Config) -> None:
    """Raise pytest.UsageError at once for what can be seen to be wrong without any task."""
    check_ini_keys(config)
    note_unheeded(config)
    max_line_bytes(config)
    ini_thresholds(config)
    ini_floors(config)
    _check_gate(config)
    if config.option.lm_sandbox == "isolated":
        raise pytest.UsageError("--lm-sandbox=isolated is reserved, it does not exist yet; confined is the strongest")
    if config.option.lm_limit is not None and config.option.lm_sample is not None:
        raise pytest.UsageError("--lm-limit and --lm-sample exclude each other: the first N, or a random N")
    configs_of(config)
    cache_of(config)
    _check_models(config)


def _check_models(config: pytest.Config) -> None:
    several = [spec for _, spec in getattr(config.option, "lm_models", ())]
    for spec in (*(several or [config.getoption("lm_adapter")]), config.getoption("lm_judge")):
        if spec:
            from pytest_lmeval.adapters.resolve import check_spec

            # Conftest files below the task folders are not loaded yet: with them there may be more to choose from.
            with_usage_errors(partial(check_spec, spec, registry_of(config), config.rootpath))


def with_usage_errors(action: Callable[[], _Result]) -> _Result:
    """Call ``action``; what the user can mend becomes pytest's own usage error."""
    try:
        return action()
    except LmevalError as error:
        raise pytest.UsageError(str(error)) from None


def gate_mode(config: pytest.Config) -> str:
    """Return the gate's mode: as it was given, else ``baseline`` where there is one to compare with."""
    option = config.option
    return str(option.lm_gate or ("baseline" if option.lm_baseline else "examples"))


def max_errors(config: pytest.Config) -> MaxErrors:
    """Return how many examples may end in an error or a timeout."""
    most: MaxErrors = config.option.lm_max_errors
    return most


def ini_thresholds(config: pytest.Config) -> dict[str, float]:
    """Return the thresholds of the ini file, by task or metric name."""
    return _named_numbers(config, "lm_thresholds")


def ini_floors(config: pytest.Config) -> dict[str, float]:
    """Return the floors of the ini file, by task name; ``overall`` is that of the overall score."""
    return _named_numbers(config, "lm_min_scores")


def _named_numbers(config: pytest.Config, name: str) -> dict[str, float]:
    try:
        return dict(named_share(line) for line in config.getini(name))
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini {name}: {error}") from None


def _check_gate(config: pytest.Config) -> None:
    option = config.option
    if option.lm_max:
        from pytest_lmeval.compare.limits import limited_names

        with_usage_errors(lambda: limited_names(dict(option.lm_max)))
    if gate_mode(config) == "baseline" and not option.lm_baseline:
        raise pytest.UsageError("--lm-gate=baseline needs --lm-baseline PATH, an earlier leaderboard to compare with")
    if option.lm_update_baseline and not option.lm_baseline:
        raise pytest.UsageError("--lm-update-baseline needs --lm-baseline PATH, the file to write")
    _check_one_writes(config)
    if "baseline" not in from_ini(config):
        # That of an ini file may be meant for runs of tasks, and this run collect none.
        check_baseline_exists(config)
    if option.lm_update_baseline and option.lm_shard:
        raise pytest.UsageError("--lm-update-baseline cannot be had of one shard: merge the shards' ledgers first")


def _check_one_writes(config: pytest.Config) -> None:
    """Raise pytest.UsageError where several models would write their baselines over each other."""
    option, labels = config.option, labels_of(config)
    if labels and option.lm_update_baseline and names_one_file(config.invocation_params.dir / option.lm_baseline):
        raise pytest.UsageError(
            f"--lm-update-baseline: {option.lm_baseline} is one file, and {len(labels)} models would write it: name a "
            "folder for a baseline of each, or write it in a run of one model"
        )


def check_baseline_exists(config: pytest.Config) -> None:
    """Raise pytest.UsageError where a run is to be compared with a file that is not there."""
    option = config.option
    if option.lm_baseline and not option.lm_update_baseline:
        path = config.invocation_params.dir / option.lm_baseline
        if not path.exists():
            where = "ini lm_baseline:" if "baseline" in from_ini(config) else "--lm-baseline"
            raise pytest.UsageError(f"{where} {option.lm_baseline}: no such file; {_HOW_TO_WRITE_ONE}")


def max_line_bytes(config: pytest.Config) -> int:
    """Return how long a line of a task file may be."""
    given = config.getini("lm_max_line_bytes")
    if not str(given).isdecimal() or int(given) < 1:
        raise pytest.UsageError(f"ini lm_max_line_bytes: expected a whole number >= 1, got {given!r}")
    return int(given)


def apply_max_data_bytes(config: pytest.Config) -> None:
    """Have data sets read up to the size that the ini file permits; raise pytest.UsageError where that is no size."""
    from pytest_lmeval.data.limits import set_max_data_bytes

    with_usage_errors(lambda: set_max_data_bytes(config.getini("lm_max_data_bytes")))


def load_options(config: pytest.Config) -> LoadOptions:
    """Return what the options and the ini file ask of every task that is loaded."""
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


def configs_of(config: pytest.Config) -> tuple[Mapping[str, Any], ...]:
    """Return the values of ``--lm-config``, a mapping for each variant of a task."""
    given = config.option.lm_config
    if not given:
        return ()
    from pytest_lmeval.formats.yaml.configs import read_configs

    return with_usage_errors(lambda: read_configs(config.invocation_params.dir / given))


def cache_of(config: pytest.Config) -> CacheSettings | None:
    """Return where answers are kept, and how; None where they are not."""
    option, ini = config.option, config.getini("lm_cache")
    folder = config.invocation_params.dir / option.lm_cache if option.lm_cache else config.rootpath / ini
    if not (option.lm_cache or ini):
        if option.lm_cache_mode:
            raise pytest.UsageError(f"--lm-cache-mode={option.lm_cache_mode} needs --lm-cache DIR, or the ini lm_cache")
        return None
    from pytest_lmeval.asking.caching import CacheSettings

    return CacheSettings(folder, option.lm_cache_mode or "use")


def run_settings(config: pytest.Config, scrubber: Scrubber, baseline: RunFile | None) -> RunSettings:
    """Return how this process is to ask and score, and which secrets results may not show.

    Which examples are in quarantine the ``baseline`` says, where the run is judged by one.
    """
    from pytest_lmeval.leaderboard.quarantine import Quarantine, quarantined
    from pytest_lmeval.plugin.private import is_worker, worker_input
    from pytest_lmeval.run.settings import RunSettings, today

    option = config.option
    return RunSettings(
        batch_size=option.lm_batch_size,
        concurrency=option.lm_concurrency,
        timeout_s=option.lm_timeout,
        retries=option.lm_retries,
        max_cost=option.lm_max_cost,
        repeats=option.lm_repeats,
        thresholds=dict(option.lm_threshold),
        default_thresholds=ini_thresholds(config),
        gate=gate_mode(config),
        sandbox=option.lm_sandbox,
        packages=config.getini("lm_sandbox_packages"),
        share=worker_input(config).get("workercount", 1),
        passthrough=(pytest.exit.Exception,),
        may_crash=is_worker(config),
        reuses=option.lm_resume,
        scrubber=scrubber,
        think_tags=option.lm_think_tags,
        quarantine=Quarantine(today(), None if baseline is None else quarantined(baseline.results or ())),
        cache=cache_of(config),
    )


def resolved_of(config: pytest.Config) -> Resolved:
    """Return the adapter and the options that the run's adapter is made of; raise LmevalError for a faulty profile."""
    if _RESOLVED not in config.stash:
        from pytest_lmeval.adapters.resolve import resolve_profile

        spec, given = config.option.lm_adapter or config.getini("lm_adapter"), dict(config.option.lm_adapter_arg)
        config.stash[_RESOLVED] = resolve_profile(spec, given, config.rootpath, config.stash[ENVIRONMENT])
    return config.stash[_RESOLVED]


def address_text(config: pytest.Config) -> str:
    """Return where the run's adapter finds its server, and what says so; "" of one that has none."""
    from pytest_lmeval.redaction import redact

    resolved = with_usage_errors(lambda: resolved_of(config))
    return f" at {redact(resolved.base_url)} ({resolved.named_by})" if resolved.named_by else ""


def scrubber_of_run(config: pytest.Config) -> Scrubber:
    """Return what hides the secrets that the run knows, one for all of its models; it learns those of adapters."""
    config = whole(config)
    if _SCRUBBER not in config.stash:
        config.stash[_SCRUBBER] = _new_scrubber(config)
    return config.stash[_SCRUBBER]


def _new_scrubber(config: pytest.Config) -> Scrubber:
    """Return what hides the secrets among options, in profiles, and in variables that are named like one."""
    from pytest_lmeval.redaction import Scrubber, secrets_in_environment

    option = config.option
    spec = option.lm_adapter or config.getini("lm_adapter")
    if not (spec or option.lm_judge):
        return Scrubber()
    from pytest_lmeval.adapters.resolve import scrubber_of

    models = (of for _, of in getattr(option, "lm_models", ()))
    specs: dict[str, Mapping[str, Any]] = {name: {} for name in (option.lm_judge or "", *models)}
    specs[spec] = dict(option.lm_adapter_arg)
    try:
        known = scrubber_of(specs, config.rootpath)
    except LmevalError:  # of a profile that cannot be read: making the adapter says so
        known = scrubber_of(specs, None)
    known.learn(secrets_in_environment())
    return known


def registry_of(config: pytest.Config) -> Registry:
    """Return a registry of all that is built in, installed, in pyproject.toml and in the conftests loaded so far.

    It is made once, and again when a conftest file that registers something has been loaded since.
    """
    hooks = len(config.hook.pytest_lmeval_register.get_hookimpls())
    made = config.stash.get(_REGISTRY, None)
    if made is None or made.hooks != hooks:
        made = config.stash[_REGISTRY] = with_usage_errors(lambda: _made(config, made, hooks))
    return made.registry


class _Made(NamedTuple):
    registers: Sequence[Callable[[Registry], Any]]  # those that pyproject.toml names
    fixed: Registry  # what holds whatever conftest files are loaded: to look through what is installed takes a while
    registry: Registry
    hooks: int


def _made(config: pytest.Config, before: _Made | None, hooks: int) -> _Made:
    registers, fixed = (before.registers, before.fixed) if before is not None else _fixed(config)
    registry = fixed.copy()
    try:
        _own_register(config, registers)(registry=registry)
    except SystemExit as error:  # pytest would end with an internal error
        raise UsageError(f"the hook pytest_lmeval_register called sys.exit({error.code!r})") from error
    return _Made(registers, fixed, registry, hooks)


def _own_register(config: pytest.Config, registers: Sequence[Callable[[Registry], Any]]) -> Any:
    """Return the hook without what pyproject.toml names, too: a conftest file, or a function that one imports."""
    done = {register.__code__ for register in registers if hasattr(register, "__code__")}
    hook = config.hook.pytest_lmeval_register
    twice = [each.plugin for each in hook.get_hookimpls() if getattr(each.function, "__code__", None) in done]
    return config.pluginmanager.subset_hook_caller("pytest_lmeval_register", twice) if twice else hook


def _fixed(config: pytest.Config) -> tuple[Sequence[Callable[[Registry], Any]], Registry]:
    from pytest_lmeval.builtin import default_registry
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
