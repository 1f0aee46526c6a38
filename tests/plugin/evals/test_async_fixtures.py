"""Async fixtures: those of plain tests are their plugin's, beside evals as without; those of evals are ours."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.needs import installed

OPTIONS = {
    "asyncio": ("-ppytest_asyncio.plugin",),
    "anyio": ("-panyio.pytest_plugin",),
}


def outcomes(result: pytest.RunResult) -> list[str]:
    """Return what the run says of each plain test, with the reason of a failure."""
    words = ("PASSED", "FAILED", "ERROR")
    return sorted(line for line in result.outlines if line.startswith(words) and "test_plain.py" in line)


def compare(project: Project, *options: str) -> None:
    """Run the plain tests of a project alone, then all: they come to the same, and the evals pass."""
    alone = outcomes(project.run_pytest("tests/test_plain.py", "-rA", *options))
    assert alone

    beside = project.run("tests", "-rA", "--lm-adapter=none", *options)

    assert alone == outcomes(beside), beside.stdout.str()
    assert 1.0 == project.board()["overall_score"]
    assert project.board()["complete"]


@pytest.mark.parametrize(
    ("mode", "processes"), [("strict", "-n0"), pytest.param("auto", "-n2", marks=pytest.mark.again)]
)
def test_plain_tests_of_pytest_asyncio_come_to_the_same_beside_evals(
    project: Project, mode: str, processes: str
) -> None:
    installed("pytest_asyncio")
    project.copy("beside_asyncio")
    compare(project, *OPTIONS["asyncio"], f"-oasyncio_mode={mode}", processes)


@pytest.mark.parametrize(
    ("backend", "processes"), [("asyncio", "-n0"), pytest.param("trio", "-n2", marks=pytest.mark.again)]
)
def test_plain_tests_of_anyio_come_to_the_same_beside_evals(project: Project, backend: str, processes: str) -> None:
    installed("anyio")
    if backend == "trio":
        installed("trio", kind="trio")
    project.copy("beside_anyio")
    project.edit("tests/conftest.py", 'BACKEND = "asyncio"', f'BACKEND = "{backend}"')
    compare(project, *OPTIONS["anyio"], processes)


EVAL = (
    "import pytest\nfrom pytest_lmeval import eval_task\n\n"
    "@eval_task('x', data=[{'id': 'a'}, {'id': 'b'}])\nasync def test_x(row, lm, NAME):\n"
    "    assert await lm.ask('say: 1')\n"
)
SHARED = {
    "session": ("@pytest.fixture(scope='session')\nasync def db(): ...\n", "db", "db", "session"),
    "package": ("@pytest.fixture(scope='package')\nasync def db(): ...\n", "db", "db", "package"),
    "asked for through another": (
        "@pytest.fixture(scope='session')\nasync def db():\n    yield 1\n\n"
        "@pytest.fixture\ndef client(db): ...\n\n@pytest.fixture\nasync def other(db): ...\n",
        "other",
        "client",
        "session",
    ),
    "autouse": (
        "@pytest.fixture(scope='session', autouse=True)\nasync def db(): ...\n",
        "row",
        "tmp_path",
        "session",
    ),
}


@pytest.mark.parametrize(
    "case", [*SHARED][:1] + [pytest.param(each, marks=pytest.mark.again) for each in [*SHARED][1:]]
)
def test_a_wider_fixture_of_evals_and_plain_tests_is_refused_before_anything_is_asked(
    project: Project, case: str
) -> None:
    fixtures, of_eval, of_plain, scope = SHARED[case]
    project.write("tests/conftest.py", f"import pytest\n\n{fixtures}")
    project.write("tests/test_evals.py", EVAL.replace(", NAME", f", {of_eval}" if of_eval != "row" else ""))
    project.write("tests/test_plain.py", f"def test_plain({of_plain}):\n    pass\n")

    result = project.run("tests")

    assert 4 == result.ret, result.stdout.str()
    expected = (
        f"fixture db (tests/conftest.py:3) is async and of scope {scope}: the eval tests/test_evals.py::test_x[a] and "
        "the test tests/test_plain.py::test_plain cannot share it, as they run in different event loops; make its "
        "scope function, or give the evals a fixture of their own"
    )
    assert expected in result.stderr.str()
    assert [] == project.calls()
    # Without the tests that share it the evals have it for themselves.
    assert 0 == project.run("tests", "-k", "test_evals").ret


def test_instances_of_a_module_or_class_are_not_shared_with_those_of_another(project: Project) -> None:
    fixture = (
        "import asyncio\nimport pytest\n\n@pytest.fixture(scope='{0}')\nasync def of_{0}():\n"
        "    return asyncio.get_running_loop()\n"
    )
    project.write("tests/conftest.py", fixture.format("module") + fixture.format("class"))
    body = "    assert of_module is of_class is asyncio.get_running_loop()\n"
    project.write(
        "tests/test_evals.py",
        "import asyncio\nfrom pytest_lmeval import eval_task\n\n"
        f"@eval_task('x')\nasync def test_x(lm, of_module, of_class):\n{body}\n"
        "class TestPlain:\n    def test_plain(self, of_class):\n        pass\n",
    )
    project.write("tests/test_plain.py", "def test_plain(of_module):\n    pass\n")

    result = project.run("tests", "--lm-adapter=none")

    assert 1 == result.ret, result.stdout.str()
    assert 1.0 == project.board()["overall_score"]
    # As without evals: no plugin sets them up. pytest says so twice of each.
    assert 4 == result.stdout.str().count("requested an async fixture"), result.stdout.str()


def test_a_fixture_of_plain_tests_that_an_eval_asks_for_by_name_makes_it_an_error_and_stays_theirs(
    project: Project,
) -> None:
    installed("pytest_asyncio")
    scope = "scope='session', loop_scope='session'"
    project.write(
        "tests/test_x.py",
        "import asyncio\nimport pytest\nimport pytest_asyncio\nfrom pytest_lmeval import eval_task\n\n"
        f"@pytest_asyncio.fixture({scope})\nasync def db():\n    return asyncio.get_running_loop()\n\n"
        f"@pytest_asyncio.fixture({scope})\nasync def own():\n    return asyncio.get_running_loop()\n\n"
        "@eval_task('blocking')\ndef test_blocking(lm, request):\n"
        "    assert request.getfixturevalue('own').is_running()\n"
        "    assert request.getfixturevalue('db')\n\n"
        "@eval_task('async')\nasync def test_async(lm, request):\n    assert request.getfixturevalue('other')\n\n"
        "@pytest.fixture\nasync def other():\n    return 1\n\n"
        "@pytest.mark.asyncio(loop_scope='session')\nasync def test_plain(db):\n"
        "    assert db is asyncio.get_running_loop()\n",
    )
    options = (*OPTIONS["asyncio"], "-oasyncio_default_fixture_loop_scope=function", "--lm-include-per-example")

    result = project.run("tests", "--lm-adapter=none", "-rA", *options)

    assert 3 == result.ret, result.stdout.str()
    assert "PASSED tests/test_x.py::test_plain" in result.outlines
    errors = [record["error"] for record in project.examples().values()]
    assert [
        "fixture other (tests/test_x.py:23) is async: an async function cannot wait for request.getfixturevalue: "
        "take the fixture as an argument",
        "fixture db (tests/test_x.py:6) is async and of scope session: the eval tests/test_x.py::test_blocking and the "
        "test tests/test_x.py::test_plain cannot share it, as they run in different event loops; make its scope "
        "function, or give the evals a fixture of their own",
    ] == errors
