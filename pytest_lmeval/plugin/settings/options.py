"""Declare the command-line and ini options."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.arguments import (
    THINK_TAGS,
    MaxErrors,
    given,
    key_value,
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
PAIR_BY = ("content", "id")
CACHE_MODES = ("use", "read-only", "refresh", "sampled")
SANDBOX_LEVELS = ("isolated", "confined", "process", "container")


def add_options(parser: pytest.Parser) -> None:
    """Add the option group ``lmeval`` and the ini options."""
    group = parser.getgroup("lmeval", "lmeval: language-model evaluation")
    for names, keywords in _OPTIONS:
        group.addoption(*names, **keywords)
    parser.addini("lm_adapter", "the adapter if the command line names none", default="")
    parser.addini("lm_task_paths", "folders that hold task files (default: tasks)", type="args", default=None)
    parser.addini(
        "lm_thresholds", "NAME=VALUE thresholds of examples, like --lm-threshold", type="linelist", default=[]
    )
    parser.addini("lm_min_scores", "NAME=VALUE floors of tasks, like --lm-min-score", type="linelist", default=[])
    parser.addini(
        "lm_sandbox_packages", "installed packages that confined programs may import", type="args", default=[]
    )
    parser.addini(
        "lm_trusted_paths",
        "the only folders whose task_*.py and YAML tasks may run Python (default: all)",
        type="args",
        default=None,
    )
    parser.addini("lm_gate", "results that fail a run, like --lm-gate", default="")
    parser.addini("lm_baseline", "baseline of whole runs, relative to the ini file", default="")
    parser.addini("lm_alpha", "share of unchanged runs that may fail, like --lm-alpha", default="")
    parser.addini("lm_pair_by", "how examples pair with the baseline's, like --lm-pair-by", default="")
    parser.addini(
        "lm_max_errors", "number or share of examples that may end in an error, like --lm-max-errors", default=""
    )
    parser.addini("lm_cache", "folder of cached answers, like --lm-cache; relative to the project's root", default="")
    paths = "[METHOD] PATH of requests to lm.base_url to forward unchanged to the adapter's server"
    parser.addini(
        "lm_threads", "run def functions of eval_task in threads (default: false)", type="bool", default=False
    )
    parser.addini(
        "lm_changed_ignore",
        "files whose change --lm-changed ignores: patterns of names, and folders that end with / (default: *.md docs/)",
        type="args",
        default=["*.md", "docs/"],
    )
    parser.addini("lm_forward_paths", paths, type="linelist", default=[])
    safe = "function- and class-scoped fixtures that may exist several times, so that examples with them run at once"
    parser.addini("lm_safe_fixtures", safe, type="args", default=[])
    parser.addini("lm_max_data_bytes", "largest data set that is read, in bytes uncompressed (default 1 GiB)")
    parser.addini("lm_max_media_bytes", "largest image, audio or file in a prompt, in bytes (default 20 MiB)")
    parser.addini("lm_max_line_bytes", "longest line of a task file that is read", default=str(1 << 20))


def _option(name: str, text: str, *, also: str = "", **keywords: Any) -> tuple[list[str], dict[str, Any]]:
    """Return an option's names (``also`` is an older name) and the keyword arguments of ``addoption``."""
    return [name, also] if also else [name], {"help": text, **keywords}


_OPTIONS = [
    _option(
        "--lm-adapter",
        "the model; repeatable, to compare several: toy, replay:PATH, openai:MODEL, anthropic:MODEL, litellm:MODEL, "
        "hf:PATH, ray:SPEC, module:Object, a profile (ini: lm_adapter)",
        metavar="[LABEL=]SPEC",
        type=given,
        action="append",
    ),
    _option(
        "--lm-adapter-arg",
        "option for the adapter; the value is TOML, or else text; repeatable",
        metavar="[LABEL:]KEY=VALUE",
        action="append",
        type=labelled_key_value,
        default=[],
    ),
    _option(
        "--lm-batch-size", "requests per call of a batch adapter (default 8)", metavar="N", type=whole(1), default=8
    ),
    _option("--lm-repeats", "ask each example K times (default 1)", metavar="K", type=whole(1)),
    _option("--lm-cache", "cache answers in this folder (ini: lm_cache)", metavar="DIR", type=given),
    _option(
        "--lm-cache-mode",
        "use (default): answers at temperature 0; sampled: all, by repeat; read-only: ask no model, a missing "
        "answer is an error; refresh: ask everything again",
        metavar="MODE",
        choices=CACHE_MODES,
    ),
    _option(
        "--lm-resume",
        "complete an interrupted run: reuse the responses in the report dir's ledger",
        action="store_true",
    ),
    _option("--lm-max-cost", "stop before the run costs more than this", metavar="AMOUNT", type=positive),
    _option(
        "--lm-concurrency",
        "requests in flight of an async adapter, over all processes (default 16)",
        metavar="N",
        type=whole(1),
        default=16,
    ),
    _option(
        "--lm-timeout", "seconds for one attempt at a request (default 60)", metavar="S", type=positive, default=60.0
    ),
    _option(
        "--lm-retries", "further attempts after a failed request (default 4)", metavar="N", type=whole(0), default=4
    ),
    _option("--lm-limit", "run only the first N valid records of each task", metavar="N", type=whole(1)),
    _option("--lm-sample", "run only N random valid records of each task (see --lm-seed)", metavar="N", type=whole(1)),
    _option("--lm-seed", "seed for --lm-sample (default 0)", metavar="S", type=int, default=0),
    _option(
        "--lm-num-fewshot",
        "number of worked examples before each prompt, for tasks that choose them (default: the task's own number)",
        metavar="K",
        type=whole(0),
    ),
    _option(
        "--lm-check-formatting",
        "ask no model; compare each task's first prompt, in each chat format, with the recorded prompt. =update "
        "records the current prompts (before a path, write =check)",
        metavar="update",
        nargs="?",
        const="check",
        choices=("check", "update"),
    ),
    _option(
        "--lm-config",
        "YAML values for parameters of declarative tasks: one mapping, or a list of mappings to run each of them",
        metavar="FILE",
        type=given,
    ),
    _option(
        "--lm-subject",
        "run only this subject of tasks with subjects, and other tasks completely; repeatable",
        metavar="NAME",
        action="append",
        default=[],
    ),
    _option(
        "--lm-threshold",
        "score an example must reach, by task or metric (the task's takes precedence); repeatable (ini: lm_thresholds)",
        metavar="NAME=V",
        action="append",
        type=named_share,
        default=[],
    ),
    _option(
        "--lm-gate",
        "examples (default): an example under its threshold is a failed test; tasks: a task under its floor fails the "
        "run; baseline (default with --lm-baseline): a regression fails the run; none: only report (ini: lm_gate)",
        metavar="MODE",
        choices=GATES,
    ),
    _option(
        "--lm-min-score",
        "floor: the score a task, or 'overall', must reach; repeatable (ini: lm_min_scores)",
        metavar="NAME=V",
        action="append",
        type=named_share,
        default=[],
    ),
    _option(
        "--lm-baseline",
        "an earlier leaderboard.json (with per-example records) or ledger.jsonl to compare with (ini: lm_baseline)",
        metavar="PATH",
        type=given,
    ),
    _option(
        "--lm-update-baseline",
        "write this run to --lm-baseline if it is complete and ran all examples",
        action="store_true",
    ),
    _option(
        "--lm-alpha",
        "share of unchanged runs that may be called a regression (default 0.05; ini: lm_alpha)",
        metavar="A",
        type=level,
    ),
    _option(
        "--lm-tolerance",
        "a drop of up to D, on the scale from 0 to 1, is no regression (default 0)",
        metavar="D",
        type=share,
        default=0.0,
    ),
    _option(
        "--lm-strict", "any example that passed in the baseline and fails now is a regression", action="store_true"
    ),
    _option(
        "--lm-max",
        "limit on the time, tokens or cost of a task's answers, or of 'overall': p50_ms, p95_ms, ttft_p95_ms, "
        "requests_per_example, tokens_per_example, cost_per_example or cost; repeatable",
        metavar="NAME.FIELD=V",
        action="append",
        type=named_amount,
        default=[],
    ),
    _option(
        "--lm-pair-by",
        "pair examples with the same id: content (default) also compares everything that decides the score, and id "
        "ignores the prompt, to compare prompts (ini: lm_pair_by)",
        metavar="content|id",
        choices=PAIR_BY,
    ),
    _option(
        "--lm-changed",
        "run only evals whose files, data or imported modules differ from this commit; run all if that is unknown",
        metavar="REF",
        type=given,
    ),
    _option(
        "--lm-shard",
        "run the I-th of N parts of the examples; 'lmeval merge' joins the ledgers",
        metavar="I/N",
        type=shard,
    ),
    _option(
        "--lm-max-errors",
        "examples that may end in error or timeout before the run counts as incomplete (default 0; ini: lm_max_errors)",
        metavar="N|P%",
        type=MaxErrors,
    ),
    _option(
        "--lm-report-dir",
        "folder for leaderboard.json, .md, report.html and ledger.jsonl (default: reports below the root)",
        metavar="DIR",
        type=given,
    ),
    _option(
        "--lm-include-per-example",
        "write per-example records to leaderboard.json",
        action="store_true",
        also="--include-per-example",
    ),
    _option(
        "--lm-allow-bad-tasks",
        "skip bad records, with a warning, instead of refusing to run",
        action="store_true",
        also="--allow-bad-tasks",
    ),
    _option(
        "--lm-items",
        "auto (default): skip the set-up and tear-down of an example if they would do nothing; plain: run all phases of"
        " every example",
        metavar="HOW",
        choices=("auto", "plain"),
        default="auto",
    ),
    _option(
        "--lm-sandbox",
        "sandbox for code that the model writes: confined by the kernel (default on Linux); process: only limits; "
        "container: the whole run is in a disposable container",
        metavar="LEVEL",
        choices=SANDBOX_LEVELS,
        default="confined" if sys.platform == "linux" else "process",
    ),
    _option(
        "--lm-think-tags",
        "tags around the model's thoughts, which are not part of the answer (default <think>,</think>); none: keep "
        "texts unchanged",
        metavar="OPEN,CLOSE",
        type=think_tags,
        default=THINK_TAGS,
    ),
    _option("--lm-judge", "the judge, in the format of --lm-adapter", metavar="SPEC", type=given),
    _option(
        "--lm-user",
        "the model that simulates users (default: the judge)",
        metavar="SPEC",
        type=given,
    ),
    _option(
        "--lm-judge-arg",
        "option for the judge's adapter; the value is TOML, or else text; repeatable",
        metavar="KEY=VALUE",
        action="append",
        type=key_value,
        default=[],
    ),
    _option(
        "--lm-user-arg",
        "option for the adapter of --lm-user; the value is TOML, or else text; repeatable",
        metavar="KEY=VALUE",
        action="append",
        type=key_value,
        default=[],
    ),
]


def check_spelling(parser: pytest.Parser, arguments: Sequence[str]) -> None:
    """Raise pytest.UsageError for a misspelt ``--lm-`` option; the message suggests the nearest name."""
    try:
        known, unknown = parser.parse_known_and_unknown_args(list(arguments))
    except pytest.UsageError:
        return  # pytest reports it itself
    ours = [name.removeprefix("lm_").replace("_", "-") for name in vars(known) if name.startswith("lm_")]
    for argument in unknown:
        prefix, _, name = argument.partition("=")[0].partition("--lm-")
        # After a foreign option, argparse may list known options as unknown.
        if not prefix and name not in ours and did_you_mean(name, ours):
            hint = did_you_mean(f"--lm-{name}", [f"--lm-{each}" for each in ours])
            raise pytest.UsageError(f"unknown option --lm-{name};{hint}")
