"""The GitHub Action: its steps are executed as a runner would, for pull requests of the repository and of a fork."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.yaml.parse import parse_yaml
from tests import needs

pytestmark = pytest.mark.again
ROOT = Path(__file__).parents[1]
ACTION = parse_yaml((ROOT / "action.yml").read_bytes())
MODEL = """
class Model:
    name = "own.v1"

    def generate(self, prompts):
        return [prompt.rpartition("say: ")[2] for prompt in prompts]
"""
MARK = "<!-- lmeval: evals -->\n"
WROTE = {"folder": "reports", "wrote": "true"}
WORSE = MODEL.replace('rpartition("say: ")[2]', "upper() + '!'")


@dataclass
class GitHub:
    """The part of GitHub's interface that comments need, on loopback; ``status`` other than 200 refuses to write."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    address: str = ""

    @contextmanager
    def serving(self) -> Iterator[None]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                hub.asked.append((self.command, self.path))
                assert "Bearer token-of-the-job" == self.headers["Authorization"]
                length = int(self.headers["Content-Length"] or 0)
                fields = json.loads(self.rfile.read(length) or b"{}")
                body = json.dumps(hub.respond(self.command, self.path, fields)).encode()
                self.send_response(hub.status if self.command != "GET" else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - the names that the server calls

            def log_message(self, *_: object) -> None: ...

        return Handler

    def respond(self, method: str, path: str, fields: dict[str, Any]) -> Any:
        if method == "GET":
            first = (int(path.partition("&page=")[2]) - 1) * 100
            return self.comments[first : first + 100]
        if self.status != 200:
            return {"message": "Resource not accessible by integration"}
        if method == "POST":
            self.comments.append({"id": len(self.comments) + 1, "user": {"type": "Bot"}, **fields})
            return self.comments[-1]
        [found] = [each for each in self.comments if str(each["id"]) == path.rpartition("/")[2]]
        found.update(fields)
        return found


@dataclass
class Job:
    """A job whose one step uses the action, on a runner that keeps artifacts in a folder."""

    workspace: Path
    hub: GitHub
    event: dict[str, Any]
    environment: dict[str, str]
    artifacts: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    def run(self, **inputs: str) -> int:
        """Run the steps of the action; return 0, or the status of the first step that failed."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        known = {name: self._filled(str(each.get("default", "")), {}) for name, each in ACTION["inputs"].items()}
        assert given.keys() <= known.keys()
        values = {**known, "python-version": "", **given}
        result = 0
        for step in ACTION["runs"]["steps"]:
            condition = str(step.get("if", "success()"))
            if (result and "cancelled()" not in condition) or not self._holds(condition, values):
                continue
            filled = {name: self._filled(str(each), values) for name, each in step.get("env", {}).items()}
            status = self._uses(step, values) if "uses" in step else self._shell(step, filled)
            result = result or status
        return result

    def _holds(self, condition: str, values: dict[str, str]) -> bool:
        """Tell whether a condition of the action holds: comparisons of inputs, joined by ``&&``."""
        for part in condition.removeprefix("${{").removesuffix("}}").split("&&"):
            name, operator, wanted = re.fullmatch(r"(\S+?)(?: ([!=]=) '(\S*)')?", part.strip()).groups()  # type: ignore[union-attr]  # a condition of another form fails the test
            found = name if name.startswith("steps.") else f"inputs.{name.removeprefix('inputs.')}"
            if operator and (self._filled(f"${{{{ {found} }}}}", values) == wanted) != (operator == "=="):
                return False
        return True

    def _filled(self, text: str, values: dict[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            kind, *names = found[1].split(".")
            if kind == "github":
                return {"token": "token-of-the-job"}[names[0]]
            return values[names[0]] if kind == "inputs" else self.outputs[names[0]].get(names[2], "")

        return re.sub(r"\$\{\{ (\S+) \}\}", value, text)

    def _shell(self, step: dict[str, Any], filled: dict[str, str]) -> int:
        if "install.py" in step["run"]:  # what it would do is tested by itself
            return 0
        output, event = self.workspace.parent / "output", self.workspace.parent / "event.json"
        output.write_text("")
        event.write_text(json.dumps(self.event))
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "shop/support",
            "GITHUB_API_URL": self.hub.address,
            "RUNNER_TEMP": str(self.workspace.parent),
            "PYTEST_ADDOPTS": "-pno:asyncio -pno:randomly",
            **self.environment,
            **filled,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)
        self.log += done.stdout + done.stderr
        lines = output.read_text().splitlines()
        self.outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
        return done.returncode

    def _uses(self, step: dict[str, Any], values: dict[str, str]) -> int:
        assert re.search(r"@[0-9a-f]{40}$", step["uses"]), "an action of others is named by its commit"
        fields = {name: self._filled(str(each), values) for name, each in step["with"].items()}
        if "upload-artifact" in step["uses"] and (self.workspace / fields["path"].split()[0]).exists():
            folder, *others = fields["path"].split()
            without = shutil.ignore_patterns(*[Path(other.removeprefix("!")).name for other in others])
            shutil.copytree(self.workspace / folder, self.artifacts / fields["name"], ignore=without)
        if "download-artifact" in step["uses"]:
            for each in self.artifacts.glob(fields["pattern"]):
                shutil.copytree(each, self.workspace / fields["path"] / each.name)
        return 0


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a repository whose main branch has tasks, a model and a baseline, and a branch with a worse model."""
    if shutil.which("git") is None:
        needs.lacking("git", "needs git")
    folder = tmp_path_factory.mktemp("action") / "origin"
    (folder / "tasks").mkdir(parents=True)
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    rows = [{"id": word, "prompt": f"say: {word}", "targets": [word], "metric": "exact_match"} for word in words]
    (folder / "tasks/words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "model.py").write_text(MODEL)
    (folder / "pytest.ini").write_text("[pytest]\nlm_adapter = model:Model\n")
    (folder / ".gitignore").write_text("reports/\n__pycache__/\n.pytest_cache/\n")
    _git(folder, "init", "--quiet")
    job = _job(folder, GitHub())
    assert 0 == job.run(args="--lm-baseline=baseline.json --lm-update-baseline", comment="false"), job.log
    assert "no baseline.json here: compared with nothing" in job.log
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "The tasks")
    _git(folder, "checkout", "--quiet", "-b", "worse")
    (folder / "model.py").write_text(WORSE)
    _git(folder, "commit", "--quiet", "-am", "Another model")
    _git(folder, "checkout", "--quiet", "main")
    return folder


def _job(workspace: Path, hub: GitHub, *, fork: bool = False, **environment: str) -> Job:
    event = {"pull_request": {"number": 7, "head": {"repo": {"fork": fork}}}} if environment else {}
    artifacts = workspace.parent / "artifacts"
    return Job(workspace, hub, event, environment, artifacts)


@pytest.fixture
def hub() -> Iterator[GitHub]:
    found = GitHub()
    with found.serving():
        yield found


PullRequest = Callable[..., Job]


@pytest.fixture
def pull_request(repository: Path, tmp_path: Path, hub: GitHub) -> PullRequest:
    """Provide a job for a pull request of a branch, in a clone of its own."""

    def make(branch: str, *, fork: bool = False, **environment: str) -> Job:
        workspace = tmp_path / f"clone-{len([*tmp_path.iterdir()])}" / "work"
        workspace.parent.mkdir()
        _git(tmp_path, "clone", "--quiet", "--depth=1", f"--branch={branch}", f"file://{repository}", str(workspace))
        job = _job(workspace, hub, fork=fork, GITHUB_BASE_REF="main", **environment)
        job.artifacts = tmp_path / "artifacts"
        return job

    return make


def test_a_worse_pull_request_is_red_and_says_so_in_one_comment_kept_up_to_date(
    pull_request: PullRequest, hub: GitHub
) -> None:
    hub.comments += [
        {"id": 90 + number, "user": {"type": "User"}, "body": "<!-- lmeval: evals -->"} for number in (0, 1)
    ]
    job = pull_request("worse")
    assert 1 == job.run(), job.log
    assert {"exit-code": "1", "verdict": "regression", "artifact": "evals", **WROTE} == job.outputs["run"]
    shutil.rmtree(job.artifacts)
    assert 1 == job.run(), job.log

    assert ["GET", "POST", "GET", "PATCH"] == [method for method, _ in hub.asked]
    [comment] = [each for each in hub.comments if each["user"]["type"] == "Bot"]
    assert comment["body"].startswith("<!-- lmeval: evals -->\n")
    assert "regression" in comment["body"].lower()
    assert (job.artifacts / "evals/report.html").exists()


def test_a_pull_request_is_compared_with_the_branch_it_goes_into_and_not_with_a_baseline_of_its_own(
    pull_request: PullRequest,
) -> None:
    job = pull_request("worse")
    (job.workspace / "baseline.json").write_text("{}")
    assert 1 == job.run(), job.log
    assert "this pull request changes baseline.json; it is compared with the one on main" in job.log
    assert "regression" == job.outputs["run"]["verdict"]


@pytest.mark.slow
def test_a_pull_request_as_good_as_its_base_is_green(pull_request: PullRequest, hub: GitHub) -> None:
    job = pull_request("main")
    assert 0 == job.run(), job.log
    assert {"exit-code": "0", "verdict": "pass", "artifact": "evals", **WROTE} == job.outputs["run"]


def test_a_fork_has_no_secrets_and_may_not_comment_and_the_job_says_both(
    pull_request: PullRequest, hub: GitHub
) -> None:
    hub.status = 403
    job = pull_request("main", fork=True, OPENAI_API_KEY="")
    assert 4 == job.run(args="--lm-adapter=openai:gpt"), job.log
    assert "::error title=lmeval::a pull request from a fork has no secrets" in job.log
    assert [] == hub.comments
    assert "" == job.outputs["run"]["verdict"]

    job = pull_request("main", fork=True)
    assert 0 == job.run(), job.log
    assert "::warning title=lmeval::no comment: the token may not write comments" in job.log


@pytest.mark.slow
@pytest.mark.parametrize(("branch", "code", "verdict"), [("main", 0, "pass"), ("worse", 1, "regression")])
def test_shards_are_joined_and_judged_by_a_last_job(
    pull_request: PullRequest, hub: GitHub, branch: str, code: int, verdict: str
) -> None:
    for shard in ("1/2", "2/2"):
        job = pull_request(branch)
        job.run(shard=shard)
        assert f"evals-shard-{shard.replace('/', '-of-')}" == job.outputs["run"]["artifact"], job.log
    assert [] == hub.comments
    last = pull_request(branch)

    assert code == last.run(merge="true"), last.log
    assert {"exit-code": str(code), "verdict": verdict, "artifact": "evals", **WROTE} == last.outputs["run"]
    assert 1 == len(hub.comments)


def test_shards_of_several_models_are_joined_and_compared_with_the_baselines_of_the_base_branch(
    pull_request: PullRequest, hub: GitHub
) -> None:
    args = "--lm-adapter=good=model:Model --lm-adapter=worse=worse:Model"

    def job() -> Job:
        made = pull_request("main")
        (made.workspace / "worse.py").write_text(WORSE)
        return made

    before = job()
    before.environment.pop("GITHUB_BASE_REF")
    good = "--lm-adapter=good=model:Model --lm-adapter=worse=model:Model --lm-baseline=baselines --lm-update-baseline"
    assert 0 == before.run(args=good, comment="false", baseline="baselines"), before.log
    shutil.rmtree(before.artifacts)
    _git(before.workspace, "add", "baselines")
    _git(before.workspace, "commit", "--quiet", "-m", "Baselines")
    for shard in ("1/2", "2/2"):
        part = _of(job(), before.workspace)
        part.run(args=args, shard=shard, baseline="baselines")
        verdicts = dict(each.split("=") for each in part.outputs["run"]["verdict"].split())
        assert ["good", "worse"] == [*verdicts], part.log
    assert [] == hub.comments
    last = _of(job(), before.workspace)

    assert 1 == last.run(merge="true", baseline="baselines"), last.log
    assert {"exit-code": "1", "verdict": "good=pass worse=regression", "artifact": "evals", **WROTE} == last.outputs[
        "run"
    ]
    [comment] = hub.comments
    assert comment["body"].startswith("<!-- lmeval: evals -->\n# Comparison: failed")
    assert ["worse"] == re.findall("<summary>(good|worse)</summary>", comment["body"])
    assert (last.artifacts / "evals/report.html").exists()


def _of(job: Job, base: Path) -> Job:
    """Return the job with another repository to fetch the base branch from."""
    _git(job.workspace, "remote", "set-url", "origin", f"file://{base}")
    return job


def test_a_last_job_without_shards_is_red_and_says_why(pull_request: PullRequest, hub: GitHub) -> None:
    job = pull_request("main")
    (job.workspace / "reports").mkdir()
    (job.workspace / "reports/leaderboard.md").write_text("# Evals passed: of another step")
    assert 1 == job.run(merge="true"), job.log
    assert "::error title=lmeval::no artifact evals-shard-*" in job.log
    assert [f"{MARK}# No report: evals\n\nthe run did not start; the log of the job says why\n"] == _said(hub)


def _said(hub: GitHub) -> list[str]:
    return [comment["body"] for comment in hub.comments]


def test_a_step_that_ends_before_it_has_an_example_takes_no_report_of_an_earlier_one_for_its_own(
    pull_request: PullRequest, hub: GitHub
) -> None:
    job = pull_request("main")
    assert 0 == job.run(name="one"), job.log
    (job.workspace / "bad").mkdir()
    (job.workspace / "bad/t.jsonl").write_text('{"prompt": 1}\n')
    kept = (job.workspace / "reports/leaderboard.json").read_bytes()

    for number, inputs in enumerate(
        [{"args": "--lm-adapter=openai:gpt"}, {"paths": "bad"}, {"paths": "tasks -k no-example"}]
    ):
        code = job.run(name=f"other-{number}", **inputs)
        assert code in (2, 4, 5), job.log
        assert {"exit-code": str(code), "verdict": "", "folder": "", "wrote": "false"} == {
            name: value for name, value in job.outputs["run"].items() if name != "artifact"
        }
        how = f"the run ended with exit code {code} and wrote no report; the log of the job says why"
        assert f"<!-- lmeval: other-{number} -->\n# No report: other-{number}\n\n{how}\n" == _said(hub)[-1]
    assert kept == (job.workspace / "reports/leaderboard.json").read_bytes()
    assert ["one"] == [each.name for each in job.artifacts.iterdir()]


def test_each_of_two_steps_says_what_its_own_run_came_to(pull_request: PullRequest, hub: GitHub) -> None:
    job = pull_request("worse")
    (job.workspace / "good.py").write_text(MODEL)
    two = "--lm-adapter=good=good:Model --lm-adapter=worse=model:Model"
    assert 1 == job.run(name="two", args=two), job.log
    assert 0 == job.run(name="alone", args="--lm-adapter=good:Model"), job.log
    assert 1 == job.run(name="some", args="-k 'one or two' --lm-gate=examples"), job.log

    headings = [re.split("[:(]", body.splitlines()[1])[0] for body in _said(hub)]
    assert ["# Comparison", "# Evals passed", "# Evals failed"] == headings
    assert "reports/selection" == job.outputs["run"]["folder"]
    assert {"two", "alone", "some"} == {each.name for each in job.artifacts.iterdir()}
    assert not (job.artifacts / "alone/previous").exists()


def test_the_name_of_the_base_branch_is_no_option_of_git(pull_request: PullRequest) -> None:
    job = pull_request("main")
    job.environment["GITHUB_BASE_REF"] = "--upload-pack=touch OWNED"
    _git(job.workspace, "remote", "set-url", "origin", str(job.workspace))
    assert 1 == job.run(), job.log
    assert "could not be fetched" in job.log
    assert not (job.workspace / "OWNED").exists()


def test_what_is_installed_is_this_package_and_the_project(tmp_path: Path) -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import install; print(install.command()[4:])"

    def installed(**environment: str) -> str:
        command = [sys.executable, "-c", script, str(ROOT / "action")]
        environment = {**os.environ, **environment}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert str([str(ROOT)]) == installed()
    (tmp_path / "requirements.txt").touch()
    assert str([f"{ROOT}[hf]", "-r", "requirements.txt"]) == installed(EXTRAS="hf")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert str([str(ROOT), "-e", "."]) == installed()
    assert str([str(ROOT), "-e", "./app", "two words"]) == installed(INSTALL="-e ./app 'two words'")
