"""What a run reads of an adapter: one module reads it, and refuses what is of a wrong type before anything is asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.adapters.facts import AdapterFacts, check_adapter, member
from pytest_lmeval.adapters.protocol import AnsweringAdapter, RunningAdapter
from pytest_lmeval.errors import UsageError
from pytest_lmeval.registry import Registry
from tests.conftest import Project
from tests.tables import each_row

PACKAGE = Path(pytest_lmeval.__file__).parent
ATTRIBUTES = {each.name for each in fields(AdapterFacts)} - {"methods", "awaits_logprobs", "streams"}
MEMBERS = {
    name
    for kind in (AnsweringAdapter, RunningAdapter)
    for name in (*vars(kind), *kind.__annotations__)
    if not name.startswith("_")
}
SIZE = "expected a whole number from 1 to 1000000"


def plain(self: Any, prompts: Any = ()) -> Any:
    return prompts


async def awaited(self: Any, prompts: Any) -> Any:
    return prompts


async def of_nothing(self: Any) -> str:
    return "x"


def of_two(self: Any, prompts: Any, temperature: float) -> Any:
    return prompts


def yielding(self: Any, prompts: Any) -> Iterator[Any]:
    yield from prompts


@each_row(
    ("name", "given", "problem"),
    [
        *(("request_window", given, f" is {given!r}; {SIZE}") for given in (0, -1, True, 2.5, "all", 10**9)),
        ("requests_in_flight", 0, f" is 0; {SIZE}"),
        ("trusted", "no", " is 'no'; expected True or False"),
        ("exact", plain, " is method; expected True or False; a method needs @property"),
        ("requests_per_minute", -1, " is -1; expected a number >= 0"),
        ("base_url", plain, " is method; expected a text; a method needs @property"),
        ("request_options", "seed", " is 'seed'; expected a list of names"),
        ("known_secrets", [1], " is list; expected a list of texts"),
        ("cacheable", property(lambda self: 1 / 0), " raised ZeroDivisionError: division by zero"),
        ("fingerprint", 5, " is 5; expected a text"),
        ("manifest", ["id"], " is list; expected a mapping"),
        ("is_ready", 1, " is 1; expected True or False"),
        ("generate", awaited, " is async, and a run would not await it: write `async def complete(self, request)`"),
        ("complete", of_nothing, " cannot be called: too many positional arguments; expected complete(self, request)"),
        ("generate", of_two, " cannot be called: missing a required argument: 'temperature'; expected generate(self"),
        ("loglikelihood", yielding, " is a generator: return the answer"),
    ],
)
def test_a_member_that_cannot_be_used_is_refused(name: str, given: Any, problem: str) -> None:
    adapter = type("Model", (), {"name": "m", "generate": plain, name: given})()
    with pytest.raises(UsageError, match=re.escape(f": {name}{problem}")):
        member(adapter, name) if name in ("fingerprint", "manifest") else check_adapter(adapter, "m")


def test_a_method_that_is_not_asked_may_take_what_it_likes() -> None:
    check_adapter(type("Model", (), {"complete": awaited, "generate": of_two})(), "m")


def test_an_adapter_may_lack_every_member_and_none_counts_as_absent() -> None:
    assert AdapterFacts() == AdapterFacts.of(object())
    assert AdapterFacts() == AdapterFacts.of(SimpleNamespace(**dict.fromkeys(ATTRIBUTES | MEMBERS)))
    assert {None} == {member(object(), name) for name in ("base_url", "is_ready", "fingerprint", "manifest")}
    assert AdapterFacts() == AdapterFacts.of(SimpleNamespace(answers={"2 + 2": "4"}))


def test_an_adapter_that_wraps_another_has_its_facts() -> None:
    class Outer:
        inner = SimpleNamespace(exact=True, base_url=Path("x"), request_options=["seed"], generate=len)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    expected = AdapterFacts(frozenset({"generate"}), exact=True, request_options=frozenset({"seed"}))
    assert (expected, "x") == (AdapterFacts.of(Outer()), member(Outer(), "base_url"))


def _reads(node: ast.AST) -> bool:
    """Tell whether a node reads or sets a member of an adapter by its name."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("getattr", "hasattr", "setattr"):
        return False
    of, name = node.args[:2]
    is_member = isinstance(name, ast.Constant) and name.value in ATTRIBUTES | MEMBERS
    return is_member or "adapter" in ast.unparse(of).lower()


def test_two_modules_read_adapters_by_name() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    found = {path.relative_to(PACKAGE).as_posix() for path, tree in trees.items() if any(map(_reads, ast.walk(tree)))}
    # An adapter without a fingerprint is known by all its attributes.
    assert {"adapters/facts.py", "adapters/identity.py"} == found


def test_a_metric_that_cannot_be_called_is_refused() -> None:
    wanted = r"the metric 'm' cannot be called: too many positional arguments; expected a function \(pred"
    with pytest.raises(UsageError, match=wanted):
        Registry().add_metric("m", lambda prediction: 1.0)


SYNC = "class Sync:\n    def complete(self, request):\n        return 'x'\n\ndef plain(prompt):\n    return 'x'\n"


def test_a_complete_that_is_not_async_ends_the_run_and_says_its_reason_once(project: Project) -> None:
    project.write("own.py", SYNC)
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "x") for number in range(40)])
    result = project.run_pytest("--lm-adapter=own:Sync")
    assert 3 == result.ret
    assert 2 == project.board()["counts"]["errors"]
    assert 1 == result.stdout.str().count("expected `async def complete(self, request)`")
    result.stdout.fnmatch_lines(["  no result: 35 more examples", "*Interrupted: stopped: the reason is under the*"])


def test_a_function_in_place_of_an_adapter_is_a_usage_error(project: Project) -> None:
    project.write("own.py", SYNC)
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run_pytest("--lm-adapter=own:plain")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*plain gets the options of --lm-adapter-arg and must return an adapter*"])
