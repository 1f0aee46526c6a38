"""Run a task file as a module, as pytest runs a conftest."""

from __future__ import annotations
import __future__

import ast
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks.faults import described, line_in


class ImportFailed(RecordRefused):
    """The exception that a task file raised at ``line`` while it ran."""

    def __init__(self, line: int, detail: str) -> None:
        super().__init__("import_error", "_module", detail)
        self.line = line


@dataclass(frozen=True, slots=True)
class TaskModule:
    """A task file that ran without an exception.

    ``lines`` maps each top-level class and variable to its line, from 1. ``code`` is a hash of the file without blank
    lines and full-line comments. ``scoring_code`` also excludes the methods that only write prompts.
    """

    path: Path
    module: ModuleType
    lines: dict[str, int]
    sha256: str
    code: str
    scoring_code: str

    @property
    def names(self) -> dict[str, Any]:
        """The module's names, in the order of their first assignment."""
        return vars(self.module)


def load_module(path: Path, data: bytes) -> TaskModule:
    """Run the task file at ``path`` with the content ``data``; raise ImportFailed if the file raises.

    ``from .common import ...`` imports a file in the same folder. Annotations are not evaluated, so the file need not
    import the names in them.
    """
    try:
        tree = ast.parse(data, str(path))
        code = compile(data, str(path), "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        module = _module(path)
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        raise ImportFailed(line_in(error, path), described(error)) from error
    hashes = (hashlib.sha256(data).hexdigest(), _code_hash(data), _code_hash(_without_prompts(data, tree)))
    return TaskModule(path, module, _lines(tree), *hashes)


def _module(path: Path) -> ModuleType:
    # Each folder has its own package, so that files with the same name in two folders are two modules. Relative imports
    # then work without the folder on sys.path, where it could hide installed modules.
    package = f"lmeval_tasks_{hashlib.sha256(str(path.parent).encode()).hexdigest()[:16]}"
    if package not in sys.modules:
        parent = ModuleType(package)
        parent.__path__ = [str(path.parent)]
        sys.modules[package] = parent
    spec = importlib.util.spec_from_file_location(f"{package}.{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look up a class's module by name.
    sys.modules[spec.name] = module
    return module


def _lines(tree: ast.Module) -> dict[str, int]:
    lines: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            lines[node.name] = node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            lines.update({target.id: node.lineno for target in targets if isinstance(target, ast.Name)})
    return lines


def _code_hash(data: bytes) -> str:
    lines = (line.rstrip() for line in data.splitlines())
    kept = [line for line in lines if line and not line.lstrip().startswith(b"#")]
    return hashlib.sha256(b"\n".join(kept)).hexdigest()


def _without_prompts(data: bytes, tree: ast.Module) -> bytes:
    lines = data.splitlines()
    members = (member for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for member in node.body)
    for member in members:
        if isinstance(member, ast.FunctionDef) and member.name in _WRITE_PROMPTS:
            first = min([member.lineno, *(each.lineno for each in member.decorator_list)])
            lines[first - 1 : member.end_lineno] = [b""] * ((member.end_lineno or first) - first + 1)
    return b"\n".join(lines)


_WRITE_PROMPTS = frozenset(
    {
        "_get_instruction_text",
        "_get_cue_text",
        "_get_system_prompt_text",
        "_get_initial_prompt_text",
        "_get_fewshot_target_text",
        "_sample_fewshot_examples",
        "get_example",
    }
)
"""The methods of a task class that affect only the prompts of examples."""
