"""Collect a run's manifest, and write the plugin's line in pytest's header."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.settings.checks import FROM_INI
from pytest_lmeval.plugin.settings.models import ENVIRONMENT, configs, rerun_facts, shown_report_dir
from pytest_lmeval.plugin.settings.settings import address_text, cache_of, gate_mode, label_of, resolved_of, spec_of
from pytest_lmeval.records.receipt import RUN_ID, named_run
from pytest_lmeval.redaction import redact
from pytest_lmeval.text import printable

_PACKAGES = ("pytest-lmeval", "pytest", "pytest-xdist", "pytest-json-report")


def shard_facts(infos: Mapping[str, TaskInfo]) -> dict[str, Any]:
    """Describe, for the manifest, the whole run that a shard belongs to; return an empty dict if no task is sharded."""
    parts = {name: info.shard for name, info in sorted(infos.items()) if info.shard}
    if not parts:
        return {}
    count = sum(len(part["ids"]) for part in parts.values())
    text = json.dumps([[name, part["sha256"]] for name, part in parts.items()])
    digest = sha256(text.encode("ascii")).hexdigest()
    return {"shard_of": {"examples": count, "sha256": digest}}


def manifest_of(config: pytest.Config) -> dict[str, Any]:
    """Collect versions, platform, git commit, arguments and settings, without secrets."""
    option = config.option
    resolved = resolved_of(config)
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": platform.platform(),
        "git": _git(config.rootpath),
        "seed": option.lm_seed,
        "sandbox": option.lm_sandbox,
        "batch_size": option.lm_batch_size,
        "repeats": option.lm_repeats or 1,
        **rerun_facts(config),
        **(named_run(given) if (given := config.stash[ENVIRONMENT](RUN_ID)) else {}),
        **({"base_url": redact(resolved.base_url), "base_url_from": resolved.named_by} if resolved.named_by else {}),
        **({"ini_file": ini} if (ini := ini_file(config)) else {}),
        **({"gate_from_ini": named} if (named := config.stash[FROM_INI]) else {}),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git(project: Path) -> dict[str, Any] | None:
    real = project.resolve()
    # Looking for the folder is faster than running git.
    if "GIT_DIR" not in os.environ and not any((folder / ".git").exists() for folder in (real, *real.parents)):
        return None
    command = ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if commit == "(initial)":
        return None
    return {"commit": commit, "dirty": not all(line.startswith("#") for line in lines)}


def ini_file(config: pytest.Config) -> str:
    """Return the ini file's path relative to the working folder, or "" if there is no ini file."""
    if config.inipath is None:
        return ""
    return Path(os.path.relpath(config.inipath, config.invocation_params.dir)).as_posix()


def header(config: pytest.Config) -> str:
    """Return the plugin's line in pytest's header."""
    # Do not show a key that was pasted in place of the model's name; it is rejected later.
    spec = spec_of(config)
    shown = spec if "sk-" not in spec else f"{spec.partition(':')[0]}:***"
    shown = ", ".join(f"{label_of(one) or shown}{address_text(one)}" for one in configs(config))
    parts = [f"adapter {shown}", f"gate {gate_mode(config)}", f"sandbox {config.option.lm_sandbox}"]
    cache = cache_of(config)
    parts += [f"cache {cache.folder} ({cache.mode})"] if cache is not None else []
    # A subfolder may have its own ini file, and pytest's line does not name the folder.
    parts += [f"ini {found}"] if (found := ini_file(config)) else []
    lines = [f"lmeval: {', '.join(parts)}, reports {shown_report_dir(config)}"]
    if config.get_verbosity() > 0:
        from pytest_lmeval.plugin.asking.turn import why_all_phases

        if why := why_all_phases(config, config.hook):
            lines.append(f"lmeval: each example runs all of pytest's phases ({why})")
    return "\n".join(printable(line, keep="") for line in lines)


def info_of(rootpath: Path, nodeid: str, task: str) -> TaskInfo:
    """Derive a TaskInfo from a node id, for use when every process that knew more has died."""
    path = nodeid.partition("::")[0]
    try:
        digest = sha256((rootpath / path).read_bytes()).hexdigest()
    except OSError:
        digest = None
    return TaskInfo(task, path, digest)
