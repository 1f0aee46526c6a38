"""The libraries that take seconds to import are imported by the tests of two folders alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
HERE = ("reference", "adapters/hf")
LARGE = {"datasets", "rouge_score", "sacrebleu", "scipy", "sklearn", "statsmodels", "torch", "transformers"}


def imported(source: str) -> set[str]:
    """Return the first names of what a module imports when it is imported."""
    body = ast.parse(source).body
    names = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def test_no_other_test_file_imports_a_large_library() -> None:
    # What is recorded with another tool, and the task files of that, are imported by no test.
    kept = (
        *HERE,
        "golden/harness/record",
        "golden/harness/strangers/",
        "golden/harness/tasks/",
        "golden/harness/published",
    )
    others = [path for path in TESTS.rglob("*.py") if not path.relative_to(TESTS).as_posix().startswith(kept)]
    assert len(others) > 100
    named = re.compile("|".join(LARGE))
    # To parse them all takes a second, and few name one.
    sources = {path.name: source for path in others if named.search(source := path.read_text("utf-8"))}
    assert {} == {name: found for name, source in sources.items() if (found := imported(source) & LARGE)}


def test_imports_are_seen_in_both_forms() -> None:
    assert {"scipy", "sklearn"} == imported("import scipy.stats as stats\nfrom sklearn.metrics import f1_score\n")
