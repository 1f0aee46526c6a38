"""The docs say what the code does: their examples run, their messages are the real ones, their links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pytest_lmeval
from pytest_lmeval.cli import COMMANDS
from pytest_lmeval.formats.jsonl import read_records
from pytest_lmeval.loading import default_registry
from pytest_lmeval.postprocess import RULES
from tests.conftest import Project
from tests.tables import each_row

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")),
    *sorted((ROOT / "docs").glob("*.md")),
]
TASKS = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
ADAPTERS = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
BAD_LINES = re.findall(r"```jsonl\n(.*?)\n```\n```text\n(.*?)\n```", TASKS, re.DOTALL)


@each_row(("lines", "message"), BAD_LINES)
def test_a_bad_line_in_the_docs_gives_the_message_beside_it(lines: str, message: str) -> None:
    errors = read_records(lines.encode(), default_registry(entry_points=False)).errors

    assert [message] == [error.at("tasks/t.jsonl") for error in errors]


def test_each_profile_of_a_server_has_options_that_its_adapter_takes() -> None:
    section = (ROOT / "docs" / "recipes.md").read_text("utf-8").partition("### Profiles by server\n")[2]
    text = section.partition("```toml\n")[2].partition("```")[0]
    profiles = tomllib.loads(text)["tool"]["lmeval"]["adapters"]
    for profile in profiles.values():
        adapter = profile.pop("adapter").partition(":")[0]
        import_module(f"pytest_lmeval.adapters.{adapter}.options").read_options(profile)
    assert ["vllm", "sglang", "llamacpp", "ollama", "tgi", "openrouter", "azure", "bedrock", "gemini"] == [*profiles]


def test_the_docs_show_a_bad_line_for_every_rule() -> None:
    rules = {"bad_json", "bad_type", "bad_value", "missing_required", "unknown_field", "illegal_pair"}

    assert rules | {"embedded_few_shot", "duplicate_task_id"} == {message.split()[1] for _, message in BAD_LINES}


@each_row("page", PAGES)
def test_every_good_record_in_the_docs_is_valid(page: Path) -> None:
    registry = default_registry(entry_points=False)
    registry.add_metric("begins_politely", lambda prediction, targets, extras: 0.0)
    blocks = re.findall(r"```json\n(.*?)\n```", page.read_text(encoding="utf-8"), re.DOTALL)
    # A block of several records begins with their defaults.
    records = [block for block in blocks if block.startswith('{"defaults"') or "targets" in json.loads(block)]

    assert [] == [errors for block in records if (errors := read_records(block.encode(), registry).errors)]


def test_the_docs_name_every_rule_and_metric() -> None:
    registry = default_registry(entry_points=False)
    missing = [name for name in (*RULES, *registry.metrics) if f"`{name}`" not in TASKS]

    assert missing == []


def test_the_sixth_task_of_the_docs_runs_with_its_own_metric(project: Project) -> None:
    section = ADAPTERS.partition("## A sixth task")[2]
    conftest, record = re.findall(r"```(?:python|json)\n(.*?)\n```", section, re.DOTALL)[:2]
    project.write("conftest.py", conftest)
    polite = "class Polite:\n    name = 'polite'\n    def generate(self, prompts): return ['Hello!'] * len(prompts)"
    project.write("polite.py", polite)
    project.write("tasks/greeting.jsonl", record)

    result = project.run_pytest("tasks", "--lm-adapter=polite:Polite")

    result.assert_outcomes(passed=1)
    board = project.board()
    assert ["begins_politely", 1.0] == [board["tasks"][0]["metric"], board["overall_score"]]


def test_the_wrapping_conftest_of_the_docs_changes_what_is_scored(project: Project) -> None:
    section = ADAPTERS.partition("## In a conftest")[2]
    project.write("conftest.py", re.findall(r"```python\n(.*?)\n```", section, re.DOTALL)[0])
    record = {"id": "a", "prompt": "Echo: pick one letter.", "targets": ["I DO NOT KNOW."], "metric": "exact_match"}
    project.task("tasks/loud.jsonl", record)

    result = project.run_pytest("tasks", "--lm-adapter=toy")

    result.stdout.fnmatch_lines(["*leaderboard: toy.v1, shouting*"])
    result.assert_outcomes(passed=1)


def test_the_ten_line_adapter_of_the_docs_answers_from_a_real_server(project: Project) -> None:
    code = re.findall(r"```python\n(# my_models\.py\n.*?)\n```", ADAPTERS, re.DOTALL)[0]
    project.write("my_models.py", code)
    record = {"id": "a", "prompt": "Say yes.", "targets": ["yes"], "metric": "exact_match"}
    project.task("tasks/one.jsonl", record)
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        url = f"url=http://127.0.0.1:{port}/answer"
        result = project.run_pytest("tasks", "--lm-adapter=my_models:Server", "--lm-adapter-arg", url)
    finally:
        server.kill()
        server.communicate()

    result.assert_outcomes(passed=1)


def test_the_confidence_of_the_docs_is_on_the_board(project: Project) -> None:
    code = re.findall(r"### Confidence\n.*?```python\n(.*?)\n```", ADAPTERS, re.DOTALL)[0]
    project.write("mine.py", code)
    record = {"id": "a", "prompt": "Latvia's capital?", "targets": ["Riga"], "metric": "exact_match"}
    project.task("tasks/one.jsonl", record)
    project.run_pytest("tasks", "--lm-adapter=mine:Model").assert_outcomes(passed=1)
    board = project.board()

    assert {"ece": pytest.approx(0.2), "brier": pytest.approx(0.04), "n": 1} == board["calibration"]


def test_the_page_of_the_command_names_every_command() -> None:
    lists = (ROOT / "docs" / "commands.md").read_text("utf-8").partition("## init")[0]
    first = re.findall(r"`lmeval (\w+)", lists)
    more = [name for line in lists.splitlines() if line.startswith("| [`") for name in re.findall(r"`(\w+)`", line)]

    assert set(COMMANDS) == {*first, *more} & set(COMMANDS)
    assert set(first) <= set(COMMANDS)


def test_each_message_of_the_troubleshooting_page_is_one_of_the_program() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    sources = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "pytest_lmeval").rglob("*.py")))
    # A string over several lines is one; what is filled in is left out of the page.
    literals = re.sub(r"\{[^{}\n]*\}", "...", re.sub(r'"\s*\n\s*f?"', "", sources))

    assert 28 == len(messages)
    assert [] == [message for message in messages if message not in literals]


_SERVER = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        prompts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(["yes"] * len(prompts)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_the_page_on_python_names_every_public_name_and_runs(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [] == [name for name in pytest_lmeval.__all__ if not re.search(rf"`{name}[`(]", page)]
    first, second = re.findall(r"```python\n(.*?)\n```", page, re.DOTALL)
    pytester.mkdir("tasks").joinpath("t.jsonl").write_text(
        '{"prompt": "2 + 2 =", "targets": ["4"], "metric": "exact_match"}\n', encoding="utf-8"
    )
    baseline = 'write_leaderboard(board, "baseline.json", include_per_example=True)'
    done = pytester.runpython_c("\n".join([first, baseline, second, "print(decision.reasons)"]))
    done.stdout.fnmatch_lines(["pass *", "*the baseline's one example was compared*"])
