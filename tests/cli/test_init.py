"""A project that ``lmeval init`` began is green at once, and its workflow is red where a change makes it worse."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from pytest_lmeval.formats.yaml.parse import parse_yaml
from pytest_lmeval.starter.workflow import comes_from_here, origin
from tests import needs
from tests.adapters.openai.scripted_server import Exchange, chat, json_reply, serving

if TYPE_CHECKING:
    from tests.cli.conftest import Lmeval
    from tests.conftest import Project

WORKFLOW = ".github/workflows/evals.yml"
FACTS = {
    "17 + 25": "42",
    "two weeks": "14",
    "three cats": "12",
    "France": "Paris",
    "planet": "Earth",
    "hot": "cold",
    "March": "April",
    "sky": "blue",
}
ROWS = "id,question,answer,source\n" + "".join(
    f"q{number},{question}?,{answer},book\n" for number, (question, answer) in enumerate(FACTS.items())
)
# A model of the project's own.
OWN = f"""
class Model:
    name = "own.v1"

    def generate(self, prompts):
        return [next((said for part, said in {FACTS!r}.items() if part in prompt), "?") for prompt in prompts]
"""


async def _knows(exchange: Exchange) -> None:
    """Answer as the model that the facts are of, unless a system message tells it otherwise."""
    messages = exchange.seen.json["messages"]
    said = next((said for part, said in FACTS.items() if part in messages[-1]["content"]), "?")
    await json_reply(chat(said if len(messages) == 1 else "I would rather not say."))(exchange)


@pytest.fixture
def empty(project: Project) -> Project:
    """Provide a folder in which nothing is configured."""
    for name in ("pytest.ini", "model.py"):
        (project.path / name).unlink()
    return project


def _init(lmeval: Lmeval, *arguments: str) -> list[str]:
    status, out, err = lmeval("init", *arguments)
    assert (0, "") == (status, err)
    return out.splitlines()


def _job(project: Project) -> dict[str, Any]:
    job: dict[str, Any] = parse_yaml((project.path / WORKFLOW).read_bytes())["jobs"]["evals"]
    return job


def _commands(project: Project) -> list[list[str]]:
    """Return the commands of the workflow that install and that test."""
    commands = [shlex.split(step["run"]) for step in _job(project)["steps"] if "run" in step]
    return [each for each in commands if each[0] in ("pip", "pytest")]


def _green_then_red(project: Project, path: str, old: str, new: str) -> None:
    """Follow the two commands that ``init`` ends with, then edit a file and run the workflow's command."""
    tested = _commands(project)[1][1:]
    baseline = [*tested, "--lm-update-baseline"]
    for arguments in (tested[:-1], baseline, tested):
        done = project.run_pytest(*arguments)
        assert 0 == done.ret, done.stdout.str()
    text = (project.path / path).read_text("utf-8")
    assert old in text
    project.write(path, text.replace(old, new))
    done = project.run_pytest(*tested)
    assert 1 == done.ret, done.stdout.str()
    assert "regression" == project.board()["gate"]["verdict"]


HERE = ["pytest-lmeval is installed from a local folder: edit evals.yml so that the workflow can install it"]
HERE *= comes_from_here()


def test_the_toy_gets_tasks_that_it_knows(empty: Project, lmeval: Lmeval) -> None:
    told = _init(lmeval)

    assert [
        "wrote tasks/arithmetic.jsonl",
        "wrote tasks/support.jsonl",
        f"wrote {WORKFLOW}",
        "wrote pyproject.toml: [tool.pytest.ini_options] lm_adapter = 'toy', lm_pair_by = 'id'",
        "wrote .gitignore: reports/, __pycache__/",
        *HERE,
        "now:  pytest tasks/",
        "then: pytest tasks/ --lm-baseline=baseline.json --lm-update-baseline, and commit baseline.json",
    ] == told
    assert ["pip", "install", "pytest-lmeval"] == _commands(empty)[0][:3]
    empty.run_pytest("tasks/").assert_outcomes(passed=10)


def test_the_workflow_compares_a_pull_request_with_the_baseline_of_its_target_branch(
    empty: Project, lmeval: Lmeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        needs.lacking("git", "needs git")

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=empty.path, check=True, capture_output=True)

    def compare() -> tuple[int, str]:
        (step,) = (step for step in _job(empty)["steps"] if "git fetch" in step.get("run", ""))
        assert "github.event_name == 'pull_request'" == step["if"]
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as GitHub runs it
        done = subprocess.run(shell, cwd=empty.path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    _init(lmeval)
    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", str(empty.path))
    git("add", ".github")
    git("commit", "-qm", "a")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert (0, "::notice::no baseline.json on main yet\n") == compare()
    empty.write("baseline.json", "high")
    git("add", "baseline.json")
    git("commit", "-qm", "b")
    git("checkout", "-qb", "change")
    empty.write("baseline.json", "low")
    git("commit", "-qam", "c")
    assert (0, "") == compare()
    assert "high" == (empty.path / "baseline.json").read_text()
    monkeypatch.setenv("GITHUB_BASE_REF", "nowhere")
    assert 0 != compare()[0]


def test_a_served_model_gets_a_profile_and_questions_that_any_model_answers(empty: Project, lmeval: Lmeval) -> None:
    with serving([_knows]) as server:
        told = _init(lmeval, "--model=openai:lab/small-7b", f"--base-url={server.base_url}/")

        profile = f"[tool.lmeval.adapters.small-7b] adapter = 'openai:lab/small-7b', base_url = '{server.base_url}'"
        assert f"wrote pyproject.toml: {profile}" in told
        assert f"{server.base_url} is on this machine: the workflow needs an address that it can reach" in told
        assert "wrote tasks/first.jsonl" in told
        _green_then_red(empty, "pyproject.toml", "base_url =", 'system = "Be careful."\nbase_url =')


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/no/such", "/no/such is not a folder: the first run will refuse hf:/no/such"),
        (".", ". is on this machine: the workflow needs the model"),
    ],
)
def test_a_folder_of_a_model_that_no_run_or_no_workflow_finds_is_named(
    empty: Project, lmeval: Lmeval, folder: str, said: str
) -> None:
    assert [line for line in _init(lmeval, f"--model=hf:{folder}") if line.startswith(said)]


async def _works_out(exchange: Exchange) -> None:
    """Answer as the model that the request names: only ``able`` and ``gpt-4o-mini`` can count."""
    asked = exchange.seen.json
    text = asked["messages"][-1]["content"].removeprefix("Work out ").partition(".")[0]
    said = str(eval(text)) if asked["model"] in ("able", "gpt-4o-mini") and text[:1].isdigit() else "?"
    await json_reply(chat(said))(exchange)


def test_an_application_gets_an_eval_function_whose_place_it_takes(empty: Project, lmeval: Lmeval) -> None:
    told = _init(lmeval, "--function", "--model=toy")

    assert "now:  pytest tests/test_evals.py" in told
    assert "pythonpath = ['.']" in "".join(told)
    _green_then_red(empty, "tests/test_evals.py", 'f"{question} Reply', 'f"Reply')


def test_the_model_of_an_application_is_the_one_that_its_requests_name(
    empty: Project, lmeval: Lmeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _init(lmeval, "--function")
    assert (
        "wrote pyproject.toml: [tool.pytest.ini_options] lm_adapter = 'openai:', lm_pair_by = 'id', pythonpath = ['.']"
        in told
    )
    note = "openai: asks the model that each request names: the example eval names gpt-4o-mini"
    assert [note, "the key is read from OPENAI_API_KEY: set it here, and as a secret of the repository"] == told[
        -len(HERE) - 4 : -len(HERE) - 2
    ]
    with serving([_works_out]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        # Another model is a change of the application, and is tested.
        _green_then_red(empty, "tests/test_evals.py", 'MODEL = "gpt-4o-mini"', 'MODEL = "unable"')


def test_an_application_whose_model_has_an_address_gets_a_profile_without_a_model(
    empty: Project, lmeval: Lmeval
) -> None:
    with serving([_works_out]) as server:
        told = _init(lmeval, "--function", "--model=openai:able", f"--base-url={server.base_url}")

        profile = f"[tool.lmeval.adapters.app] adapter = 'openai:', base_url = '{server.base_url}'"
        assert f"wrote pyproject.toml: {profile}" in told
        assert "openai: asks the model that each request names: the example eval names able" in told
        _green_then_red(empty, "tests/test_evals.py", 'MODEL = "able"', 'MODEL = "unable"')


def test_a_file_of_rows_is_the_data_of_an_eval_function(empty: Project, lmeval: Lmeval) -> None:
    empty.write("own.py", OWN)
    empty.write("data/faq.csv", ROWS)
    _init(lmeval, "--model=own:Model", "--function", "--from=data/faq.csv")

    assert 'data="../data/faq.csv"' in (empty.path / "tests/test_evals.py").read_text()
    empty.run_pytest("tests/").assert_outcomes(passed=8)


def test_a_file_of_rows_becomes_a_task_that_stays_with_the_file(empty: Project, lmeval: Lmeval) -> None:
    empty.write("own.py", OWN)
    empty.write("data/My FAQ.csv", ROWS)
    told = _init(lmeval, "--model=own:Model", "--from=data/My FAQ.csv")

    assert "wrote tasks/my-faq.yaml" in told
    _green_then_red(empty, "own.py", "if part in prompt", "if part in prompt[::-1]")


@pytest.mark.parametrize("name", ["rows", "function"])
def test_a_prompt_that_does_no_harm_passes_and_one_that_does_is_a_regression(
    empty: Project, lmeval: Lmeval, name: str
) -> None:
    empty.write("own.py", OWN)
    empty.write("faq.csv", ROWS)
    _init(lmeval, "--model=own:Model", *(["--from=faq.csv"] if name == "rows" else ["--function", "--from=faq.csv"]))
    path, question, harmless, harmful = {
        "rows": (
            "tasks/faq.yaml",
            "{{ question }}",
            "Please answer: {{ question }}",
            "Say something of {{ question | length }}.",
        ),
        "function": (
            "tests/test_evals.py",
            "{question} Reply",
            "Please answer: {question} Reply",
            "Say something. Reply",
        ),
    }[name]
    tested = _commands(empty)[1][1:]
    assert 0 == empty.run_pytest(*tested, "--lm-update-baseline").ret
    empty.edit(path, question, harmless)
    assert 0 == empty.run_pytest(*tested).ret
    assert "pass" == empty.board()["gate"]["verdict"]

    empty.edit(path, harmless, harmful)
    done = empty.run_pytest(*tested)
    assert (1, "regression") == (done.ret, empty.board()["gate"]["verdict"])
    assert 0 == done.stdout.str().count("the baseline has no prompts")
    if name == "function":  # who reads the comment sees what was said
        text = (empty.path / "reports/leaderboard.md").read_text()
        assert "? | Paris | Paris | ? | right 1 | right 0 |" in text


@pytest.mark.parametrize(
    ("rows", "id"),
    [
        ([("id", "a1"), ("id", "b2")], None),
        ([("key", "a1"), ("key", "b2")], "{{ key }}"),
        ([("key", "a"), ("key", "a")], "{{ question }}"),
        ([("question", "long " * 20 + "a"), ("question", "long " * 20 + "b")], "{{ row | hash }}"),
        ([("id", ""), ("id", "b2")], "{{ question }}"),
        ([("id", 1), ("id", "1")], "{{ question }}"),
        ([("question", "same"), ("question", "same")], "{{ row | hash }}"),
        ([("question", "same"), ("question", "same"), ("answer", "x")], ""),
    ],
)
def test_rows_get_ids_by_the_column_that_tells_them_apart_else_by_a_hash(
    empty: Project, lmeval: Lmeval, rows: list[tuple[str, Any]], id: str | None
) -> None:
    same = len(rows) == 3
    rows = rows[:2]
    values = [
        {"question": f"q{number}", "answer": "x" if same else f"a{number}", name: value}
        for number, (name, value) in enumerate(rows)
    ]
    empty.write("rows.jsonl", "\n".join(map(json.dumps, values)))
    told = _init(lmeval, "--from=rows.jsonl")

    assert id == (parse_yaml((empty.path / "tasks/rows.yaml").read_bytes()).get("id", "" if same else None))
    assert same == any("two rows are equal" in line for line in told)
    assert same != ("lm_pair_by" in (empty.path / "pyproject.toml").read_text())
    status, out, _ = lmeval("validate", "tasks")
    assert 0 == status, out


def test_rows_of_a_function_without_ids_are_compared_by_what_they_hold(empty: Project, lmeval: Lmeval) -> None:
    empty.write("rows.csv", "question,answer\na,b\nc,d\n")
    _init(lmeval, "--function", "--from=rows.csv")

    assert "lm_pair_by" not in (empty.path / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("answers", "metric", "asked"),
    [
        ("42 -1 3,000 0.5", "number", "Reply with the number alone."),
        ("yes no yes no yes", "exact_match", "Reply with one of these alone: no, yes."),
        ("{{x}} no {{x}} no {{x}}", "contains_any", ""),
        ("red green blue", "contains_any", ""),
    ],
)
def test_the_answers_decide_how_they_are_asked_for_and_compared(
    empty: Project, lmeval: Lmeval, answers: str, metric: str, asked: str
) -> None:
    rows = [json.dumps({"input": f"q{number}", "label": answer}) for number, answer in enumerate(answers.split())]
    empty.write("rows.jsonl", "\n".join(rows))
    _init(lmeval, "--from=rows.jsonl")
    written = parse_yaml((empty.path / "tasks/rows.yaml").read_bytes())

    assert (metric, "{{ label }}") == (written["metric"], written["target"])
    assert asked == written["prompt"].removeprefix("{{ input }}").strip()
    status, out, _ = lmeval("validate", "tasks")
    assert 0 == status, out


def test_a_hosted_model_gets_its_key_as_a_secret_and_no_run_of_a_fork(empty: Project, lmeval: Lmeval) -> None:
    told = _init(lmeval, "--model=anthropic:claude")

    job = _job(empty)
    assert [{"ANTHROPIC_API_KEY": "${{ secrets.ANTHROPIC_API_KEY }}"}] == [
        step["env"] for step in job["steps"] if step.get("run", "").startswith("pytest ")
    ]
    assert "head.repo.full_name == github.repository" in job["if"]
    assert "the key is read from ANTHROPIC_API_KEY: set it here, and as a secret of the repository" in told


def test_a_local_model_needs_its_extra_and_a_project_is_installed(empty: Project, lmeval: Lmeval) -> None:
    empty.write("pyproject.toml", '[project]\nname = "shop"\nversion = "1"\n')
    _init(lmeval, "--model=hf:models/tiny")

    assert ["pip", "install", "-e", ".", "pytest-lmeval[hf]"] == _commands(empty)[0][:5]
    assert '[project]\nname = "shop"\nversion = "1"\n' in (empty.path / "pyproject.toml").read_text()


def test_the_workflow_installs_the_package_from_where_it_is_installed_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        recorded: ClassVar[dict[str, Any]] = {}

        def read_text(self, name: str) -> str | None:
            assert "direct_url.json" == name
            return json.dumps(self.recorded) if self.recorded else None

    monkeypatch.setattr("pytest_lmeval.starter.workflow.distribution", lambda name: Installed())
    for recorded, expected in (
        ({}, ""),
        ({"url": "file:///home/me/pytest-lmeval", "dir_info": {"editable": True}}, ""),
        ({"url": "https://example.org/p.whl", "archive_info": {}}, "https://example.org/p.whl"),
        (
            {"url": "https://example.org/p.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "git+https://example.org/p.git@abc",
        ),
    ):
        Installed.recorded = recorded
        assert expected == origin()
        assert str(recorded.get("url", "")).startswith("file:") == comes_from_here()


SETTINGS = {
    # file: (before, what is written, what is said of it)
    "pytest.ini": (
        "[pytest]  ; ours\naddopts = -q\n",
        "[pytest]  ; ours\nlm_adapter = toy\nlm_pair_by = id\naddopts = -q\n",
    ),
    ".pytest.ini": ("", "[pytest]\nlm_adapter = toy\nlm_pair_by = id\n"),
    "tox.ini": (
        "[tox]\nx = 1\n[pytest]\naddopts = -q",
        "[tox]\nx = 1\n[pytest]\nlm_adapter = toy\nlm_pair_by = id\naddopts = -q",
    ),
    "setup.cfg": ("[tool:pytest]\naddopts = -q\n", "[tool:pytest]\nlm_adapter = toy\nlm_pair_by = id\naddopts = -q\n"),
    "pyproject.toml": (
        "[tool.pytest.ini_options] # ours\naddopts = '-q'\n[tool.x]\ny = 1\n",
        '[tool.pytest.ini_options] # ours\nlm_adapter = "toy"\nlm_pair_by = "id"\naddopts = \'-q\'\n[tool.x]\ny = 1\n',
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_model_is_named_where_pytest_is_configured_and_nothing_else_changes(
    empty: Project, lmeval: Lmeval, name: str
) -> None:
    before, after = SETTINGS[name]
    empty.write(name, before)
    _init(lmeval)

    assert after == (empty.path / name).read_text()
    assert name == "pyproject.toml" or not (empty.path / "pyproject.toml").exists()


def test_a_table_that_lines_cannot_be_added_to_is_left_and_the_line_is_said(empty: Project, lmeval: Lmeval) -> None:
    empty.write("pyproject.toml", 'tool.pytest.ini_options.addopts = "-q"\n')
    told = _init(lmeval)

    assert "kept pyproject.toml: add by hand: [tool.pytest.ini_options] lm_adapter = 'toy', lm_pair_by = 'id'" in told


def test_what_exists_is_left_and_named_and_a_second_time_changes_nothing(empty: Project, lmeval: Lmeval) -> None:
    empty.write("tasks/support.jsonl", "mine")
    empty.write(WORKFLOW, "mine")
    empty.write("pyproject.toml", '[tool.pytest.ini_options]\nlm_adapter = "mine"\n')
    empty.write(".gitignore", "/reports\n__pycache__\n")
    first = _init(lmeval)
    kept = {path: path.read_bytes() for path in empty.path.rglob("*") if path.is_file()}
    again = _init(lmeval)

    named = "[tool.pytest.ini_options] lm_adapter = 'toy', lm_pair_by = 'id'"
    assert [
        "wrote tasks/arithmetic.jsonl",
        "kept tasks/support.jsonl: it exists",
        f"kept {WORKFLOW}: it exists",
        f"kept pyproject.toml: lm_adapter = 'mine' is there; not {named}",
    ] == first[:4]
    assert "kept tasks/arithmetic.jsonl: it exists" in again
    assert kept == {path: path.read_bytes() for path in empty.path.rglob("*") if path.is_file()}


def test_the_folders_of_environments_are_ignored(empty: Project, lmeval: Lmeval) -> None:
    empty.write("env/pyvenv.cfg", "")
    empty.write(".gitignore", "*.log")
    _init(lmeval)

    assert "*.log\nreports/\n__pycache__/\nenv/\n" == (empty.path / ".gitignore").read_text()


BAD = {
    "--model=gpt-4o": "--model 'gpt-4o': expected one of toy, openai:NAME, anthropic:NAME, hf:PATH, module:Object",
    "--model=openai:": "--model 'openai:': expected one of",
    "--model=nope:Model": "--model 'nope:Model': no module 'nope' in . or its src, and none is installed",
    "--model=toy:x": "--model 'toy:x': expected one of",
    "--model=toy --base-url=http://x": "--base-url: toy has no address",
    "--base-url=http://x": "--base-url needs the name of the model: --model openai:NAME",
    "--model=openai:m --base-url=localhost:80": "expected an address such as http://localhost:8000/v1",
    "--model=openai:m --base-url=http://me:secret@x/v1": "an address with a user or password in it is not written",
    "--question=q": "--question and --answer name columns of a file: --from FILE",
    "--from=none.csv": "--from none.csv: cannot be read: No such file or directory",
    "--from=rows.txt": "--from rows.txt: expected a file that ends in .csv, .jsonl, .parquet",
    "--from=quote.csv": "--from quote.csv: quote.csv:2: ",
    "--from=wide.csv": "--from wide.csv: wide.csv:3: ",
    "--from=empty.csv": "--from empty.csv: ",
    "--from=blank.csv --question=my&question": "a template cannot name the column 'my&question'; rename",
    "--from=two.csv": "which column is the question? --question COLUMN (columns: question, prompt, answer)",
    "--from=two.csv --question=prompt --answer=reply": "which column is the answer? --answer COLUMN",
}


@pytest.mark.parametrize("arguments", BAD)
def test_what_no_project_could_begin_with_is_refused_and_nothing_is_written(
    empty: Project, lmeval: Lmeval, arguments: str
) -> None:
    empty.write("rows.txt", "x")
    empty.write("quote.csv", 'question,answer\n"a,b\n')
    empty.write("wide.csv", "question,answer\na,b\na,b,c\n")
    empty.write("empty.csv", "question,answer\n")
    empty.write("blank.csv", "my&question,answer\na,b\n")
    empty.write("two.csv", "question,prompt,answer\na,b,c\n")
    before = sorted(empty.path.rglob("*"))
    status, _, err = lmeval("init", *arguments.split())

    assert 2 == status
    assert BAD[arguments] in err
    assert "secret" not in err
    assert before == sorted(empty.path.rglob("*"))


@pytest.mark.parametrize("name", ["tasks", ".github", ".gitignore/x", "pyproject.toml/x"])
def test_nothing_is_written_where_a_file_and_a_folder_are_mistaken(empty: Project, lmeval: Lmeval, name: str) -> None:
    empty.write(name, "mine")
    before = sorted(empty.path.rglob("*"))
    status, _, _ = lmeval("init")

    assert 2 == status
    assert before == sorted(empty.path.rglob("*"))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["", ""], ("lm_adapter = 'toy'", "tasks/arithmetic.jsonl")),
        (["openai:small", "http://localhost:1/v1", "function"], ("lm_adapter = 'app'", "tests/test_evals.py")),
        (["anthropic:m", "rows.csv"], ("lm_adapter = 'anthropic:m'", "tasks/rows.yaml")),
    ],
)
def test_a_person_at_a_terminal_is_asked(empty: Project, typed: Sequence[str], expected: Sequence[str]) -> None:
    empty.write("rows.csv", ROWS)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "pytest_lmeval.cli", "init"]
    with subprocess.Popen(command, cwd=empty.path, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        os.write(master, "".join(f"{line}\n" for line in typed).encode())
        assert 0 == process.wait(60)
    told = os.read(master, 1 << 16).decode()
    os.close(master)

    assert "Where is the model?" in told
    assert all(part in told for part in expected), told
