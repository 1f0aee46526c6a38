"""Writes the pages of ``docs/reference/`` out of the code; a test fails where one is stale.

Usage: ``python website/reference.py``. No page is edited by hand: the texts are those of ``--help``, of docstrings and
of the schemas.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest_lmeval
from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.adapters.protocol import AnsweringAdapter, RunningAdapter
from pytest_lmeval.cli import _MODULES as MODULES
from pytest_lmeval.cli import COMMANDS
from pytest_lmeval.compare.gate import LET_PASS
from pytest_lmeval.errors import INCOMPLETE
from pytest_lmeval.loading import default_registry
from pytest_lmeval.plugin.settings.options import add_options
from pytest_lmeval.postprocess import RULES
from pytest_lmeval.schemas import load_schema, schema_names

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
# The names that a version brought; all others came with 0.1.
NEW = {
    "0.2": {
        "Options of pytest": (
            "--lm-cache --lm-cache-mode --lm-items --lm-judge-arg --lm-max --lm-pair-by --lm-think-tags --lm-user"
        ),
        "Ini keys": (
            "lm_alpha lm_baseline lm_cache lm_forward_paths lm_gate lm_max_data_bytes lm_max_errors lm_pair_by "
            "lm_threads"
        ),
        "Commands": "baseline cache history import plan publish run",
        "Metrics": (
            "checks contains_all contains_any drop_em drop_f1 number regex rubric starts_with tool_calls turns"
        ),
        "Public names": "BlockingLm Lm Row ToolCall eval_task",
    },
    "the next version": {
        "Options of pytest": "--lm-changed --lm-user-arg",
        "Ini keys": "lm_changed_ignore lm_safe_fixtures",
        "Public names": "BlockingUser Grade Judgment LmBase Step User",
    },
}
_NOTE = "<!-- Written by website/reference.py: change the code, then run it. -->"


class _Parser:
    """Stands in for pytest's parser, and keeps what it is given."""

    def __init__(self) -> None:
        self.options: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self.keys: list[tuple[str, str, str, Any]] = []

    def getgroup(self, *_: str) -> _Parser:
        """Return this, as the group."""
        return self

    def addoption(self, *names: str, **keywords: Any) -> None:
        """Keep an option."""
        self.options.append((names, keywords))

    def addini(self, name: str, text: str, type: str = "string", default: Any = None) -> None:
        """Keep an ini key."""
        self.keys.append((name, text, type, default))


def code(text: object) -> str:
    """Return ``text`` as code in a cell of a table, nothing for no text."""
    return f"`{text}`".replace("|", "\\|") if f"{text}" else ""


def cell(text: str) -> str:
    """Return a text of the code for a cell of a table, on one line."""
    plain = re.sub(r":\w+:`~?([^`]*)`", r"``\1``", " ".join(text.split())).replace("``", "`")
    # What is in backticks is shown as it is.
    parts = [
        part if number % 2 else re.sub(r"([<*\[\]])", r"\\\1", part) for number, part in enumerate(plain.split("`"))
    ]
    return "`".join(parts).replace("|", "\\|")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("|" + "".join(f" {each} |" if each else " |" for each in line) + "\n" for line in lines)


def options() -> str:
    """Return the page of the options of pytest and the ini keys."""
    parser: Any = _Parser()
    add_options(parser)
    rows = []
    for names, keywords in sorted(parser.options):
        choices = keywords.get("choices")
        values = keywords.get("metavar", "") or "|".join(choices or ())
        also = f" (or {code(names[1])})" if len(names) > 1 else ""
        among = f"; one of {', '.join(map(code, choices))}" if choices else ""
        rows.append([code(" ".join(filter(None, (names[0], values)))) + also, cell(keywords["help"]) + among])
    keys = [[code(name), code(kind), cell(text)] for name, text, kind, _ in sorted(parser.keys)]
    return (
        "# Options and ini keys\n\nOptions of `pytest`; `pytest --help` lists them under *lmeval*.\n\n"
        + table(("option", "meaning"), rows)
        + "\n## Ini keys\n\nIn `pytest.ini`, in `[tool.pytest.ini_options]` of `pyproject.toml`, or in another file "
        "that pytest reads. An option goes before the key of its name.\n\n" + table(("key", "type", "meaning"), keys)
    )


def _arguments(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield [code(name), cell(inner.description or "")]
                yield from ([f"{code(name)} {argument}", text] for argument, text in _arguments(inner))
            continue
        choices = "|".join(map(str, action.choices or ()))
        value = "" if action.nargs == 0 else f"{action.metavar or choices or action.dest.upper()}"
        more = {"+": "...", "*": "..."}.get(f"{action.nargs}", "")
        yield [code(" ".join(filter(None, [*action.option_strings[:1], value + more]))), cell(action.help or "")]


def commands() -> str:
    """Return the page of the commands."""
    found = [
        "# Commands\n\nCommands of `lmeval`; [the command](../commands.md) has examples. All return 0 if all is well,",
        " 1 for a finding such as a bad record or a regression, 2 for a usage error.\n",
    ]
    for name, summary in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"lmeval {name}", usage=argparse.SUPPRESS)
        import_module(f"pytest_lmeval.cli.{MODULES.get(name, name)}").configure(parser)
        found.append(
            f"\n## {name}\n\n{summary[0].upper()}{summary[1:]}.\n\n"
            + table(("argument", "meaning"), _arguments(parser))
        )
    return "".join(found)


def metrics() -> str:
    """Return the page of the metrics and the post-process rules."""
    rows = []
    for name, metric in sorted(default_registry(entry_points=False).metrics.items()):
        needs = [
            *(["the sandbox"] if metric.needs_sandbox else []),
            *(["a judge"] if metric.asks_judge else []),
            *([code(f"pip install {metric.install}")] if metric.install else []),
            *([] if metric.needs_targets else ["no targets"]),
        ]
        summary = (inspect.getdoc(metric.function) or "").partition("\n\n")[0]
        rows.append(
            [code(name), cell(summary), f"{metric.threshold:g}", ", ".join(map(code, metric.extras)), ", ".join(needs)]
        )
    rules = [[code(name), cell((inspect.getdoc(rule) or "").partition("\n\n")[0])] for name, rule in RULES.items()]
    return (
        "# Metrics\n\n[Task files](../tasks.md#metrics) says how each one reads an answer, and which names "
        "a dialect has for it.\n\n"
        + table(("metric", "what it does", "threshold", "extras that it reads", "needs"), rows)
        + "\n## Post-process rules\n\n"
        + table(("rule", "prediction"), rules)
    )


def _kind(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    if "const" in part:
        return str(part["const"])
    kind = part.get("type", "")
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    inner = part.get("items")
    return f"{text} of {_kind(inner)}" if _kind(inner) else text


def fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[list[str]]:
    """Yield a row for each field of a schema, those of objects in it included."""
    needed = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        must = "yes" if name in needed else ""
        yield [
            code(f"{prefix}{name}"),
            code(_kind(part)),
            must,
            cell(part.get("description", "") if isinstance(part, dict) else ""),
        ]
        if not isinstance(part, dict):
            continue
        inner = items if isinstance(items := part.get("items"), dict) else part
        if inner.get("properties"):
            yield from fields(inner, f"{prefix}{name}.")


def files() -> str:
    """Return the page of the files that are read and written."""
    found = [
        "# Files\n\nEvery field of the files that are read and written. `lmeval schema NAME` prints the JSON Schema.\n"
    ]
    for name in schema_names():
        schema = load_schema(name)
        found.append(f"\n## {name}\n\n{cell(schema.get('description', schema.get('title', '')))}\n")
        for title, part in [("", schema), *sorted(schema.get("$defs", {}).items())]:
            if rows := [*fields(part)]:
                head = f"\n### {name}: {title}\n\n" if title else "\n"
                found.append(head + table(("field", "type", "required", "meaning"), rows))
    return "".join(found)


def names() -> str:
    """Return the page of the public names."""
    rows = []
    for name in pytest_lmeval.__all__:
        found = getattr(pytest_lmeval, name)
        module = getattr(found, "__module__", "")
        own = f"{module}".startswith("pytest_lmeval")
        kind = "class" if inspect.isclass(found) else "function" if inspect.isfunction(found) else "value"
        summary = (inspect.getdoc(found) or "").partition("\n\n")[0] if own else f"`{found!r}`".replace("typing.", "")
        rows.append([code(name), kind, cell(summary)])
    return (
        "# Public names\n\nAll that `pytest_lmeval` exports; [from Python](../python.md) shows them at work.\n\n"
        + table(("name", "kind", "what it is"), rows)
    )


def exit_codes() -> str:
    """Return the page of the exit codes."""
    verdicts = load_schema("leaderboard")["properties"]["gate"]["properties"]["verdict"]["enum"]
    of_verdicts = [
        [code(each), str(0 if each in LET_PASS else INCOMPLETE if each == "incomplete" else 1)] for each in verdicts
    ]
    rows = [
        ["0", "every example was scored, and the gate lets the run pass"],
        ["1", "an example, a plain test or the gate failed; or `-x`, `--maxfail` or `--sw` stopped the run"],
        ["2", "a task file has bad records, so nothing was asked; or Ctrl-C"],
        [str(INCOMPLETE), "incomplete: an example was lost or could not be scored, or the board could not be written"],
        ["4", "usage: an unknown adapter, a bad option, or each task needs something that the run does not have"],
        ["5", "nothing was collected"],
    ]
    return (
        "# Exit codes\n\nFor a run of `pytest`, the first that applies of 4, 2, 3, 1, 5 and 0:\n\n"
        + table(("code", "meaning"), rows)
        + "\n## Verdicts\n\nThe verdicts of the [gate](../gate.md#verdicts), and the exit code if nothing else "
        "failed:\n\n"
        + table(("verdict", "code"), of_verdicts)
        + "\nFor `lmeval`: 0 if all is well, 1 for a finding, 2 for a usage error.\n"
    )


def _members(kind: type) -> Iterator[list[str]]:
    """Yield a row for each member of a class that has a docstring; a function of a dataclass is no member."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)
    for member, text in pairwise([*node.body, ast.Pass()]):
        if isinstance(member, ast.AnnAssign) and isinstance(text, ast.Expr):
            yield [code(ast.unparse(member.target)), cell(ast.literal_eval(text.value))]
        elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and kind is not AdapterFacts:
            start = "async " if isinstance(member, ast.AsyncFunctionDef) else ""
            takes = "" if member.decorator_list else f"({', '.join(each.arg for each in member.args.args[1:])})"
            yield [code(f"{start}{member.name}{takes}"), cell(ast.get_docstring(member) or "")]


def adapter() -> str:
    """Return the page of the members of an adapter."""
    parts = [("Answers", AnsweringAdapter), ("Attributes", AdapterFacts), ("During a run", RunningAdapter)]
    found = [
        "# Members of an adapter\n\n[Adapters](../adapters.md) has examples. An adapter has a `name` and one of "
        "the methods that answer, and may lack all others. A member of a wrong type is refused before it is asked.\n"
    ]
    for title, kind in parts:
        found.append(f"\n## {title}\n\n{cell((inspect.getdoc(kind) or '').partition(chr(10) * 2)[0])}\n\n")
        found.append(table(("member", "meaning"), _members(kind)))
    return "".join(found)


def versions() -> str:
    """Return the page of what came with which version."""
    found = [
        "# What came with which version\n\nNames that are not on this page came with 0.1. "
        "The [changelog](../../CHANGELOG.md) lists every change.\n"
    ]
    for version, kinds in NEW.items():
        rows = [[kind, ", ".join(map(code, names.split()))] for kind, names in kinds.items()]
        found.append(f"\n## {version}\n\n" + table(("kind", "new"), rows))
    return "".join(found)


PAGES = {
    "adapter": adapter,
    "options": options,
    "commands": commands,
    "metrics": metrics,
    "files": files,
    "names": names,
    "exit-codes": exit_codes,
    "versions": versions,
}


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    return {f"{name}.md": f"{_NOTE}\n\n{make()}" for name, make in PAGES.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
