"""The table of borders: what can cross each, and whether it is used, refused or reported.

A border is where code or text that is not the project's meets a run: an eval function, a model's answer, a file. Each
has a module ``test_BORDER.py`` with a ``BORDER``; its rows say of every kind in ``KINDS`` what becomes of it, or why it
cannot occur. ``check`` runs what the rows describe and compares every front end: the exit code, the board, the
terminal, Markdown, JUnit and the page.

Rows share one run, so a row costs little: its files are added to those of the border, and ``example`` names what is
looked at. A row that is ``alone`` has a run of its own, for what stops a run or changes its exit code.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.conftest import MODEL, NEEDLESS, PYTEST_INI, RunModule, write_anew

KINDS = (
    "absent",
    "empty",
    "wrong type",
    "too large",
    "not finite or negative",
    "control characters",
    "twice",
    "late",
    "out of order",
    "cancelled",
    "raising",
    "secret",
    "same name",
    "beside",
    "environment",
    "changed unseen",
    "earlier run",
    "kept client",
)
"""What at least is tried at every border; control characters are also text that is not UTF-8.

The last five are around a run: what else runs in its process, what the environment holds, what changed without being
named (a model, rows, options), what an earlier run left, and a request of a client that outlives its example.
"""
FRONTS = ("terminal", "board", "markdown", "junit", "page")
"""Where a person or a program reads what became of it, besides the exit code."""
_STARTED = {"refused": FRONTS, "reported": ("terminal", "board", "markdown", "page"), "used": ()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """Something that crosses a border, and its fate.

    ``files`` are added to the border's, by their paths; ``arguments`` to its command line, if the row is ``alone``.
    With ``example`` (``TASK:ID``) the board's record of it has this ``status`` and, if given, ``score``. ``says`` is
    the beginning of what is said, at most 80 characters: it is looked for on the front ends in ``on``. By default
    these are all for an example that is refused, all but JUnit (it lists tests) for what is reported, none for what is
    used; the terminal alone where no example is named, because the run is refused. ``unsaid`` must be on none of them.
    ``before`` holds the files that were others in an earlier run, which is made first, with the options ``first``, too.
    ``never`` says why this kind cannot occur; such a row has nothing else.
    """

    kind: str
    what: str = ""
    fate: Literal["used", "refused", "reported"] = "used"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str | bytes] | None = None
    first: tuple[str, ...] = ()
    alone: bool = False
    code: int | None = None
    example: str = ""
    status: str = ""
    score: float | None = None
    says: str = ""
    unsaid: str = ""
    on: tuple[str, ...] | None = None
    never: str = ""

    @property
    def fronts(self) -> tuple[str, ...]:
        """The front ends that have ``says``."""
        if self.on is not None:
            return self.on
        return ("terminal",) if self.fate == "refused" and not self.example else _STARTED[self.fate]


def run_of_its_own(kind: str, what: str, *arguments: str, code: int = 0, **fields: Any) -> Row:
    """Return a row that is alone, with these arguments of the command line."""
    return Row(kind=kind, what=what, arguments=arguments, alone=True, code=code, **fields)


def since_baseline(kind: str, what: str, says: str, before: Mapping[str, str | bytes], **fields: Any) -> Row:
    """Return a row that is alone: what was so in the run of its baseline is not any more, and that is said."""
    known: dict[str, Any] = {"fate": "reported", "on": ("terminal", "markdown", "page")} | fields
    return run_of_its_own(
        *(kind, what, "--lm-baseline=base.json", "--lm-gate=baseline"),
        says=says,
        before=before,
        first=("--lm-update-baseline",),
        **known,
    )


def refused_run(kind: str, what: str, says: str, *arguments: str, code: int = 4, **fields: Any) -> Row:
    """Return a row that is alone, and whose run is refused."""
    return run_of_its_own(kind, what, *arguments, code=code, fate="refused", says=says, **fields)


@dataclass(frozen=True, kw_only=True)
class Border:
    """A border with its rows; ``code`` is the exit code of the run that the rows share."""

    name: str
    rows: tuple[Row, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("--lm-adapter=model:Model",)
    code: int = 0

    @property
    def shared(self) -> tuple[Row, ...]:
        """The rows of the one run."""
        return tuple(row for row in self.rows if not row.alone and not row.never)

    @property
    def alone(self) -> tuple[Row, ...]:
        """The rows with a run of their own."""
        return tuple(row for row in self.rows if row.alone)


def lacking(border: Border) -> list[str]:
    """Return what is wrong with the border's table: kinds without a row, rows that check nothing."""
    kinds = {row.kind for row in border.rows}
    faults = [f"{border.name}: no row for {kind!r}" for kind in KINDS if kind not in kinds]
    faults += [f"{border.name}: unknown kind {kind!r}" for kind in sorted(kinds - {*KINDS})]
    for row in border.rows:
        if not row.never and not (row.status or row.says or (row.alone and row.code is not None)):
            faults.append(f"{border.name}: the row {row.kind!r} ({row.what}) looks at nothing")
        if row.fate != "used" and not row.never and not row.says:
            faults.append(f"{border.name}: the row {row.kind!r} ({row.what}) does not say what is said")
        if row.alone and row.code is None:
            faults.append(f"{border.name}: the row {row.kind!r} ({row.what}) has no exit code")
        if row.before is not None and not row.alone:
            faults.append(f"{border.name}: the row {row.kind!r} ({row.what}) has an earlier run, and is not alone")
    return faults


def check(border: Border, folder: Path, run_module: RunModule, processes: str = "-n0") -> None:
    """Run the rows of ``border`` below ``folder`` and fail with all that differs."""
    found = []
    if border.shared:
        found += _run(border, border.shared, folder / "shared", run_module, processes)
    for number, row in enumerate(border.alone):
        found += _run(border, (row,), folder / f"alone-{number}", run_module, processes)
    assert not found, "\n".join(found)


def _run(border: Border, rows: tuple[Row, ...], folder: Path, run_module: RunModule, processes: str) -> list[str]:
    files: dict[str, str | bytes] = {"model.py": MODEL, "pytest.ini": PYTEST_INI, **border.files}
    environment: dict[str, str] = {}
    for row in rows:
        files.update(row.files)
        environment.update(row.environment)
    alone = rows[0].alone
    arguments = (*border.arguments, *(rows[0].arguments if alone else ()), processes, "--junitxml=reports/junit.xml")
    usual = (*[f"-pno:{name}" for name in NEEDLESS], "--lm-include-per-example", *arguments)
    if alone and rows[0].before is not None:
        _write(folder, {**files, **rows[0].before})
        run_module(folder, "pytest", *usual, *rows[0].first, **environment)
    _write(folder, files)
    done = run_module(folder, "pytest", *usual, **environment)
    output = done.stdout + done.stderr
    code = rows[0].code if alone else border.code
    faults = [f"exit code {done.returncode}, expected {code}:\n{output}"] if done.returncode != code else []
    texts = _texts(folder, output)
    for row in rows:
        faults += [f"{row.kind} ({row.what}): {fault}" for fault in _differs(row, folder, texts)]
    return [*faults, output] if faults else []


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_anew(path, content if isinstance(content, bytes) else content.encode())


def _texts(folder: Path, output: str) -> dict[str, str]:
    """Return what each front end says, without its markup and line breaks."""
    files = {"board": "leaderboard.json", "markdown": "leaderboard.md", "junit": "junit.xml", "page": "report.html"}
    # Of several models the comparison stands where the board of one does.
    if (folder / "reports/comparison.json").is_file():
        files |= {"board": "comparison.json", "markdown": "comparison.md"}
    paths = {front: folder / "reports" / name for front, name in files.items()}
    found = {front: path.read_text("utf-8") for front, path in paths.items() if path.is_file()}
    return {front: _plain(text) for front, text in {"terminal": output, **found}.items()}


def _plain(text: str) -> str:
    text = html.unescape(html.unescape(text)).replace("\u200b", "")
    # What JSON in a page, Markdown and XML put before or instead of a character, and terminals before a line.
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r'\\(["\\`*_\[\]>|])', r"\1", text)
    return " ".join(re.sub(r"\n(E  |\S+:\d+:)? *", " ", text).split())


def _differs(row: Row, folder: Path, texts: Mapping[str, str]) -> list[str]:
    faults = []
    if row.example:
        faults += _differing_record(row, folder)
    says = _plain(row.says)
    faults += [f"{front} does not say {says!r}" for front in row.fronts if says not in texts.get(front, "")]
    if row.unsaid:
        faults += [f"{front} says {row.unsaid!r}" for front, text in texts.items() if _plain(row.unsaid) in text]
    if row.fate == "refused" and not row.example and row.code in (2, 4) and "board" in texts:
        faults.append("a board was written, of a run that was refused")
    return faults


def _differing_record(row: Row, folder: Path) -> list[str]:
    path = folder / "reports" / "leaderboard.json"
    if not path.exists():
        return ["no board was written"]
    tasks = json.loads(path.read_text("utf-8"))["tasks"]
    records = {f"{task['task']}:{record['id']}": record for task in tasks for record in task["per_example"]}
    record = records.get(row.example)
    if record is None:
        return [f"the board has no example {row.example}; it has {', '.join(records)}"]
    faults = [] if record["status"] == row.status else [f"status {record['status']}, expected {row.status}"]
    if row.score is not None and record["score"] != row.score:
        faults.append(f"score {record['score']}, expected {row.score}")
    return faults
