"""What the modules of a task's functions have and import, without running any code of theirs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import FunctionRef
from pytest_lmeval.formats.harness.functions import SUBSTITUTED, is_missing

# Modules of the harness with a substitute, and that of the data sets.
_SUBSTITUTES = (
    *("lm_eval.utils", "lm_eval.tasks", "datasets", "lm_eval.filters.extraction"),
    *("lm_eval.api.filter", "lm_eval.api.metrics", "lm_eval.api.registry"),
)


def needs_of(ref: FunctionRef) -> Sequence[str]:
    """Return the packages of third parties that a function's module imports; raise RecordRefused for a bad one."""
    file = ref.file
    if not file.is_file():
        return () if ref.module.startswith(_SUBSTITUTES) else (ref.module.partition(".")[0],)
    names, imported = _module(file)
    # A module that makes names while it runs may have any.
    if ref.name not in names and not names & {"*", "__getattr__"}:
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}")
    unknown = sorted(each for each in imported if each.startswith("lm_eval") and not each.startswith(_SUBSTITUTES))
    if unknown:
        raise RecordRefused("not_supported", "!function", f"{ref.module} imports {unknown[0]}")
    packages = dict.fromkeys(each.partition(".")[0] for each in sorted(imported))
    return [each for each in packages if each not in sys.stdlib_module_names and each not in SUBSTITUTED]


def check_function(ref: FunctionRef) -> None:
    """Raise RecordRefused for a function that is not there: of a file, or of a package that is not installed."""
    needs = needs_of(ref)
    if needs and not ref.file.is_file() and (needs[0] in SUBSTITUTED or is_missing(needs[0])):
        detail = f"{ref.module}.py beside {ref.folder.name}/: ModuleNotFoundError: no such file, and no such package"
        raise RecordRefused("import_error", "!function", detail)


@lru_cache(maxsize=2048)
def _module(file: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a module sets and the modules that it imports at once."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        detail = f"{file.name}: {type(error).__name__}: {error}"
        raise RecordRefused("import_error", "!function", detail) from None
    imported: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module or "")
    return frozenset(name for node in tree.body for name in _names(node)), frozenset(imported)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.For | ast.While | ast.With | ast.Expr):
        yield "*"
    elif isinstance(node, ast.If | ast.Try):
        handlers = node.handlers if isinstance(node, ast.Try) else []
        for each in [*node.body, *node.orelse, *(each for handler in handlers for each in handler.body)]:
            yield from _names(each)
