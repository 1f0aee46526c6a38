"""``lmeval test TASK``: a few examples of a task, stage by stage. Nothing is stored."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import adapter_name
from pytest_lmeval.adapters.resolve import resolve_adapter, scrubber_of
from pytest_lmeval.arguments import THINK_TAGS, key_value, think_tags, whole
from pytest_lmeval.cli.dry_run import DryRun, Shown
from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.errors import UsageError
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.text import printable

_WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("task", metavar="TASK", help="the key or name of a task, or the path of its file")
    parser.add_argument("-n", dest="count", metavar="N", type=whole(1), default=3, help="examples (default 3)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML values for the task's parameters")
    parser.add_argument("--lm-adapter", metavar="SPEC", required=True, help="the model to ask")
    parser.add_argument("--lm-adapter-arg", metavar="KEY=VALUE", action="append", type=key_value, default=[])
    parser.add_argument("--lm-judge", metavar="SPEC", help="the model that judges")
    parser.add_argument("--lm-judge-arg", metavar="KEY=VALUE", action="append", type=key_value, default=[])
    parser.add_argument("--lm-think-tags", metavar="OPEN,CLOSE", type=think_tags, default=THINK_TAGS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the examples; return 1 where a stage failed."""
    project = Project()
    file = project.find(options.task)
    configs: Sequence[Any] = ()
    if options.config is not None:
        from pytest_lmeval.formats.yaml.configs import read_configs

        configs = read_configs(options.config)
    show(["Checking configuration"])
    loaded = project.load(file, configs)
    if loaded.errors or not loaded.tasks:
        show([*(f"  {error.at(file.path)}" for error in loaded.errors), "Configuration: FAILED"])
        return 1
    show(["Configuration is valid."])
    given = dict(options.lm_adapter_arg)
    adapter = resolve_adapter(options.lm_adapter, project.registry, given, Path.cwd())
    judging = dict(options.lm_judge_arg)
    if judging and not options.lm_judge:
        raise UsageError("--lm-judge-arg needs --lm-judge SPEC: it is an option of the judge's adapter")
    scrubber = scrubber_of([(options.lm_adapter, given), (options.lm_judge or "", judging)], Path.cwd())
    # One task of several in a file, where that is the one asked for.
    tasks = [task for task in loaded.tasks if task.name == options.task] or loaded.tasks
    settings = RunSettings(batch_size=1, scrubber=scrubber, think_tags=options.lm_think_tags)
    judge = resolve_adapter(options.lm_judge, project.registry, judging, Path.cwd()) if options.lm_judge else None
    with DryRun(project.registry, adapter, judge, tasks, options.count, settings) as dry_run:
        failed = [_shown(dry_run, task, adapter_name(adapter), scrubber) for task in tasks]
    return int(any(failed))


def _shown(dry_run: DryRun, task: Any, adapter: str, scrubber: Scrubber) -> bool:
    if reason := dry_run.lacking.get(task.name):
        show([printable(f"REFUSED: {reason}", keep="")])
        return True
    units = dry_run.units[task.name]
    show([f"Task {printable(task.name, keep='')}: {len(units)} of {len(task.examples)} example(s), asking {adapter}"])
    results = []
    failed = False
    for number, unit in enumerate(units, 1):
        show([_rule("="), f"Example {number}/{len(units)}: {printable(unit.example.id, keep='')}"])
        result, stages = dry_run.example(unit)
        for stage in stages:
            # What the model said comes here as it is.
            show(map(scrubber.scrub, _stage(stage)))
        results.append(result)
        failed = failed or result.is_error
    metrics = dry_run.metrics(task, results)
    show([_rule("="), *_stage(metrics)])
    return failed or metrics.failed


def _stage(stage: Shown) -> Iterator[str]:
    yield _rule("-")
    yield f"{stage.name}: FAILED" if stage.failed else stage.name
    yield ""
    yield from (f"  {line}" for line in _as_yaml(stage.value).splitlines())
    yield ""


def _as_yaml(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    import yaml  # type: ignore[import-untyped]  # no types are published with it

    text: str = yaml.safe_dump(_plain(value), allow_unicode=True, sort_keys=False, width=_WIDTH)
    return printable(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _rule(char: str) -> str:
    return char * _WIDTH
