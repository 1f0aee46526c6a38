"""What an adapter is: the files that decide it, wherever they lie, and nothing that only happens to be imported."""

from __future__ import annotations

import importlib
import py_compile
import sys
from functools import partial
from pathlib import Path

import pytest

from pytest_lmeval.adapters.identity import source_hash
from pytest_lmeval.adapters.resolve import made_with, resolve_adapter
from pytest_lmeval.registry import Registry

ANSWERS = "class {}:\n    def generate(self, prompts):\n        return ['x' for _ in prompts]\n"
PROJECT = {
    "evals_here/__init__.py": "",
    "evals_here/model.py": """
import statistics, wave, numbers_of_ours, code
from . import beside
from .deep.below import name
from app_there.prompt import PROMPT
from shared_ns.part import x
import installed_one, only_bytes, broken, not_there, not_there.at_all
from numbers_of_ours import *

def later():
    import asked_later.inner

"""
    + ANSWERS.format("Model"),
    "evals_here/beside.py": "from . import beside_beside",
    "evals_here/beside_beside.py": "import evals_here.model",
    "evals_here/unused.py": "",
    "evals_here/deep/__init__.py": "",
    "evals_here/deep/below.py": "name = 1",
    "numbers_of_ours.py": "",
    "code.py": "",
    "broken.py": "def (",
    "asked_later/__init__.py": "",
    "asked_later/inner.py": "",
    "asked_later/other.py": "",
    "src/app_there/__init__.py": "",
    "src/app_there/prompt.py": "from app_there import settings",
    "src/app_there/settings.py": "",
    "src/shared_ns/part.py": "",
    "env/lib/site-packages/installed_one.py": "",
    "env/lib/site-packages/vendor/__init__.py": "",
    "env/lib/site-packages/vendor/adapter.py": "import installed_one\nfrom .client import ask\n"
    + ANSWERS.format("Model"),
    "env/lib/site-packages/vendor/client.py": "ask = 1",
    "env/lib/site-packages/vendor/unused.py": "",
}
COUNT = (
    *("evals_here/__init__.py", "evals_here/model.py", "evals_here/beside.py", "evals_here/beside_beside.py"),
    *("evals_here/deep/__init__.py", "evals_here/deep/below.py", "numbers_of_ours.py", "code.py", "broken.py"),
    *("asked_later/__init__.py", "asked_later/inner.py", "src/app_there/__init__.py", "src/app_there/prompt.py"),
    *("src/app_there/settings.py", "src/shared_ns/part.py", "only_bytes.pyc"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "bytes.py").write_text("")
    py_compile.compile(str(tmp_path / "bytes.py"), str(tmp_path / "only_bytes.pyc"))
    (tmp_path / "bytes.py").unlink()
    for place in ("env/lib/site-packages", "src", "."):
        monkeypatch.syspath_prepend(tmp_path / place)
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    return tmp_path


def _kind(folder: Path, module: str) -> type:
    """Return the class of a module, of whose imports none is done."""
    source = folder / f"{module.replace('.', '/')}.py"
    text = source.read_text()
    source.write_text(ANSWERS.format("Model"))
    try:
        kind: type = importlib.import_module(module).Model
    finally:
        source.write_text(text)
    return kind


def _that_count(folder: Path, kind: type, project: Path | None) -> list[str]:
    """Return the files that change what the adapter is when they are edited."""
    before, found = source_hash(kind, project=project), []
    for path in sorted(each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts):
        content = path.read_bytes()
        path.write_bytes(content + b"\n# edited\n")
        found += [str(path.relative_to(folder))] if before != source_hash(kind, project=project) else []
        path.write_bytes(content)
    assert before
    assert before == source_hash(kind, project=project)
    return found


def test_an_adapter_is_the_project_s_files_that_it_imports(folder: Path) -> None:
    assert sorted(COUNT) == _that_count(folder, _kind(folder, "evals_here.model"), folder)


def test_files_elsewhere_in_the_project_count_as_those_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "evals_here/alone.py").write_text("import beside_, app_there\n" + ANSWERS.format("Model"))
    (folder / "evals_here/beside_.py").write_text("")
    monkeypatch.syspath_prepend(folder / "evals_here")
    kind = _kind(folder / "evals_here", "alone")
    own = ["evals_here/alone.py", "evals_here/beside_.py"]
    assert own == _that_count(folder, kind, None)
    assert [*own, "src/app_there/__init__.py"] == _that_count(folder, kind, folder)


def test_of_an_installed_package_its_own_modules_count(folder: Path) -> None:
    kind = _kind(folder / "env/lib/site-packages", "vendor.adapter")
    own = [f"env/lib/site-packages/vendor/{name}.py" for name in ("__init__", "adapter", "client")]
    assert own == _that_count(folder, kind, folder)


def test_a_module_with_the_name_of_one_of_python_counts_if_it_is_the_project_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "colorsys.py").write_text("from abc import ABC\n" + ANSWERS.format("Model(ABC)"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", {name: one for name, one in sys.modules.items() if name != "colorsys"})
    assert ["colorsys.py"] == _that_count(tmp_path, importlib.import_module("colorsys").Model, tmp_path)


def _made(argument: str, model: str) -> object:
    return type("Made", (), {"generate": lambda self, prompts: ["x" for _ in prompts]})()


def test_a_registered_partial_is_known_by_its_function() -> None:
    registry = Registry(adapters={"mine": partial(partial(_made), model="m")})
    assert __name__ == made_with(resolve_adapter("mine", registry)).module
