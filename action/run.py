"""Run the evals of a pull request against the baseline of its base branch, or join the shards of such a run.

The exit code is an output of the step, not its own: the steps that upload the report and comment come first.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

REPORTS = Path("reports")
FOLDERS = (REPORTS, REPORTS / "selection")
"""Where a run writes its board: one of some examples leaves the board of more of them where it is."""
BOARD, COMPARISON = "leaderboard.json", "comparison.json"
"""What one model leaves, and several."""
FORK = (
    "a pull request from a fork has no secrets, so that a model which needs a key cannot be asked; run the evals on a "
    "branch of this repository, or with a model that needs none"
)


def main() -> None:
    """Run, and write the outputs."""
    baseline = find_baseline()
    command = merging(baseline) if os.environ["MERGE"] == "true" else testing(baseline)
    print(f"$ {one_line(shlex.join(command))}", flush=True)
    # Another step of the job may have left reports: those of this run bear its id.
    run_id = uuid4().hex
    code = subprocess.run(command, env={**os.environ, "LMEVAL_RUN_ID": run_id}, check=False).returncode
    # A signal's number would be no exit code.
    code = code if 0 <= code < 256 else 1
    if code == 4 and from_fork():
        say("error", FORK)
    shard = os.environ["SHARD"].replace("/", "-of-")
    name = os.environ["NAME"]
    folder = next((each for each in FOLDERS if board_of(run_id, each)), None)
    write_outputs(
        {
            "exit-code": str(code),
            "verdict": verdict(board_of(run_id, folder)) if folder else "",
            "artifact": f"{name}-shard-{shard}" if shard else name,
            "folder": folder.as_posix() if folder else "",
            "wrote": "true" if folder or has_ledger(run_id) else "false",
        }
    )


def testing(baseline: Path | None) -> list[str]:
    """Return the command of pytest."""
    options = [f"--lm-baseline={baseline}"] if baseline else []
    if os.environ["SHARD"]:
        options.append(f"--lm-shard={os.environ['SHARD']}")
    given = [*shlex.split(os.environ["PATHS"]), *shlex.split(os.environ["ARGS"])]
    return [sys.executable, "-m", "pytest", *given, *options]


def merging(baseline: Path | None) -> list[str]:
    """Return the command that joins what the jobs of the shards uploaded."""
    folders = sorted(str(path) for path in Path("lmeval-shards").glob("*") if path.is_dir())
    if not folders:
        say(
            "error",
            f"no artifact {os.environ['NAME']}-shard-*: the jobs of the shards need the same name, and end first",
        )
        sys.exit(1)
    options = [f"--baseline={baseline}"] if baseline else []
    return [sys.executable, "-m", "pytest_lmeval.cli", "merge", *folders, "-o", "reports", *options]


def find_baseline() -> Path | None:
    """Return where the baseline is, or None where there is none.

    A pull request is compared with the baseline of its base branch: it cannot lower what it is held to.
    """
    own = Path(os.environ["BASELINE"])
    branch = os.environ.get("GITHUB_BASE_REF", "")
    if not branch or os.environ["BASELINE_FROM"] == "head":
        if not own.exists():
            warn_of_none(own, "here")
        return own if own.exists() else None
    # No name of a branch is an option.
    command = ["git", "fetch", "--quiet", "--depth=1", "--", "origin", f"refs/heads/{branch}"]
    fetched = subprocess.run(command, check=False)
    if fetched.returncode:
        say("error", f"the branch {branch} could not be fetched, so that its baseline is not known")
        sys.exit(1)
    files = files_of_base(own.as_posix())
    if not files:
        warn_of_none(own, f"on {branch}")
        return None
    if any(path.is_file() and path.read_bytes() != content for path, content in files.items()):
        say("notice", f"this pull request changes {own}; it is compared with the one on {branch} (baseline-from: base)")
    found = Path(os.environ["RUNNER_TEMP"], "lmeval-baseline")
    for path, content in files.items():
        (found / path).parent.mkdir(parents=True, exist_ok=True)
        (found / path).write_bytes(content)
    return found / own


def files_of_base(path: str) -> dict[Path, bytes]:
    """Return the file at ``path`` of the branch that was fetched, or the files of that folder; empty without either."""
    listed = subprocess.run(
        ["git", "ls-tree", "-rz", "--name-only", "FETCH_HEAD", "--", path], capture_output=True, text=True, check=False
    )
    names = [name for name in listed.stdout.split("\0") if name]
    shown = {
        name: subprocess.run(["git", "show", f"FETCH_HEAD:{name}"], capture_output=True, check=True) for name in names
    }
    return {Path(name): done.stdout for name, done in shown.items()}


def warn_of_none(baseline: Path, where: str) -> None:
    """Say that nothing is compared, and what to do about it."""
    say("warning", f"no {baseline} {where}: compared with nothing; write it with --lm-update-baseline, and commit it")


def from_fork() -> bool:
    """Tell whether this is a pull request from a fork, from the event that GitHub wrote down."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        return bool(event["pull_request"]["head"]["repo"]["fork"])
    except (KeyError, TypeError, OSError, ValueError):
        return False


def board_of(run_id: str, folder: Path) -> dict[str, Any]:
    """Return the board of this run in ``folder``, of several models the comparison; empty if there is none."""
    for name in (COMPARISON, BOARD):
        try:
            found = json.loads((folder / name).read_text("utf-8"))
            if run_id == (found if name == COMPARISON else found["manifest"])["run_id"]:
                return dict(found)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def has_ledger(run_id: str) -> bool:
    """Tell whether this run began a ledger, to be uploaded though there is no board."""
    return any(run_id.encode() in path.read_bytes() for path in REPORTS.rglob("ledger.jsonl"))


def verdict(board: dict[str, Any]) -> str:
    """Return the gate's verdict on a board, of several models ``LABEL=VERDICT`` for each, or none."""
    try:
        if "models" in board:
            return " ".join(f"{model['label']}={model['verdict']}" for model in board["models"])
        found = board["gate"]["verdict"]
    except (KeyError, TypeError):
        return ""
    return found if isinstance(found, str) and found.isidentifier() else ""


def say(kind: str, message: str) -> None:
    """Print an annotation of GitHub's: ``error``, ``warning`` or ``notice``."""
    print(f"::{kind} title=lmeval::{one_line(message).replace('%', '%25')}", flush=True)


def one_line(text: str) -> str:
    """Return the text on one line: a runner takes what begins another one for a command."""
    return " ".join(text.splitlines())


def write_outputs(outputs: dict[str, str]) -> None:
    """Write the outputs of the step, each on one line."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={one_line(value)}\n" for name, value in outputs.items())


if __name__ == "__main__":
    main()
