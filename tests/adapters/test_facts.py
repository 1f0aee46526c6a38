"""What a run reads of an adapter: one module reads it, and refuses what is of a wrong type."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.adapters.facts import AdapterFacts, check_adapter, fingerprint, is_ready, manifest
from pytest_lmeval.adapters.protocol import AnsweringAdapter, RunningAdapter
from pytest_lmeval.errors import UsageError
from tests.tables import each_row

PACKAGE = Path(pytest_lmeval.__file__).parent
ATTRIBUTES = {each.name for each in fields(AdapterFacts)} - {"methods", "awaits_logprobs"}
MEMBERS = {
    name
    for kind in (AnsweringAdapter, RunningAdapter)
    for name in (*vars(kind), *kind.__annotations__)
    if not name.startswith("_")
}
SIZE = "expected a whole number from 1 to 1000000"


@each_row(
    ("member", "given", "problem"),
    [
        *(("request_window", given, f"is {given!r}; {SIZE}") for given in (0, -1, True, 2.5, "all", 10**9)),
        ("requests_in_flight", 0, f"is 0; {SIZE}"),
        ("trusted", "no", "is 'no'; expected True or False"),
        ("exact", lambda self: True, "is method; expected True or False; a method needs @property"),
        ("requests_per_minute", -1, "is -1; expected a number >= 0"),
        ("tokens_per_minute", "many", "is 'many'; expected a number >= 0"),
        ("base_url", lambda self: "http://x", "is method; expected a text; a method needs @property"),
        ("request_options", "seed", "is 'seed'; expected a list of names"),
        ("known_secrets", "sk-1", "is str; expected a list of texts"),
        ("known_secrets", [1], "is list; expected a list of texts"),
        ("fingerprint", 5, "is 5; expected a text"),
        ("manifest", ["id"], "is list; expected a mapping"),
        ("is_ready", 1, "is 1; expected True or False"),
        ("answers", property(lambda self: 1 / 0), "raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_member_of_a_wrong_type_is_refused(member: str, given: Any, problem: str) -> None:
    adapter = type("Model", (), {"name": "m", "generate": lambda self, prompts: prompts, member: given})()
    with pytest.raises(UsageError) as refused:
        {"fingerprint": fingerprint, "manifest": manifest, "is_ready": is_ready}.get(member, AdapterFacts.of)(adapter)
    assert f"adapter m: {member} {problem}" == str(refused.value)
    if member in ATTRIBUTES:
        with pytest.raises(UsageError, match=f"adapter m: {member} "):
            check_adapter(adapter, "m:Model")


def test_an_adapter_may_lack_every_member_and_none_counts_as_absent() -> None:
    assert AdapterFacts() == AdapterFacts.of(object())
    assert AdapterFacts() == AdapterFacts.of(SimpleNamespace(**dict.fromkeys(ATTRIBUTES | MEMBERS)))
    assert (False, "", {}) == (is_ready(object()), fingerprint(object()), manifest(object()))


def test_an_adapter_that_wraps_another_has_its_facts() -> None:
    class Inner:
        exact, base_url, request_options = True, SimpleNamespace(host="x"), ["seed"]

        async def complete(self, request: Any) -> Any:
            return request

    class Outer:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    found = AdapterFacts.of(Outer(Inner()))
    assert AdapterFacts.of(Inner) == found
    assert (True, True, "complete") == (found.exact, found.streams, found.writes)
    assert ("namespace(host='x')", frozenset({"seed"})) == (found.base_url, found.request_options)


def _reads(node: ast.AST) -> bool:
    """Tell whether a node reads or sets a member of an adapter by its name."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("getattr", "hasattr", "setattr"):
        return False
    name = node.args[1]
    return "adapter" in ast.unparse(node.args[0]).lower() or (
        isinstance(name, ast.Constant) and name.value in ATTRIBUTES | MEMBERS
    )


def test_two_modules_read_adapters_by_name() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    found = {path.relative_to(PACKAGE).as_posix() for path, tree in trees.items() if any(map(_reads, ast.walk(tree)))}
    # What an adapter is known by are all its attributes, whatever they are called.
    assert {"adapters/facts.py", "adapters/identity.py"} == found
