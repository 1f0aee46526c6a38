"""The rooms of the package, top to bottom: a module imports its own row and what is below it, and none in a circle."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pytest_lmeval

PACKAGE = Path(pytest_lmeval.__file__).parent
ROWS = (
    "__main__",
    "plugin cli",
    "functions trajectory",
    "run",
    "report",
    "compare",
    "scoring",
    "asking",
    "loading",
    "compat interop schemas starter",
    "adapters formats project registry tasks",
    "records",
    "leaderboard",
    "task",
    "data file_names judging media metrics postprocess sandbox stats stops templates",
    "types text atomic arguments compact_json errors extra formatters frozen hashes numbers own_modules pages "
    "redaction",
)
# The rooms of the plugin, each a row of its own. What only a type checker imports may go up there.
PLUGIN = (
    *("__init__", "record", "workers", "evals", "asking", "collect", "common", "settings", "hookspecs"),
    "private",
)
ROW_OF = {room: number for number, row in enumerate(ROWS) for room in row.split()}
BRANCHES = ("interop", "compat", "adapters/ray")
"""What could be a distribution of its own: folders that the rest, the trunk, runs without."""
LOADERS = {
    # Commands, each imported when it is called.
    ("cli/convert.py", "interop"),
    ("cli/import_.py", "interop"),
    ("cli/publish.py", "interop"),
    # The spec ``ray:SPEC``; its adapter is made by name, as all are (loading.py).
    ("adapters/resolve.py", "adapters/ray"),
}
MOST_UNNAMED = 35
"""How many modules of the trunk branches use that no page of docs/ names."""
PYTEST = {"pytest", "_pytest", "pluggy", "xdist", "execnet", "pytest_jsonreport"}


def circle(root: Path, group: Callable[[str], str]) -> list[str]:
    """Return the names in the first circle of imports below ``root``, wherever they stand; none without a circle.

    ``group`` says by its dotted name what a module counts as. What only a type checker imports is left out.
    """
    files = {".".join(module) for _, module, _ in modules(root)}
    graph: dict[str, set[str]] = defaultdict(set)
    for _, parts, imports in modules(root):
        module = ".".join(parts)
        for _, name, for_types in imports:
            if for_types:
                continue
            target = next((found for end in range(len(name), 0, -1) if (found := ".".join(name[:end])) in files), None)
            if target and "pytest_lmeval" not in (target, module) and group(module) != group(target):
                graph[group(module)].add(group(target))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def modules(root: Path) -> list[tuple[str, tuple[str, ...], list[tuple[int, tuple[str, ...], bool]]]]:
    """Return ``(path below root, dotted name, imports)`` of every module of the package whose folder is ``root``."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = ("pytest_lmeval", *path.relative_to(root).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        module = parts[:-1] if is_package else parts
        imports = imported(path.read_text("utf-8"), module, is_package)
        found.append((path.relative_to(root).as_posix(), module, imports))
    return found


@cache
def imported(source: str, module: tuple[str, ...], is_package: bool) -> list[tuple[int, tuple[str, ...], bool]]:
    """Return ``(line, dotted name, for types only)`` of every import in ``source``, wherever it stands.

    ``from a import b`` is given as ``a.b``: whether ``b`` is a module cannot be read off the text.
    """
    base = module if is_package else module[:-1]
    found: list[tuple[int, tuple[str, ...], bool]] = []
    # Looking into expressions is most of the work, and few modules import by a call.
    calls = "import_module" in source or "__import__" in source
    for node, for_types in _nodes(ast.parse(source), expressions=calls):
        if isinstance(node, ast.Import):
            found += [(node.lineno, tuple(alias.name.split(".")), for_types) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = base[: len(base) - node.level + 1] if node.level else ()
            stem = (*start, *(node.module.split(".") if node.module else ()))
            found += [(node.lineno, (*stem, alias.name), for_types) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            # A name that is put together at run time cannot be judged here.
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    found.append((node.lineno, tuple(name.split(".")), for_types))
    return found


def _nodes(root: ast.AST, *, expressions: bool) -> Iterator[tuple[ast.AST, bool]]:
    left = [(root, False)]
    while left:
        node, for_types = left.pop()
        yield node, for_types
        typed = node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) else ()
        inner = ((child, for_types or child in typed) for child in ast.iter_child_nodes(node))
        left += inner if expressions else [each for each in inner if not isinstance(each[0], ast.expr)]


def violations(root: Path) -> list[str]:
    """Return ``file:line: what`` for every import below ``root``, the folder of the package, that goes up."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ("pytest_lmeval", *(parts[:-1] if is_package else parts))
        if len(module) == 1:
            continue  # the package itself names everything, for type checkers and on demand
        for line, name, for_types in imported(path.read_text("utf-8"), module, is_package):
            problem = _problem(module[1], name)
            if not problem and name[:2] == module[:2] == ("pytest_lmeval", "plugin") and not for_types:
                problem = _problem_in_the_plugin(module, name)
            if problem:
                found.append(f"{'/'.join(path.relative_to(root).parts)}:{line}: {problem}")
    return found


def _problem(room: str, name: tuple[str, ...]) -> str:
    if room not in ROW_OF:
        return f"{room} stands in no row"
    if name[0] in PYTEST:
        return "" if room == "plugin" else f"{room} imports {name[0]}"
    if name[0] != "pytest_lmeval":
        return ""
    target = name[1] if len(name) > 1 else ""
    if target.startswith("__"):
        return ""
    if target not in ROW_OF:
        return f"{room} imports {'.'.join(name)}, whose room cannot be told"
    sideways_at_the_top = ROW_OF[room] == ROW_OF["plugin"] == ROW_OF[target] and room != target
    if ROW_OF[target] < ROW_OF[room] or sideways_at_the_top:
        return f"{room} imports {target}"
    return ""


def _problem_in_the_plugin(module: tuple[str, ...], name: tuple[str, ...]) -> str:
    room, target = (each[2] if len(each) > 2 else "__init__" for each in (module, name))
    for each in (room, target):
        if each not in PLUGIN:
            return f"plugin/{each} stands in no row"
    return f"plugin/{room} imports plugin/{target}" if PLUGIN.index(target) < PLUGIN.index(room) else ""


def test_imports_go_down_and_neither_modules_nor_rooms_import_each_other_in_a_circle() -> None:
    # In one test, to read the package once: tests are spread over processes.
    assert [] == violations(PACKAGE)
    assert [] == circle(PACKAGE, lambda module: module)
    assert [] == circle(PACKAGE, lambda module: module.split(".")[1])


def from_branches(root: Path) -> tuple[set[tuple[str, str]], set[str]]:
    """Return ``(file, branch)`` of each import of a branch from outside, and what branches import of the trunk."""
    entered, used = set(), set()
    for file, module, imports in modules(root):
        own = _branch(module)
        for _, name, for_types in imports:
            branch = _branch(name)
            if name[0] == "pytest_lmeval" and not for_types and branch != own:
                if branch:
                    entered.add((file, branch))
                else:
                    used.add(_module(root, name))
    return entered, used


def _branch(module: tuple[str, ...]) -> str:
    return next((branch for branch in BRANCHES if "/".join((*module[1:], "")).startswith(f"{branch}/")), "")


def _module(root: Path, name: tuple[str, ...]) -> str:
    """Return the module that an import names, whose last part may be a name in it."""
    place = root.parent.joinpath(*name)
    return ".".join(name if place.is_dir() or place.with_suffix(".py").exists() else name[:-1])


def test_the_trunk_imports_no_branch_but_where_a_name_that_users_write_loads_it() -> None:
    entered, used = from_branches(PACKAGE)
    assert LOADERS == entered
    pages = [*(PACKAGE.parent / "docs").rglob("*.md"), PACKAGE.parent / "README.md"]
    documented = {
        found.strip(".") for page in pages for found in re.findall(r"pytest_lmeval[a-z_.]*", page.read_text())
    }
    unnamed = {each for each in used if each not in documented}
    assert len(unnamed) <= MOST_UNNAMED, sorted(unnamed)


def test_every_room_of_the_package_stands_in_a_row() -> None:
    assert set() == _rooms(PACKAGE) - ROW_OF.keys() - {"__init__"}
    assert {*PLUGIN} == _rooms(PACKAGE / "plugin")


def _rooms(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


# The check itself


def _plant(root: Path, file: str, source: str) -> list[str]:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(source)
    return violations(root)


@pytest.mark.parametrize(
    ("file", "source", "problem"),
    [
        ("types.py", "import pytest_lmeval.metrics", "types imports metrics"),
        ("types.py", "from pytest_lmeval.registry import Registry", "types imports registry"),
        ("metrics/f1.py", "from pytest_lmeval import registry", "metrics imports registry"),
        ("metrics/f1.py", "from ..formats.task import Task", "metrics imports formats"),
        ("metrics/__init__.py", "from ..formats.task import Task", "metrics imports formats"),
        ("metrics/deep/er/f1.py", "from .... import run", "metrics imports run"),
        ("sandbox/core.py", "def run():\n    from pytest_lmeval.asking import ask", "sandbox imports asking"),
        ("asking/ask.py", "if TYPE_CHECKING:\n    from pytest_lmeval.run import run_task", "asking imports run"),
        (
            "asking/ask.py",
            "try:\n    import pytest_lmeval.plugin.asking.state as s\nexcept ImportError:\n    pass",
            "asking imports plugin",
        ),
        (
            "leaderboard/rows.py",
            "class A:\n    async def f(self):\n        import pytest",
            "leaderboard imports pytest",
        ),
        ("run/run.py", "import json, _pytest.config", "run imports _pytest"),
        ("run/run.py", "from xdist.scheduler import LoadScheduling", "run imports xdist"),
        ("cli/main.py", "import pytest", "cli imports pytest"),
        ("cli/main.py", "from pytest_lmeval.plugin.settings import options", "cli imports plugin"),
        ("plugin/settings/options.py", "from pytest_lmeval.cli import main", "plugin imports cli"),
        (
            "plugin/asking/item.py",
            "def f():\n    from pytest_lmeval.plugin.evals.session import begin",
            "plugin/asking imports plugin/evals",
        ),
        ("plugin/collect/locate.py", "from ..asking import turn", "plugin/collect imports plugin/asking"),
        ("plugin/private/items.py", "import pytest_lmeval.plugin", "plugin/private imports plugin/__init__"),
        ("plugin/asking/item.py", "from pytest_lmeval.plugin.other import a", "plugin/other stands in no row"),
        ("run/run.py", "import importlib\nimportlib.import_module('pytest_lmeval.cli')", "run imports cli"),
        ("formats/x.py", "from pytest_lmeval import Example", "whose room cannot be told"),
        ("formats/x.py", "import pytest_lmeval", "whose room cannot be told"),
        ("extras.py", "import json", "extras stands in no row"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, source: str, problem: str) -> None:
    (violation,) = _plant(tmp_path, file, source)
    assert violation.startswith(f"{file}:")
    assert violation.endswith(problem)


def test_a_violation_names_its_line(tmp_path: Path) -> None:
    assert ["types.py:3: types imports run"] == _plant(tmp_path, "types.py", "import json\n\nimport pytest_lmeval.run")


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("plugin/settings/options.py", "import pytest, _pytest.config\nfrom pytest_lmeval.run import run_task"),
        ("plugin/settings/options.py", "from . import state\nfrom .state import State\nfrom .. import private"),
        ("plugin/settings/models.py", "if TYPE_CHECKING:\n    from pytest_lmeval.plugin.asking.state import RunState"),
        ("plugin/__init__.py", "from pytest_lmeval.plugin import record"),
        ("cli/main.py", "from pytest_lmeval.run import run_task\nfrom pytest_lmeval.types import Score"),
        ("scoring/evaluate.py", "from pytest_lmeval.leaderboard.rows import TaskRow"),
        ("formats/jsonl.py", "def f():\n    from pytest_lmeval.registry import Registry"),
        ("registry.py", "from pytest_lmeval import formats, metrics"),
        ("errors.py", "import json\nfrom collections.abc import Mapping\nfrom pytest_lmeval import types"),
        ("leaderboard/board.py", "from pytest_lmeval import __version__"),
        ("__init__.py", "from pytest_lmeval.plugin.settings import options"),
        ("metrics/f1.py", "# import pytest\nTEXT = 'import pytest'"),
    ],
)
def test_what_goes_down_or_sideways_is_left_alone(tmp_path: Path, file: str, source: str) -> None:
    assert [] == _plant(tmp_path, file, source)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("from pytest_lmeval.a.y import z", "from . import x", ["a", "a"]),
        ("def f():\n    from .y import z", "def f():\n    import pytest_lmeval.a.x", ["a", "a"]),
        ("if TYPE_CHECKING:\n    from .y import z", "import pytest_lmeval.a.x", []),
        ("from .y import z", "import json", []),
    ],
)
def test_a_planted_circle_is_found(tmp_path: Path, first: str, second: str, expected: list[str]) -> None:
    root = tmp_path / "pytest_lmeval"
    _plant(root, "a/__init__.py", "")
    _plant(root, "a/x.py", first)
    _plant(root, "a/y.py", second)

    found = circle(root, lambda module: module)
    assert expected == [name.split(".")[1] for name in dict.fromkeys(found)]
    assert [] == circle(root, lambda module: module.split(".")[1])


def test_a_planted_circle_of_rooms_is_found_although_its_modules_have_none(tmp_path: Path) -> None:
    root = tmp_path / "pytest_lmeval"
    for name, source in {
        "a/x": "import pytest_lmeval.b.x",
        "a/y": "",
        "b/x": "",
        "b/y": "import pytest_lmeval.a.y",
    }.items():
        _plant(root, f"{name}.py", source)

    assert [] == circle(root, lambda module: module)
    assert {"a", "b"} == set(circle(root, lambda module: module.split(".")[1]))


def test_a_planted_import_of_a_branch_is_found_and_one_within_it_is_none(tmp_path: Path) -> None:
    root = tmp_path / "pytest_lmeval"
    for name, source in {
        "cli/x": "def f():\n    from pytest_lmeval.adapters.ray import pool",
        "compat/x": "import pytest_lmeval.interop.x",
        "interop/x": "from pytest_lmeval.interop import y\nfrom pytest_lmeval.types import Score",
    }.items():
        _plant(root, f"{name}.py", source)

    entered = {("cli/x.py", "adapters/ray"), ("compat/x.py", "interop")}
    assert (entered, {"pytest_lmeval.types"}) == from_branches(root)
