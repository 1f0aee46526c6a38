"""Write the report into one comment on the pull request; the comment of an earlier run is replaced."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

REPORTS = Path("reports")
_NO_NAME = re.compile(r"[^\w.-]|^\.+$")
_LET_PASS = ("pass", "new", "inconclusive")
_MOST_PAGES = 30
_LONGEST_BODY = 65_000


def main() -> None:
    """Write the comment; without a pull request or the permission write none, and exit with 0."""
    number = pull_request()
    if number is None:
        return
    text = report() or no_report()
    mark = f"<!-- lmeval: {os.environ['NAME'].replace('--', '- -')} -->"
    body = f"{mark}\n{text}"[:_LONGEST_BODY]
    try:
        own = find_comment(number, mark)
        if own is None:
            ask("POST", f"issues/{number}/comments", {"body": body})
        else:
            ask("PATCH", f"issues/comments/{own}", {"body": body})
    except urllib.error.HTTPError as error:
        why = "the token may not write comments (permissions: pull-requests: write; a fork's never may)"
        reason = why if error.code in (401, 403, 404) else f"HTTP {error.code}"
        print(f"::warning title=lmeval::no comment: {reason}; the report is in the step's summary and the artifact")
    except (OSError, ValueError) as error:
        print(f"::warning title=lmeval::no comment: {type(error).__name__}; the report is in the step's summary")


def report() -> str:
    """Return the report of the run; of several models how they compare, and the reports of those that fail it.

    Empty if the run wrote none: there may still be one of another run.
    """
    if not os.environ["FOLDER"]:
        return ""
    folder = Path(os.environ["FOLDER"])
    if not (folder / "comparison.json").is_file():
        return read(folder / "leaderboard.md")
    text = read(folder / "comparison.md")
    for model in json.loads((folder / "comparison.json").read_text("utf-8"))["models"]:
        # Nothing but the folder of a label: what the run wrote may have been changed by what it ran.
        own = REPORTS / _NO_NAME.sub("-", model["label"]) / folder.relative_to(REPORTS) / "leaderboard.md"
        if model["verdict"] in _LET_PASS or not own.is_file():
            continue
        part = f"\n<details><summary>{model['label']}</summary>\n\n{own.read_text('utf-8')}\n</details>\n"
        if len(text) + len(part) > _LONGEST_BODY - 200:
            part = f"\nThe report of {model['label']} is in the artifact.\n"
        text += part
    return text


def read(path: Path) -> str:
    """Return the text of a file that may not be there."""
    return path.read_text("utf-8") if path.is_file() else ""


def no_report() -> str:
    """Return what to say of a run that wrote no report."""
    code = os.environ["CODE"]
    if code == "0":
        why = "pytest passed; no eval is selected, or --lm-changed found none that the change touches"
        return f"# No eval ran: {os.environ['NAME']}\n\n{why}\n"
    how = f"the run ended with exit code {code} and wrote no report" if code else "the run did not start"
    return f"# No report: {os.environ['NAME']}\n\n{how}; the log of the job says why\n"


def pull_request() -> int | None:
    """Return the number of the pull request, None where the run is of something else."""
    try:
        number = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))["pull_request"]["number"]
    except (KeyError, TypeError, OSError, ValueError):
        return None
    return number if isinstance(number, int) else None


def find_comment(number: int, mark: str) -> int | None:
    """Return the comment of an earlier run, if there is one."""
    for page in range(1, _MOST_PAGES + 1):
        comments = ask("GET", f"issues/{number}/comments?per_page=100&page={page}")
        for comment in comments:
            # Anybody could write the mark into a comment: only one that this token's owner wrote can be replaced.
            if str(comment.get("body", "")).startswith(mark) and comment["user"]["type"] == "Bot":
                return int(comment["id"])
        if len(comments) < 100:
            break
    return None


def ask(method: str, path: str, fields: dict[str, Any] | None = None) -> Any:
    """Ask GitHub's interface for the repository."""
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        json.dumps(fields).encode() if fields is not None else None,
        {
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.loads(reply.read() or b"null")


if __name__ == "__main__":
    main()
