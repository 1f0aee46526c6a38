"""The page on eval functions names every argument and method there is."""

from __future__ import annotations

import inspect
from pathlib import Path

from pytest_lmeval import eval_task
from pytest_lmeval.functions.lm import BlockingLm, Lm

PAGE = (Path(__file__).parents[2] / "docs/functions.md").read_text("utf-8")


def _signature(function: object) -> str:
    """Return the arguments of a function without types."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in inspect.signature(function).parameters.items()  # type: ignore[arg-type]  # any function
        if name != "self"
    ]
    return str(inspect.Signature(parameters)).replace("'", '"')


def test_the_page_has_the_arguments_of_eval_task() -> None:
    assert f"`eval_task{_signature(eval_task)}`" in " ".join(PAGE.split())
    assert [] == [name for name in inspect.signature(eval_task).parameters if f"| `{name}` |" not in PAGE]


def test_the_page_has_what_lm_can_do() -> None:
    public = {name: member for name, member in inspect.getmembers(Lm) if not name.startswith("_")}
    shown = {
        name: f"lm.{name}{_signature(member)}" if callable(member) else f"lm.{name}"
        for name, member in public.items()
        if name not in ("enter", "leave")  # the run's own
    }
    assert [] == [text for text in shown.values() if f"`{text}`" not in PAGE]
    assert [_signature(getattr(Lm, name)) for name in ("ask", "judge")] == [
        _signature(getattr(BlockingLm, name)) for name in ("ask", "judge")
    ]
