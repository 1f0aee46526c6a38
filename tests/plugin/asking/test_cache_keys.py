"""``--lm-cache`` and ``--lm-resume`` give no model the answers of another one, and no sample those of another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adapters.openai.scripted_server import says, serving
from tests.conftest import BOTH, Project
from tests.needs import module

CACHE = "--lm-cache=answers"
MODEL = """
class Model:
    def __init__(self, **options):
        self.options = options

    def generate(self, prompts):
        return [{answer} for _ in prompts]
"""
FROM_ENVIRONMENT = """
import os
import pytest

class My:
    def __init__(self, model):
        self.model = model

    def generate(self, prompts):
        return ["yes" if self.model == "good" else "no" for _ in prompts]

@pytest.fixture(scope="session")
def lm_adapter():
    return My(os.environ["MODEL"])
"""


@pytest.fixture
def words(project: Project) -> Project:
    records = [{"id": f"e{n}", "prompt": f"q{n}", "targets": ["yes"], "metric": "exact_match"} for n in range(4)]
    project.task("tasks/words.jsonl", *records)
    return project


def score(project: Project, *options: str) -> tuple[float, int]:
    """Return the score of a run, and how many of its answers came out of the cache."""
    project.run_pytest("--lm-gate=none", *options)
    board = project.board()
    return board["overall_score"], board["spent"].get("cached", 0)


def test_models_of_one_class_name_in_one_run_are_two(words: Project) -> None:
    words.write("m1.py", MODEL.format(answer="'yes'"))
    words.write("m2.py", MODEL.format(answer="'no'"))
    for cached in (None, 4):
        words.run_pytest("--lm-adapter=a=m1:Model", "--lm-adapter=b=m2:Model", CACHE, "--lm-gate=none")
        boards = [json.loads((words.path / f"reports/{label}/leaderboard.json").read_text()) for label in "ab"]
        assert [(1.0, cached), (0.0, cached)] == [
            (board["overall_score"], board["spent"].get("cached")) for board in boards
        ]


def test_a_model_that_a_fixture_makes_is_not_cached_unless_it_has_a_fingerprint(
    words: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    words.write("conftest.py", FROM_ENVIRONMENT)
    for model, expected in (("good", 1.0), ("bad", 0.0)):
        monkeypatch.setenv("MODEL", model)
        ran = words.run_pytest("tasks", CACHE, "--lm-gate=tasks", "--lm-min-score=words=0.9")
        ran.stdout.fnmatch_lines(["not cached: My: it was made in Python and has no attribute fingerprint*"])
        assert (int(model == "bad"), expected) == (ran.ret, words.board()["overall_score"])
    ran = words.run_pytest("tasks", CACHE, "--lm-cache-mode=read-only")
    ran.stdout.fnmatch_lines(
        ["*--lm-cache-mode=read-only: the cache cannot identify My; give it the attribute fingerprint*"]
    )
    assert 4 == words.board()["counts"]["errors"]
    words.write("conftest.py", FROM_ENVIRONMENT.replace("self.model = model", "self.model = self.fingerprint = model"))
    found = []
    for model in ("good", "bad", "good"):
        monkeypatch.setenv("MODEL", model)
        found.append(score(words, "tasks", CACHE))
    assert [(1.0, 0), (0.0, 0), (1.0, 4)] == found


def test_an_edited_adapter_an_edited_helper_and_another_object_are_asked(
    words: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    words.write("helper.py", "def answer():\n    return 'yes'\n")
    words.write(
        "m.py", f"from helper import answer\n{MODEL.format(answer='answer()')}\nsmall = Model()\nbig = Model()\n"
    )
    assert [(1.0, 0), (1.0, 4)] == [score(words, CACHE, "--lm-adapter=m:Model") for _ in range(2)]
    words.write("helper.py", "def answer():\n    return 'no'\n")
    assert (0.0, 0) == score(words, CACHE, "--lm-adapter=m:Model")
    words.write("m.py", MODEL.format(answer="'maybe'"))
    assert (0.0, 0) == score(words, CACHE, "--lm-adapter=m:Model")
    words.write(
        "m.py",
        f"{MODEL.format(answer='self.says')}\nsmall, big = Model(), Model()\nsmall.says, big.says = 'yes', 'no'\n",
    )
    assert [(1.0, 0), (0.0, 0)] == [score(words, CACHE, f"--lm-adapter=m:{name}") for name in ("small", "big")]
    words.write(
        "own.py",
        f"import os\n{MODEL.format(answer='self.says')}\n    says = property(lambda self: self.model)\n".replace(
            "self.options = options", "self.model = os.environ['MODEL']"
        ),
    )
    for model, expected in (("yes", 1.0), ("no", 0.0)):
        monkeypatch.setenv("MODEL", model)
        assert (expected, 0) == score(words, CACHE, "--lm-adapter=own:Model")


CONFIGURED = """
import os
from pathlib import Path

class Config:
    def __init__(self, owner):
        self.owner, self.weights = owner, Path(os.environ["MODEL"])

class Model:
    def __init__(self):
        self.configs = [Config(self)]

    def generate(self, prompts):
        return [self.configs[0].weights.name for _ in prompts]
"""


def test_a_model_is_known_by_the_objects_of_the_project_that_it_holds(
    words: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    words.write("m.py", CONFIGURED)
    found = []
    for model in ("yes", "no", "yes"):
        monkeypatch.setenv("MODEL", model)
        found.append(score(words, CACHE, "--lm-adapter=m:Model"))
    assert [(1.0, 0), (0.0, 0), (1.0, 4)] == found


def test_texts_after_words_like_key_are_part_of_what_is_asked_and_keys_are_not(words: Project) -> None:
    words.write("m.py", MODEL.format(answer="'yes' if 'yes' in str(self.options) else 'no'"))
    systems = [
        ('{"key": "yes or no"}', '{"key": "no"}'),
        ("token=yes", "token=no"),
        ("password: yes", "password: no"),
    ]
    for pair in systems:
        for text, expected in zip(pair, (1.0, 0.0), strict=True):
            assert (expected, 0) == score(words, CACHE, "--lm-adapter=m:Model", f"--lm-adapter-arg=system={text}")
    assert [(1.0, 0), (1.0, 4)] == [
        score(words, CACHE, "--lm-adapter=m:Model", "--lm-adapter-arg=token=yes", f"--lm-adapter-arg=api_key={key}")
        for key in ("one", "two")
    ]


DRAWS = """
import itertools, os
from pytest_lmeval import Completion

class Draws:
    numbers = itertools.count(100 * os.getpid())

    def __init__(self, temperature=0):
        self.temperature = temperature

    async def complete(self, request):
        return Completion(str(next(self.numbers)))
"""
VOTE = """
from pytest_lmeval import eval_task

@eval_task("vote", data=[{"id": "a", "q": "x"}, {"id": "b", "q": "x"}])
async def test_vote(row, lm):
    said = [(await lm.ask(row["q"])).text for _ in range(4)]
    lm.note("said", said)
    lm.score("distinct", len(set(said)) / 4)
"""


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize("warm", [True, False])
def test_equal_requests_of_an_example_are_samples_of_their_own(project: Project, processes: str, warm: bool) -> None:
    project.write("m.py", DRAWS)
    project.write("test_vote.py", VOTE)
    options = ["--lm-adapter=m:Draws", CACHE, "--lm-include-per-example", processes]
    if warm:
        options += ["--lm-adapter-arg=temperature=0.7", "--lm-cache-mode=sampled"]
    said = []
    for number in range(2):
        project.run_pytest("test_vote.py", *options)
        assert 1.0 == project.board()["overall_score"]
        said.append([record["details"]["notes"]["said"] for record in project.examples().values()])
        assert not number or 8 == project.board()["spent"]["cached"]
    # Examples share no sample; without a temperature an answer is the answer to the question, whoever asks.
    assert not warm or (said[0] == said[1] and len({*said[0][0], *said[0][1]}) == 8)
    assert warm or said[1][0] == said[1][1]


def test_a_resumed_vote_goes_on_with_the_samples_after_those_it_has(project: Project) -> None:
    project.write("m.py", DRAWS)
    options = ["test_vote.py", "--lm-adapter=m:Draws", "--lm-adapter-arg=temperature=0.7", CACHE]
    project.write("test_vote.py", VOTE.replace("range(4)]", "range(2)]; raise RuntimeError"))
    project.run_pytest(*options, "--lm-cache-mode=sampled")
    project.write("test_vote.py", VOTE)
    project.run_pytest(*options, "--lm-cache-mode=sampled", "--lm-resume")
    assert 1.0 == project.board()["overall_score"]


def test_a_profile_and_its_parts_are_one_model(words: Project) -> None:
    words.write("m.py", MODEL.format(answer="'yes'"))
    words.write("pyproject.toml", '[tool.lmeval.adapters.mine]\nadapter = "m:Model"\nsystem = "s"\n')
    assert (1.0, 0) == score(words, CACHE, "--lm-adapter=mine")
    assert (1.0, 4) == score(words, CACHE, "--lm-adapter=m:Model", "--lm-adapter-arg=system=s")


def test_a_fingerprint_that_is_no_text_is_refused(words: Project) -> None:
    words.write("m.py", MODEL.format(answer="'yes'") + "\n    def fingerprint(self):\n        return 'x'\n")
    ran = words.run_pytest("--lm-adapter=m:Model", CACHE)
    assert 4 == ran.ret
    (ran.stderr if "fingerprint" in str(ran.stderr) else ran.stdout).fnmatch_lines(
        ["*adapter Model: fingerprint is method; expected a text; a method needs @property*"]
    )


def test_a_secret_is_not_in_the_cache(words: Project) -> None:
    words.write("m.py", MODEL.format(answer="'yes, ' + self.options['api_key']"))
    options = ("--lm-adapter=m:Model", "--lm-adapter-arg=api_key=abcdefghijklmnop1234", CACHE)
    assert [0, 4] == [score(words, *options)[1] for _ in range(2)]
    for path in Path(words.path / "answers").iterdir():
        assert b"abcdefghijklmnop1234" not in path.read_bytes()


ASKS = """
from pytest_lmeval import eval_task

@eval_task("asks", data=[{"id": "a"}])
async def test_asks(row, lm):
    lm.score("yes", (await lm.ask("well?")).text == "yes")
"""


def test_a_resumed_run_takes_no_answer_of_another_model(words: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    words.write("conftest.py", FROM_ENVIRONMENT)
    words.write("test_asks.py", ASKS)
    options = ("tasks", "test_asks.py", "--lm-resume")
    for model, expected in (("good", 1.0), ("bad", 0.0), ("bad", 0.0)):
        monkeypatch.setenv("MODEL", model)
        assert expected == score(words, *options)[0]
    ran = words.run_pytest("--lm-gate=none", *options)
    ran.stdout.fnmatch_lines(["resumed: reused 5 answer(s) of *"])


def test_a_resumed_run_asks_an_edited_adapter_again(words: Project) -> None:
    options = ("--lm-adapter=m:Model", "--lm-resume")
    words.write("m.py", MODEL.format(answer="'yes'"))
    assert [1.0, 1.0] == [score(words, *options)[0] for _ in range(2)]
    words.write("m.py", MODEL.format(answer="'not yes'"))
    ran = words.run_pytest("--lm-gate=none", *options)
    assert 0.0 == words.board()["overall_score"]
    ran.stdout.fnmatch_lines(["resumed nothing: *an adapter with other code, attributes or fingerprint"])


def test_a_resumed_run_asks_a_built_in_adapter_of_another_fingerprint_anew(words: Project) -> None:
    patch = "from pytest_lmeval.adapters.toy import ToyAdapter\nToyAdapter.fingerprint = {!r}\n"
    for mark, said in (
        ("weights.1", "*nothing to resume*"),
        ("weights.1", "*resumed: reused 4 answer(s) of the run of *"),
        ("weights.2", "*resumed nothing: the 4 result(s) in the ledger are of *fingerprint*"),
        ("weights.2", "*resumed: reused 4 answer(s) of the run of *"),
    ):
        words.write("conftest.py", patch.format(mark))
        words.run_pytest("--lm-adapter=toy", "--lm-gate=none", "--lm-resume").stdout.fnmatch_lines([said])


JUDGED = """
from pytest_lmeval import eval_task

@eval_task("judged", data=[{"id": str(n)} for n in range(5)])
async def test_judged(row, lm):
    said = await lm.ask("well, " + row["id"])
    lm.score("yes", await lm.judge(f"Is {row['id']} yes?", said.text) == "yes")
"""
IMPORTS = "import decimal, statistics, csv, smtplib, wave, xmlrpc.client, http.server, imaplib, mailbox, functools\n"


@pytest.mark.parametrize("processes", BOTH)
def test_what_else_is_imported_decides_nothing(project: Project, processes: str) -> None:
    module("aiohttp")
    project.write("test_judged.py", JUDGED)
    with serving([says("yes")]) as server:
        profile = (
            f'[tool.lmeval.adapters.mine]\nadapter = "openai:m"\napi_key_env = ""\nbase_url = "{server.base_url}"\n'
        )
        project.write("pyproject.toml", profile)
        options = ("test_judged.py", "--lm-adapter=mine", "--lm-judge=mine", processes)
        project.run_pytest(*options, CACHE).stdout.fnmatch_lines(["cache: 0 of 10 answer(s) found*"])
        project.write("conftest.py", IMPORTS)
        project.run_pytest(*options, CACHE).stdout.fnmatch_lines(["cache: 10 of 10 answer(s) found*"])
        asked = len(server.requests)
        ledger = project.path / "reports/ledger.jsonl"
        head, *lines = ledger.read_text().splitlines(keepends=True)
        ledger.write_text(head + "".join(lines[:3]))
        (project.path / "conftest.py").unlink()
        ran = project.run_pytest(*options, "--lm-resume")
    assert (0, 10, 14) == (ran.ret, asked, len(server.requests)), ran.stdout.str()
