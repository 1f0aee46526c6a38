"""``--lm-changed REF``: only the evals that a change touches run, and all if that is unknown."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import Project


def git(project: Project, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=project.path, check=True, capture_output=True)


@pytest.fixture
def repository(project: Project) -> Project:
    """Two eval functions of one package, each on a module of its own, and a task file; a module reads a prompt."""
    for name in ("search", "reply"):
        project.write(f"shop/{name}.py", f"from . import shared\ndef {name}(): return shared.ONE\n")
        project.write(
            f"tests/test_{name}.py",
            f"from pytest_lmeval import eval_task\nimport shop.{name}\n"
            f"@eval_task('{name}', data='{name}.csv')\ndef test_{name}(row, lm):\n"
            f"    from shop import late_{name}\n    lm.score('s', 1)\n",
        )
        project.write(f"tests/{name}.csv", "id,q\na,1\nb,2\n")
        project.write(f"shop/late_{name}.py", "")
    project.write("shop/reply.py", "from pathlib import Path\nTEXT = Path(__file__).with_name('p.txt').read_text()\n")
    project.write("shop/p.txt", "Be polite.")
    project.write("shop/shared.py", "ONE = 1\n")
    project.write("shop/__init__.py", "")
    project.task("tasks/arith.jsonl", project.record("sum", "Say 2", "2"))
    project.write("tests/test_plain.py", "def test_plain(): pass\n")
    project.write("tests/conftest.py", "")
    project.write("README.md", "")
    project.write(".gitignore", "reports/\n__pycache__/\n.pytest_cache/\nrunpytest*\nstdout\nstderr\nb.json\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    return project


ALL = {"search", "reply", "arith"}


def tasks_run(project: Project, *options: str, ref: str = "HEAD") -> tuple[set[str], str]:
    shutil.rmtree(project.path / "reports", ignore_errors=True)
    result = project.run(".", "--lm-adapter=toy", f"--lm-changed={ref}", "--lm-gate=none", *options)
    output = result.stdout.str() + result.stderr.str()
    assert 0 == result.ret, output
    is_there = (project.path / "reports/leaderboard.json").exists()
    return {row["task"] for row in project.board()["tasks"]} if is_there else set(), output


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("tests/test_search.py", {"search"}),
        ("tests/search.csv", {"search"}),
        ("shop/search.py", {"search"}),
        ("shop/late_reply.py", {"reply"}),
        ("shop/p.txt", {"reply"}),
        ("shop/shared.py", {"search"}),
        ("tasks/arith.jsonl", {"arith"}),
        ("README.md", set()),
        ("docs/new.md", set()),
        ("tests/conftest.py", ALL),
        ("pyproject.toml", ALL),
        ("prompts/other.txt", ALL),
    ],
)
def test_a_changed_file_selects_the_evals_that_depend_on_it(repository: Project, file: str, touched: set[str]) -> None:
    path = repository.path / file
    before = path.read_text() if path.exists() else ""
    repository.write(file, f"{before}\n")
    ran, output = tasks_run(repository)
    assert touched == ran, output
    if touched == ALL:
        assert f"all evals run: {file} changed, which may affect any task" in output


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_without_a_change_no_eval_runs_and_the_exit_code_is_0(repository: Project, workers: tuple[str, ...]) -> None:
    result = repository.run("tasks", "tests/test_search.py", "--lm-adapter=toy", "--lm-changed=HEAD", *workers)
    assert 0 == result.ret, result.stdout.str()
    result.stdout.fnmatch_lines(["no eval is touched since HEAD (3 not run)"])
    whole = repository.run(".", "--lm-adapter=toy", "--lm-changed=HEAD", *workers)
    whole.assert_outcomes(passed=1, deselected=0 if workers else 5)


@pytest.mark.parametrize("ref", ["no-such-branch", "--output=x"])
def test_an_unknown_ref_runs_all_and_says_how_to_get_it(repository: Project, ref: str) -> None:
    ran, output = tasks_run(repository, ref=ref)
    assert ALL == ran
    assert f"all evals run: git does not know {ref}: git fetch origin, or name a commit" in output


def test_a_shallow_clone_runs_all_and_names_the_command(repository: Project) -> None:
    first = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository.path, capture_output=True, text=True, check=True
    )
    repository.write("README.md", "x")
    git(repository, "commit", "-qam", "more")
    folder = repository.path / "clone"
    git(repository, "clone", "-q", "--depth=1", f"file://{repository.path}", str(folder))
    result = repository.run(
        "clone", "--rootdir=clone", "--lm-adapter=toy", f"--lm-changed={first.stdout.strip()}", "--lm-gate=none"
    )
    assert "the shallow clone lacks" in result.stdout.str()
    assert "git fetch --unshallow" in result.stdout.str()


def test_a_renamed_module_runs_all(repository: Project) -> None:
    git(repository, "mv", "shop/search.py", "shop/find.py")
    repository.edit("tests/test_search.py", "shop.search", "shop.find")
    ran, output = tasks_run(repository)
    assert ALL == ran
    assert "shop/search.py changed, which may affect any task" in output


@pytest.mark.parametrize(
    ("file", "name"), [("tests/search.csv", "tests/rows.csv"), ("tests/test_search.py", "tests/test_find.py")]
)
def test_a_renamed_data_file_or_test_file_runs_all(repository: Project, file: str, name: str) -> None:
    git(repository, "mv", file, name)
    if name.endswith("csv"):
        repository.edit("tests/test_search.py", "search.csv", "rows.csv")
    ran, output = tasks_run(repository)
    assert ALL == ran
    assert f"all evals run: {file} changed, which may affect any task" in output


def test_the_ini_key_names_files_without_effect_and_a_baseline_compares_the_selection(repository: Project) -> None:
    repository.run(".", "--lm-adapter=toy", "--lm-baseline=b.json", "--lm-update-baseline", "--lm-gate=none")
    repository.write("assets/logo.svg", "<svg/>")
    repository.edit("shop/search.py", "ONE", "ONE * 1")
    ran, _ = tasks_run(repository, "-o", "lm_changed_ignore=assets/", "--lm-baseline=b.json")
    assert {"search"} == ran
    refused = repository.run(
        ".", "--lm-adapter=toy", "--lm-changed=HEAD", "-o", "lm_changed_ignore=assets/",
        "--lm-baseline=b.json", "--lm-update-baseline",
    )  # fmt: skip
    assert "(--lm-changed)" in refused.stdout.str() + refused.stderr.str()
