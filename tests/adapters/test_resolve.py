"""From a spec to an adapter, and every way in which there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import Registry, ReplayAdapter, ToyAdapter, UsageError, default_registry, make_adapter
from pytest_lmeval.adapters.facts import adapter_name, check_adapter
from pytest_lmeval.adapters.resolve import check_spec, made_with, resolve_adapter, resolve_profile
from pytest_lmeval.errors import AdapterError, UnknownName

MODULE = """
class Model:
    name = "own.v1"
    def __init__(self, greeting="hello"):
        self.greeting = greeting
    def generate(self, prompts):
        return [self.greeting for _ in prompts]

class Outer:
    class Inner(Model):
        pass

def factory(**options):
    return Model(**options)

def broken():
    raise KeyError("no key")

def refusing():
    from pytest_lmeval import UsageError
    raise UsageError("set MODEL_KEY")

ready = Model("ready")
number = 5
def mute():
    return object()
"""


@pytest.fixture
def registry() -> Registry:
    return default_registry(entry_points=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a folder with a module of adapters that is not on the path; forget it afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_models.py").write_text(MODULE)
    (tmp_path / "broken_module.py").write_text("import no_such_module_at_all")
    yield tmp_path
    for name in ("own_models", "broken_module"):
        sys.modules.pop(name, None)


def _problem(spec: str, registry: Registry, options: dict[str, Any] | None = None, project: Path | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        make_adapter(spec, registry, options or {}, project)
    return str(caught.value)


# Registered names


def test_toy_is_built_in(registry: Registry) -> None:
    adapter = make_adapter("toy", registry, {})
    assert isinstance(adapter, ToyAdapter)
    assert "toy.v1" == adapter.name
    assert (True, True) == (adapter.exact, adapter.trusted)


def test_replay_takes_a_path(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "a:b.jsonl").write_text('{"id": "a", "output": "1"}')
    assert isinstance(make_adapter(f"replay:{tmp_path / 'a:b.jsonl'}", registry, {}), ReplayAdapter)


def test_a_registered_adapter_gets_argument_and_options(registry: Registry) -> None:
    made: list[Any] = []

    def factory(argument: str, **options: Any) -> ToyAdapter:
        made.append((argument, options))
        return ToyAdapter()

    registry.add_adapter("mine", factory)
    make_adapter("mine:a:b", registry, {"temperature": 0.5})
    make_adapter("mine", registry, {})
    assert [("a:b", {"temperature": 0.5}), ("", {})] == made


def test_an_unknown_name_lists_the_choices_and_the_nearest(registry: Registry) -> None:
    problem = _problem("toi", registry)
    assert "unknown adapter 'toi'; did you mean 'toy'?" in problem
    assert "package.module:Object, ray, replay, toy" in problem


@pytest.mark.parametrize("spec", ["", "gpt", "no name:x", "a/b:c", "1a:b", ":", ":x", "a..b:c"])
def test_what_is_neither_a_name_nor_a_module_is_unknown(spec: str, registry: Registry) -> None:
    with pytest.raises(UnknownName):
        check_spec(spec, registry)


@pytest.mark.parametrize("spec", ["toy", "replay:x", "package.module:Object", "module:a.b"])
def test_a_spec_is_checked_without_importing_anything(spec: str, registry: Registry) -> None:
    before = set(sys.modules)
    check_spec(spec, registry)
    assert "package" not in set(sys.modules) - before


# Objects of modules


@pytest.mark.parametrize("name", ["Model", "factory", "Outer.Inner"])
def test_a_class_or_a_function_is_called_with_the_options(name: str, registry: Registry, project: Path) -> None:
    adapter = make_adapter(f"own_models:{name}", registry, {"greeting": "hi"}, project)
    assert ["hi"] == adapter.generate(["x"])


def test_an_adapter_object_is_taken_as_it_is(registry: Registry, project: Path) -> None:
    assert ["ready"] == make_adapter("own_models:ready", registry, {}, project).generate(["x"])
    problem = _problem("own_models:ready", registry, {"greeting": "hi"}, project)
    assert "takes no options; got greeting" in problem


def test_a_module_of_the_project_is_found_only_there(registry: Registry, project: Path) -> None:
    assert "importing own_models failed: ModuleNotFoundError" in _problem("own_models:Model", registry)
    make_adapter("own_models:Model", registry, {}, project)
    assert str(project) == sys.path[-1]


def test_the_project_shadows_nothing(registry: Registry, project: Path) -> None:
    (project / "colorsys.py").write_text("def rgb_to_hls():\n    raise RuntimeError")
    assert "has no 'Model'; it has" in _problem("colorsys:Model", registry, project=project)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("own_models:Modell", "own_models has no 'Modell'; it has Model, Outer, broken, factory"),
        ("own_models:Outer.Gone", "has no 'Gone'"),
        ("own_models:", "has no ''"),
        ("own_models:number", "is a int; expected an adapter or its factory"),
        ("own_models:mute", "without any of the methods complete, generate_requests, generate, loglikelihood"),
        ("own_models:broken", "cannot be created: KeyError: 'no key'"),
        ("own_models:refusing", "set MODEL_KEY"),
        ("broken_module:Model", "importing broken_module failed: ModuleNotFoundError"),
        ("own_models:Model", "cannot be created: TypeError"),
    ],
)
def test_what_makes_no_adapter_says_why(name: str, problem: str, registry: Registry, project: Path) -> None:
    options = {"unknown": 1} if problem.endswith("TypeError") else {}
    assert problem in _problem(name, registry, options, project)


# What an adapter is


@pytest.mark.parametrize("method", ["complete", "generate_requests", "generate", "loglikelihood"])
def test_one_answering_method_is_enough(method: str) -> None:
    check_adapter(type("Own", (), {method: lambda self, requests: []})(), "own")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("own.v1", "own.v1"), ("", "Own"), (None, "Own"), (5, "Own"), ("a\nb\x1b[31m", "a?b?[31m"), ("é 🙂", "é 🙂")],
)
def test_the_name_is_shown_without_control_characters(name: Any, shown: str) -> None:
    assert shown == adapter_name(type("Own", (), {"name": name})())


def test_an_error_of_the_package_passes_through_unchanged(registry: Registry) -> None:
    def factory(argument: str) -> Any:
        raise AdapterError("no credit left")

    registry.add_adapter("mine", factory)
    with pytest.raises(AdapterError, match="no credit left"):
        make_adapter("mine", registry, {})


def test_the_address_and_the_key_come_out_of_the_environment_that_is_given() -> None:
    registry = default_registry()
    variables = {"OPENAI_BASE_URL": " https://models.test/v1\n", "OPENAI_API_KEY": "sk-0123456789abcdef"}
    adapter = resolve_adapter("openai:m", registry, read=variables.get)
    assert ("https://models.test/v1", "OPENAI_BASE_URL") == (adapter.base_url, made_with(adapter).named_by)
    own = resolve_adapter("openai:m", registry, {"base_url": "http://127.0.0.1:9/v1"}, read=variables.get)
    assert ("http://127.0.0.1:9/v1", "--lm-adapter-arg") == (own.base_url, made_with(own).named_by)
    with pytest.raises(UsageError, match="environment variable OPENAI_API_KEY holds no API key"):
        resolve_adapter("openai:m", registry, read=lambda name: None)
    # What has no server has no address, whatever the environment says.
    assert ("toy", {}, "") == resolve_profile("toy", {}, None, variables.get)
