"""The variants of the tasks in a run, each as a run of its own, to be ranked like models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile, examples_of


def by_config(runs: Sequence[RunFile]) -> list[RunFile]:
    """Return a run for each variant of the tasks in ``runs``, named by its config, with the tasks named alike.

    Of several runs the adapter's name goes before the config's. Tasks without variants are left out. Raises UsageError
    where a run has none.
    """
    return [variant for run in runs for variant in _variants(run, with_name=len(runs) > 1)]


def _variants(run: RunFile, *, with_name: bool) -> list[RunFile]:
    # A variant is called TASK@CONFIG, and says so by its values.
    names = {name: name.rpartition("@") for name, info in run.infos.items() if info.config and "@" in name}
    configs = dict.fromkeys(config for _, _, config in names.values())
    if len(configs) < 2:
        raise UsageError(f"{run.path}: no variants of a task; --by config takes a run whose --lm-config is a list")
    found = []
    for config in configs:
        tasks = {name: task for name, (task, _, own) in names.items() if own == config}
        results = [replace(each, task=tasks[each.task]) for each in examples_of(run) if each.task in tasks]
        facts = replace(run.facts, adapter=f"{run.adapter} {config}" if with_name else config)
        path = run.path.with_name(f"{run.path.name}@{config}")
        found.append(replace(run, path=path, facts=facts, results=tuple(results), board=None))
    return found
