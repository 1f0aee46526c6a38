"""What some tests need besides the package. They are skipped without it, unless ``LMEVAL_TESTS_REQUIRE`` names it.

The variable holds kinds, separated by commas: ``chromium``, ``clients`` (packages of the extra ``test-clients``),
``data`` (published data sets beside the checkout), ``docs`` (packages of the extra ``docs``), ``git`` (the program, and
a checkout), ``packages`` (of the extras ``test`` and ``test-libraries``), ``ray`` (of the extra ``ray``), ``server``
(packages of the extra ``test-server``), ``torch``, ``trio``. A test that lacks one of these then fails. CI sets it, so
that no part of the suite goes missing unnoticed.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

__all__ = [
    "DATA",
    "KINDS",
    "LACKS_LIBRARIES",
    "LIBRARIES",
    "OPTIONAL",
    "PACKAGES",
    "VARIABLE",
    "installed",
    "lacking",
    "module",
    "needs_file",
    "of_projects",
    "required",
]

VARIABLE = "LMEVAL_TESTS_REQUIRE"
KINDS = frozenset({"chromium", "clients", "data", "docs", "git", "packages", "ray", "server", "torch", "trio"})
LIBRARIES = frozenset(
    {
        "axe_core_python",
        "datasets",
        "fastapi",
        "hatch_fancy_pypi_readme",
        "hatchling",
        "math_verify",
        "mcp",
        "numpy",
        "openai",
        "pyarrow",
        "pydantic_ai",
        "rouge_score",
        "sacrebleu",
        "scipy",
        "sklearn",
        "statsmodels",
        "tiktoken",
        "uvicorn",
    }
)
"""What the extra ``test-libraries`` installs, by the names that are imported."""
CLIENTS = frozenset({"anthropic", "django", "langchain_openai", "langgraph", "litellm", "agents"})
"""What the extra ``test-clients`` installs, by the names that are imported."""
LACKS_LIBRARIES = "needs pip install -e '.[test-libraries]'"
OPTIONAL = LIBRARIES | {
    "anyio",
    "jsonschema",
    "opentelemetry",
    "pytest_asyncio",
    "pytest_randomly",
    "pytest_repeat",
    "pytest_rerunfailures",
}
"""What a test may not find, by the names that are imported."""
PACKAGES = {
    "beside_anyio/tests/conftest.py": ("anyio",),
    "beside_anyio/tests/test_evals.py": ("anyio",),
    "beside_anyio/tests/test_plain.py": ("anyio",),
    "beside_asyncio/tests/conftest.py": ("pytest_asyncio",),
    "beside_asyncio/tests/test_evals.py": ("pytest_asyncio",),
    "app_desk/desk.py": ("openai",),
    "app_mono/libs/mail/client.py": ("django", "openai"),
    "app_mono/services/triage/sorting.py": ("django",),
    "app_pages/service.py": ("fastapi",),
    "app_pages/test_pages.py": ("openai", "uvicorn"),
    "app_talk/dentist.py": ("langgraph",),
    "app_talk/test_dentist.py": ("langchain_openai",),
    "eval_border/tests/test_x.py": ("numpy",),
    "eval_carried/test_carried.py": ("openai",),
    "eval_shapes/test_shapes.py": ("openai",),
    "eval_carried/test_signed.py": ("anthropic",),
    "eval_clients/tests/test_clients.py": ("openai",),
    "eval_clients/tests/test_own_clients.py": ("openai",),
    "eval_clients/tests/test_responses.py": ("openai",),
    "eval_ends/tests/test_cancelled.py": ("openai",),
    "eval_service/app.py": ("openai",),
    "eval_service/test_baggage.py": ("openai",),
    "mcp_servers/server.py": ("mcp",),
}
"""What files of ``tests/projects`` import besides the package and what it depends on."""
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def required() -> frozenset[str]:
    """Return the kinds that this run must not lack; raise UsageError for one that no test asks for."""
    named = frozenset(kind.strip() for kind in os.environ.get(VARIABLE, "").split(",") if kind.strip())
    if unknown := named - KINDS:
        raise pytest.UsageError(
            f"{VARIABLE}: unknown {', '.join(sorted(unknown))}; choices: {', '.join(sorted(KINDS))}"
        )
    return named


def lacking(kind: str, reason: str) -> NoReturn:
    """Skip the test or module that lacks something; fail it where this run must not lack it."""
    if kind in required():
        pytest.fail(f"{reason}; {VARIABLE} names {kind}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def module(name: str, kind: str = "packages", reason: str = "") -> Any:
    """Return the module ``name``; a test or a test module that cannot import it is skipped or fails."""
    try:
        return import_module(name)
    except ImportError:
        lacking(kind, reason or _needs(name))


def installed(name: str, kind: str = "") -> None:
    """Skip or fail a test whose runs import the module ``name``: to import it here, too, may take a second."""
    if find_spec(name) is None:
        lacking(kind or ("clients" if name in CLIENTS else "packages"), _needs(name))


def of_projects(*paths: str) -> None:
    """Skip or fail a test that runs these files or folders of ``tests/projects``, if one imports what is not there."""
    for file, packages in PACKAGES.items():
        if any(f"{file}/".startswith(f"{path.rstrip('/')}/") for path in paths):
            for package in packages:
                installed(package)


def _needs(name: str) -> str:
    return LACKS_LIBRARIES if name in LIBRARIES else f"needs {name}"


def needs_file(path: Path) -> pytest.MarkDecorator:
    """Return a mark for tests that need a published data set; where it is required, they run and fail without it."""
    return pytest.mark.skipif(not path.exists() and "data" not in required(), reason=f"needs the published {path.name}")
