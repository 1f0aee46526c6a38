"""The command-line and ini options."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.arguments import (
    THINK_TAGS,
    MaxErrors,
    given,
    labelled_key_value,
    level,
    named_amount,
    named_share,
    positive,
    shard,
    share,
    think_tags,
    whole,
)
from pytest_lmeval.errors import did_you_mean

GATES = ("examples", "tasks", "baseline", "none")
CACHE_MODES = ("use", "read-only", "refresh", "sampled")
SANDBOX_LEVELS = ("isolated", "confined", "process", "container")


def add_options(parser: pytest.Parser) -> None:
    """Add the option group ``lmeval`` and the ini options."""
    group = parser.getgroup("lmeval", "lmeval: language-model evaluation")
    for name, keywords in _OPTIONS:
        names = (name,) if isinstance(name, str) else name
        group.addoption(*names, **keywords)
    parser.addini("lm_adapter", "adapter to use where --lm-adapter is not given", default="")
    parser.addini("lm_task_paths", "folders that hold task files (default: tasks)", type="args", default=None)
    parser.addini("lm_thresholds", "NAME=VALUE example thresholds, as --lm-threshold", type="linelist", default=[])
    parser.addini("lm_min_scores", "NAME=VALUE task floors, as --lm-min-score", type="linelist", default=[])
    parser.addini(
        "lm_sandbox_packages", "installed packages that confined programs may import", type="args", default=[]
    )
    parser.addini(
        "lm_trusted_paths",
        "the only folders whose task_*.py and YAML tasks may run Python (default: all)",
        type="args",
        default=None,
    )
    parser.addini("lm_gate", "what decides about a run, as --lm-gate", default="")
    parser.addini("lm_baseline", "run that whole runs are compared with, from the ini file's folder", default="")
    parser.addini("lm_alpha", "how often a run that is no worse may fail, as --lm-alpha", default="")
    parser.addini("lm_max_errors", "examples that may end in an error, as --lm-max-errors", default="")
    parser.addini("lm_cache", "folder of answers, as --lm-cache; from the root of the project", default="")
    parser.addini("lm_max_data_bytes", "largest data set that is read, in bytes uncompressed (default 1 GiB)")
    parser.addini("lm_max_line_bytes", "longest line of a task file that is read", default=str(1 << 20))


_OPTIONS: list[tuple[str | tuple[str, ...], dict[str, Any]]] = [
    (
        "--lm-adapter",
        {
            "metavar": "[LABEL=]SPEC",
            "type": given,
            "action": "append",
            "default": None,
            "help": "the model; repeatable, to compare several: toy, replay:PATH, openai:MODEL, hf:PATH, "
            "module:Object, a profile (ini: lm_adapter)",
        },
    ),
    (
        "--lm-adapter-arg",
        {
            "metavar": "[LABEL:]KEY=VALUE",
            "action": "append",
            "type": labelled_key_value,
            "default": [],
            "help": "option for the adapter; a TOML value, else text; repeatable",
        },
    ),
    (
        "--lm-batch-size",
        {"metavar": "N", "type": whole(1), "default": 8, "help": "requests per call of a batch adapter (default 8)"},
    ),
    (
        "--lm-repeats",
        {"metavar": "K", "type": whole(1), "default": 1, "help": "ask each example K times (default 1)"},
    ),
    (
        "--lm-cache",
        {
            "metavar": "DIR",
            "type": given,
            "default": None,
            "help": "keep answers there, and ask nothing twice (ini: lm_cache)",
        },
    ),
    (
        "--lm-cache-mode",
        {
            "metavar": "MODE",
            "choices": CACHE_MODES,
            "default": None,
            "help": "use (default): answers at temperature 0; sampled: all, by repeat; read-only: ask no model, what "
            "is not there is an error; refresh: ask all again",
        },
    ),
    (
        "--lm-resume",
        {"action": "store_true", "help": "complete an interrupted run: reuse the responses in the report dir's ledger"},
    ),
    (
        "--lm-max-cost",
        {
            "metavar": "AMOUNT",
            "type": positive,
            "help": "stop before the run costs more than this",
        },
    ),
    (
        "--lm-concurrency",
        {
            "metavar": "N",
            "type": whole(1),
            "default": 16,
            "help": "requests in flight of an async adapter, over all processes (default 16)",
        },
    ),
    (
        "--lm-timeout",
        {
            "metavar": "S",
            "type": positive,
            "default": 60.0,
            "help": "seconds for one attempt at a request (default 60)",
        },
    ),
    (
        "--lm-retries",
        {"metavar": "N", "type": whole(0), "default": 4, "help": "further attempts at a request (default 4)"},
    ),
    ("--lm-limit", {"metavar": "N", "type": whole(1), "help": "only the first N valid records of each task"}),
    (
        "--lm-sample",
        {"metavar": "N", "type": whole(1), "help": "only a seeded random N of each task's valid records"},
    ),
    ("--lm-seed", {"metavar": "S", "type": int, "default": 0, "help": "seed of --lm-sample (default 0)"}),
    (
        "--lm-num-fewshot",
        {
            "metavar": "K",
            "type": whole(0),
            "help": "worked examples ahead of each prompt, for tasks that draw them (default: the task's own number)",
        },
    ),
    (
        "--lm-check-formatting",
        {
            "metavar": "update",
            "nargs": "?",
            "const": "check",
            "choices": ("check", "update"),
            "default": None,
            "help": "instead of asking a model, check that each task's first prompt, in each chat format, is the "
            "recorded one; =update accepts them as they are (a path right behind it needs =check)",
        },
    ),
    (
        "--lm-config",
        {
            "metavar": "FILE",
            "type": given,
            "default": None,
            "help": "YAML values for the parameters of declarative tasks: a mapping, or a list to run them under each",
        },
    ),
    (
        "--lm-subject",
        {
            "metavar": "NAME",
            "action": "append",
            "default": [],
            "help": "only this subject, of tasks that have subjects; others run whole; repeatable",
        },
    ),
    (
        "--lm-threshold",
        {
            "metavar": "NAME=V",
            "action": "append",
            "type": named_share,
            "default": [],
            "help": "score an example must reach, by task or metric (task wins); repeatable (ini: lm_thresholds)",
        },
    ),
    (
        "--lm-gate",
        {
            "metavar": "MODE",
            "choices": GATES,
            "default": None,
            "help": "examples: one under its threshold is a failed test (default); tasks: a task under its floor fails "
            "the run; baseline: a regression does (default with --lm-baseline); none: report only (ini: lm_gate)",
        },
    ),
    (
        "--lm-min-score",
        {
            "metavar": "NAME=V",
            "action": "append",
            "type": named_share,
            "default": [],
            "help": "floor: the score a task, or 'overall', must reach; repeatable (ini: lm_min_scores)",
        },
    ),
    (
        "--lm-baseline",
        {
            "metavar": "PATH",
            "type": given,
            "default": None,
            "help": "an earlier leaderboard.json (with per-example records) or ledger.jsonl to compare with "
            "(ini: lm_baseline)",
        },
    ),
    (
        "--lm-update-baseline",
        {"action": "store_true", "help": "write this run to --lm-baseline, if it is complete and nothing was left out"},
    ),
    (
        "--lm-alpha",
        {
            "metavar": "A",
            "type": level,
            "default": None,
            "help": "how often a run that is no worse may be called a regression (default 0.05; ini: lm_alpha)",
        },
    ),
    (
        "--lm-tolerance",
        {
            "metavar": "D",
            "type": share,
            "default": 0.0,
            "help": "a drop of up to D, on the scale from 0 to 1, is no regression (default 0)",
        },
    ),
    (
        "--lm-strict",
        {"action": "store_true", "help": "any example that passed in the baseline and fails now is a regression"},
    ),
    (
        "--lm-max",
        {
            "metavar": "NAME.FIELD=V",
            "action": "append",
            "type": named_amount,
            "default": [],
            "help": "limit on what the answers of a task, or 'overall', take: p50_ms, p95_ms, ttft_p95_ms, "
            "tokens_per_example, cost_per_example or cost; repeatable",
        },
    ),
    (
        "--lm-pair-by",
        {
            "metavar": "content|id",
            "choices": ("content", "id"),
            "default": "content",
            "help": "what pairs an example with the baseline's of its id: all that decides its score (content, the "
            "default), or that without the prompt (id), to compare prompts",
        },
    ),
    (
        "--lm-shard",
        {
            "metavar": "I/N",
            "type": shard,
            "default": None,
            "help": "run the I-th of N parts of the examples; 'lmeval merge' joins the ledgers",
        },
    ),
    (
        "--lm-max-errors",
        {
            "metavar": "N|P%",
            "type": MaxErrors,
            "default": None,
            "help": "examples that may end in error or timeout before the run counts as incomplete (default 0; "
            "ini: lm_max_errors)",
        },
    ),
    (
        "--lm-report-dir",
        {
            "metavar": "DIR",
            "type": given,
            "default": None,
            "help": "where leaderboard.json, .md, report.html and ledger.jsonl go (default: reports below the root)",
        },
    ),
    (
        ("--lm-include-per-example", "--include-per-example"),
        {"action": "store_true", "dest": "lm_include_per_example", "help": "per-example records in leaderboard.json"},
    ),
    (
        ("--lm-allow-bad-tasks", "--allow-bad-tasks"),
        {
            "action": "store_true",
            "dest": "lm_allow_bad_tasks",
            "help": "leave bad records out, with a warning, instead of refusing to run",
        },
    ),
    (
        "--lm-sandbox",
        {
            "metavar": "LEVEL",
            "choices": SANDBOX_LEVELS,
            "default": "confined" if sys.platform == "linux" else "process",
            "help": "how code that the model wrote is run: confined by the kernel (default on Linux), process: limits "
            "alone, container: all of this is in one that may be thrown away",
        },
    ),
    (
        "--lm-think-tags",
        {
            "metavar": "OPEN,CLOSE",
            "type": think_tags,
            "default": THINK_TAGS,
            "help": "what the model writes around its thoughts, which are no part of the answer (default "
            "<think>,</think>); none keeps every text as it is",
        },
    ),
    ("--lm-judge", {"metavar": "SPEC", "type": given, "default": None, "help": "adapter behind the lm_judge fixture"}),
]


def check_spelling(parser: pytest.Parser, arguments: Sequence[str]) -> None:
    """Raise pytest.UsageError for an option that is nearly one of ours, and no plugin's; say which was meant."""
    try:
        known, unknown = parser.parse_known_and_unknown_args(list(arguments))
    except pytest.UsageError:
        return  # pytest finds that out itself
    ours = [name.removeprefix("lm_").replace("_", "-") for name in vars(known) if name.startswith("lm_")]
    for argument in unknown:
        prefix, _, name = argument.partition("=")[0].partition("--lm-")
        if not prefix and did_you_mean(name, ours):
            hint = did_you_mean(f"--lm-{name}", [f"--lm-{each}" for each in ours])
            raise pytest.UsageError(f"unknown option --lm-{name};{hint}")
