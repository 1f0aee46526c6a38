"""Python snippets: checked before the run, named where they fail, given up on where they hang."""

from __future__ import annotations

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.snippets import Snippet, SnippetFault, read_snippet
from tests.tables import each_row

NAMES = ["compute_metrics", "compute_scores"]


def _snippet(source: str, timeout_s: float = 30.0) -> Snippet:
    return Snippet(source, "score.py", "compute_scores", "scorer geo", timeout_s)


def test_a_snippet_runs_its_module_once_and_its_function_for_every_call() -> None:
    snippet = _snippet("calls = []\ndef compute_scores(x):\n    calls.append(x)\n    return list(calls)")
    assert [1] == snippet(1)
    assert [1, 2] == snippet(2)


@each_row(
    ("source", "message"),
    [
        ("def compute_scores(x):\n    return 1 / x", "ZeroDivisionError: division by zero (its line 2)"),
        ("import no_such_module\ndef compute_scores(x): pass", "ModuleNotFoundError: No module named"),
        ("def compute_scores(x):\n    raise SystemExit(3)", "SystemExit: 3 (its line 2)"),
        ("def compute_scores(): pass", "TypeError: compute_scores() takes 0 positional arguments"),
        ("def compute_scores(x): pass\ncompute_scores = 3", "TypeError: compute_scores is not a function"),
        ("def compute_scores(x):\n    compute_scores(x)", "RecursionError"),
    ],
)
def test_what_it_raises_names_it(source: str, message: str) -> None:
    with pytest.raises(ScoringError) as caught:
        _snippet(source)(0)
    assert str(caught.value).startswith(f"scorer geo: compute_scores in score.py: {message}")


def test_one_that_hangs_is_stopped_and_after_three_times_not_called_again() -> None:
    source = "import time\ndef compute_scores(x):\n    while x:\n        time.sleep(0.001)\n    return 'well'"
    snippet = _snippet(source, timeout_s=0.05)
    for _ in range(3):
        with pytest.raises(ScoringError, match=r"compute_scores in score.py: still running after 0.05 s"):
            snippet(True)
    with pytest.raises(ScoringError, match="not called any more; it has hung 3 times"):
        snippet(False)


def test_a_call_after_a_hang_is_well() -> None:
    snippet = _snippet("def compute_scores(x):\n    while x: pass\n    return 'well'", timeout_s=1.0)
    with pytest.raises(ScoringError, match="still running"):
        snippet(True)
    assert "well" == snippet(False)


def test_its_function_is_found_without_running_it() -> None:
    source = "raise SystemExit\ndef compute_scores(a, b=1): pass"
    assert ("compute_scores", ("a", "b")) == read_snippet(source, "m.py", NAMES)
    source = "def compute_scores(a): pass\ndef compute_metrics(a): pass"
    assert "compute_metrics" == read_snippet(source, "m.py", NAMES)[0]


@each_row(
    ("source", "message"),
    [
        (
            "def compute_score(x): pass",
            "m.py: no function compute_metrics(...) or compute_scores(...); it has compute_",
        ),
        ("x = 1", "it has none"),
        ("def compute_scores(:", "m.py:1: not Python: "),
        ("x\0", "m.py: not Python: "),
        ("class A:\n    def compute_scores(self): pass", "it has none"),
    ],
)
def test_one_without_its_function_is_a_fault(source: str, message: str) -> None:
    with pytest.raises(SnippetFault) as caught:
        read_snippet(source, "m.py", NAMES)
    assert message in str(caught.value)
