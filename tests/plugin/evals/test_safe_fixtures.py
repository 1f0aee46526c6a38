"""Fixtures that do nothing here, or that may exist several times, let examples run at the same time."""

from __future__ import annotations

import pytest

from tests.conftest import Project

HEAD = """
import asyncio
import pytest
from pytest_lmeval import eval_task

"""
EVAL = """
running = set()

@eval_task("x", data=[{"id": f"e{n}"} for n in range(6)])
async def test_x(row, lmFIXTURES):
    running.add(row["id"])
    await asyncio.sleep(0.05)
    lm.note("at_once", len(running))
    running.remove(row["id"])
    lm.score("ok", CHECK)
"""
# The fixtures of pytest-django 4.14, with its names and the modules that define them.
DJANGO = """
import os
import pytest

@pytest.fixture(autouse=True)
def _django_db_marker(request):
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("_django_db_helper")

@pytest.fixture
def _django_db_helper():
    pass

@pytest.fixture(autouse=True, scope="class")
def _django_setup_unittest(request):
    yield

@pytest.fixture(autouse=True)
def _dj_autoclear_mailbox():
    pass

@pytest.fixture(autouse=True)
def _template_string_if_invalid_marker(monkeypatch, request):
    pass

@pytest.fixture(autouse=True, scope="session")
def django_test_environment(request):
    yield
"""


def at_once(project: Project, *arguments: str) -> tuple[int, list[str]]:
    """Return how many examples ran at most at a time, and the lines that say why they did not."""
    result = project.run("test_x.py", "--lm-include-per-example", "--lm-concurrency=6", *arguments)
    assert 0 == result.ret, result.stdout.str()
    most = max(record["details"]["notes"]["at_once"] for record in project.examples().values())
    return most, [line for line in result.outlines if "ran one at a time" in line]


def written(project: Project, source: str, fixtures: str = "", check: str = "True") -> None:
    project.write("test_x.py", f"{HEAD}{source}{EVAL}".replace("FIXTURES", fixtures).replace("CHECK", check))


@pytest.mark.parametrize(
    ("environment", "mark", "fixture"),
    [
        ("", "", ""),
        ("", "@pytest.mark.django_db", "_django_db_marker of pytest_django is function-scoped"),
        ("own.settings", "", "_dj_autoclear_mailbox of pytest_django is function-scoped"),
    ],
)
def test_pytest_django_s_fixtures_count_only_if_they_do_something(
    project: Project, monkeypatch: pytest.MonkeyPatch, environment: str, mark: str, fixture: str
) -> None:
    project.write("site-packages/pytest_django/__init__.py", "")
    project.write("site-packages/pytest_django/plugin.py", DJANGO)
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site-packages"))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", environment)
    written(project, "")
    project.edit("test_x.py", '@eval_task("x"', f'{mark}\n@eval_task("x"')
    most, lines = at_once(project, "-p", "pytest_django.plugin", "-Wignore")
    how = "; if several may exist at a time, name it in lm_safe_fixtures"
    assert (1 if fixture else 6) == most
    assert ([f"x: 6 examples ran one at a time: fixture {fixture}{how}"] if fixture else []) == lines


OWN = """
made = []

@pytest.fixture
def folder(tmp_path):
    return tmp_path

@pytest.fixture
def db(folder):
    made.append(folder)
    yield (folder, len(made))
    made.remove(folder)

@pytest.fixture(scope="session", autouse=True)
def all_closed():
    yield
    assert not made
"""


def test_each_example_gets_its_own_instance_of_a_safe_fixture(project: Project) -> None:
    written(project, OWN, ", db, tmp_path", "db[0] == tmp_path")
    place = "fixture db (test_x.py:13) is function-scoped; if several may exist at a time, name it in lm_safe_fixtures"
    assert (1, [f"x: 6 examples ran one at a time: {place}"]) == at_once(project)
    assert (6, []) == at_once(project, "-olm_safe_fixtures=db folder")
    # Those that were begun ahead are closed, too, where the run stops.
    project.edit("test_x.py", 'lm.score("ok", db[0] == tmp_path)', 'assert row["id"] != "e0"')
    stopped = project.run("test_x.py", "-x", "-olm_safe_fixtures=db folder")
    assert (1, False) == (stopped.ret, "ERROR" in stopped.stdout.str()), stopped.stdout.str()


PATCHES = """
@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv("APP", "test")
"""
METHOD = """
@pytest.fixture
def value(request):
    return request.node.name
"""


@pytest.mark.parametrize(
    ("source", "fixtures", "safe", "reason"),
    [
        (PATCHES, "", "settings", "fixture settings (test_x.py:7) takes monkeypatch, whose changes hold for the whole"),
        (
            "",
            ", monkeypatch",
            "",
            "the function takes monkeypatch, whose changes hold for the whole process; "
            "to run examples together, patch once in a session fixture",
        ),
        (
            "",
            ", lm_env",
            "lm_env",
            "the fixture lm_env sets variables, which hold for the whole process; "
            "to run examples together, give the application lm.client or lm.base_url",
        ),
        (METHOD, ", value", "value", "fixture value (test_x.py:7) is in lm_safe_fixtures, but it is async, a method"),
        ("", ", capsys", "", "fixture capsys of pytest is function-scoped; if several may exist at a time, name it in"),
    ],
)
def test_some_fixtures_are_never_safe(project: Project, source: str, fixtures: str, safe: str, reason: str) -> None:
    written(project, source, fixtures)
    most, (line,) = at_once(project, f"-olm_safe_fixtures={safe}")
    assert (1, True) == (most, line.startswith(f"x: 6 examples ran one at a time: {reason}")), line


def test_a_fixture_that_patches_the_process_cannot_be_named_safe(project: Project) -> None:
    written(project, "")
    result = project.run("test_x.py", "-olm_safe_fixtures=monkeypatch")
    assert 4 == result.ret
    said = "*ini lm_safe_fixtures: monkeypatch changes the whole process, so its examples run one at a time*"
    result.stderr.fnmatch_lines([said])
