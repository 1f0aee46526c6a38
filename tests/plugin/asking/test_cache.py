"""``--lm-cache``: nothing is asked twice, whichever run, worker or judge asks, and what is not there is said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import BOTH, Project
from tests.needs import module

# It answers with a number that grows with every request, so that an answer that was asked for again is another one.
MODEL = """
import json, os
from pytest_lmeval import Completion

HERE = os.path.dirname(__file__)

class Counting:
    name = "counting.v1"

    def __init__(self, **options):
        self.options = options

    def generate_requests(self, requests):
        with open(os.path.join(HERE, "asked.txt"), "a") as file:
            file.writelines(json.dumps(one.text) + "\\n" for one in requests)
        with open(os.path.join(HERE, "asked.txt")) as file:
            count = len(file.readlines())
        return [Completion(f"{one.text} {count}", prompt_tokens=3, cost=0.5) for one in requests]

class Sure(Counting):
    name = "sure.v1"
    fingerprint = "abc"
"""


@pytest.fixture
def counting(project: Project) -> Project:
    project.usual = ("--lm-adapter=counting:Counting", "--lm-gate=none", "--lm-include-per-example")
    project.write("counting.py", MODEL)
    records = [{"id": f"e{n}", "prompt": f"q{n}", "targets": [f"q{n} 1"], "metric": "exact_match"} for n in range(6)]
    project.task("tasks/words.jsonl", *records)
    return project


def outputs(project: Project) -> list[str]:
    return [record["output"] for record in project.examples().values()]


CACHE = "--lm-cache=answers"


@pytest.mark.parametrize("processes", BOTH)
def test_a_second_run_asks_nothing_and_says_what_it_saved(counting: Project, processes: str) -> None:
    first = counting.run(CACHE, processes)
    first.stdout.fnmatch_lines(["*cache *answers (use)*", "cache: 0 of 6 answer(s)*"])
    said, spent = outputs(counting), counting.board()["spent"]
    assert (6, 3.0) == (len(counting.asked(forget=True)), spent["cost"])
    digest = counting.board()["digest"]
    second = counting.run(CACHE, processes)
    second.stdout.fnmatch_lines(["cache: 6 of 6 answer(s) found; cost saved: 3; the oldest is 0 day(s) old (*)"])
    board = counting.board()
    assert (0, said, digest) == (len(counting.asked(forget=True)), outputs(counting), board["digest"])
    assert {"cached": 6, "cost": 0.0, "cost_per_example": 0.0, "tokens_per_example": 3.0} == board["spent"]
    assert (6, 0, 3.0) == tuple(board["manifest"]["cache"][name] for name in ("hits", "misses", "saved_cost"))
    assert {"prompt_tokens": 18, "cost": 0.0} == board["usage"]
    limits = ("--lm-max=overall.cost=1", "--lm-max=overall.cost_per_example=1", "--lm-max=words.tokens_per_example=3")
    assert 0 == counting.run(CACHE, processes, "--lm-gate=tasks", *limits).ret
    slow = counting.run(CACHE, processes, "--lm-gate=tasks", "--lm-max=overall.p95_ms=1000")
    assert 1 == slow.ret
    slow.stdout.fnmatch_lines(["*overall.p95_ms: only 0 request(s) were timed (6 cached answers not counted)*"])


def test_an_answer_whose_time_is_no_time_is_asked_for_again(counting: Project) -> None:
    counting.run(CACHE)
    with closing(sqlite3.connect(counting.path / "answers/answers.sqlite")) as database:
        database.execute("UPDATE answered SET asked = 9e99")
        database.commit()
    counting.asked(forget=True)
    assert (0, 6) == (counting.run(CACHE).ret, len(counting.asked(forget=True)))
    assert (0, 0) == (counting.run(CACHE).ret, len(counting.asked()))


def test_other_options_another_model_and_other_requests_are_asked(counting: Project) -> None:
    counting.run(CACHE)
    assert 6 == len(counting.asked(forget=True))
    for options, model in ((["--lm-adapter-arg=top_p=0.5"], "Counting"), ([], "Sure")):
        counting.run(CACHE, *options, f"--lm-adapter=counting:{model}")
        assert 6 == len(counting.asked(forget=True))
    records = [{"id": f"e{n}", "prompt": f"q{n}", "targets": [f"q{n} 1"], "metric": "exact_match"} for n in range(8)]
    counting.task("tasks/words.jsonl", *records)
    counting.run(CACHE)
    assert 2 == len(counting.asked(forget=True))


def test_part_of_a_batch_out_of_the_cache_is_not_asked(counting: Project) -> None:
    counting.run(CACHE, "-k", "e1 or e3")
    assert 2 == len(counting.asked(forget=True))
    counting.run(CACHE, "--lm-batch-size=6")
    assert 4 == len(counting.asked(forget=True))
    assert ["e0", "e1", "e2", "e3", "e4", "e5"] == [key.partition(":")[2] for key in counting.examples()]
    assert all(
        output.split()[0] == f"q{id[-1]}" for id, output in zip(counting.examples(), outputs(counting), strict=True)
    )


def test_read_only_asks_nobody_and_names_what_is_not_there(counting: Project) -> None:
    counting.run(CACHE, "-k", "not e5")
    counting.asked(forget=True)
    before = (counting.path / "answers/answers.sqlite").read_bytes()
    ran = counting.run(CACHE, "--lm-cache-mode=read-only")
    assert (3, 0) == (ran.ret, len(counting.asked(forget=True)))
    ran.stdout.fnmatch_lines(["*words: e5 is not in the cache, and --lm-cache-mode=read-only sends no requests*"])
    assert (5, 1) == tuple(counting.board()["counts"][name] for name in ("scored", "errors"))
    assert before == (counting.path / "answers/answers.sqlite").read_bytes()


def test_refresh_asks_all_again_and_keeps_the_new_answers(counting: Project) -> None:
    counting.run(CACHE)
    old = outputs(counting)
    counting.run(CACHE, "--lm-cache-mode=refresh")
    new = outputs(counting)
    assert old != new
    counting.asked(forget=True)
    counting.run(CACHE)
    assert (0, new) == (len(counting.asked(forget=True)), outputs(counting))


def test_answers_at_a_temperature_are_kept_by_repeat_and_by_sampled_alone(counting: Project) -> None:
    warm = (CACHE, "--lm-adapter-arg=temperature=0.7", "--lm-repeats=3", "--lm-batch-size=1")
    for _ in range(2):
        counting.run(*warm)
        assert 18 == len(counting.asked(forget=True))
    counting.run(*warm, "--lm-cache-mode=sampled")
    said = [record["outputs"] for record in counting.examples().values()]
    assert all(3 == len(set(each)) for each in said)
    counting.asked(forget=True)
    for mode in ("sampled", "read-only"):
        counting.run(*warm, f"--lm-cache-mode={mode}")
        assert (0, said) == (
            len(counting.asked(forget=True)),
            [record["outputs"] for record in counting.examples().values()],
        )


JUDGED = """
from pytest_lmeval.tasks import BaseTask, LLMJudgeScore

class Fine(LLMJudgeScore):
    NAME = "fine"
    PROMPT = "Judge: {prediction}"
    LABELS = {"yes": 1.0, "no": 0.0}

class Judged(BaseTask[str]):
    NAME = "Judged"
    DATASET_PATH = "words.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [Fine]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return item["word"]

    def _get_ground_truth(self, item):
        return item["word"]
"""


def test_judges_are_asked_once_too(counting: Project) -> None:
    (counting.path / "tasks/words.jsonl").unlink()
    counting.write("tasks/task_judged.py", JUDGED)
    counting.write("tasks/words.csv", "word\nblue\nred\ngrey\n")
    counting.write("judge.py", MODEL.replace('f"{one.text} {count}"', '"yes"'))
    judged = (CACHE, "--lm-judge=judge:Sure")
    counting.run(*judged, "--lm-adapter=counting:Sure")
    assert (6, 6) == (len(counting.asked(forget=True)), counting.board()["manifest"]["cache"]["misses"])
    digest = counting.board()["digest"]
    counting.run(*judged, "--lm-adapter=counting:Sure")
    assert (0, digest) == (len(counting.asked(forget=True)), counting.board()["digest"])


@pytest.mark.again
def test_a_resumed_run_and_the_cache_answer_together(counting: Project) -> None:
    counting.run(CACHE, "-k", "e0 or e1")
    (counting.path / "answers/answers.sqlite").rename(counting.path / "kept.sqlite")
    for left in (counting.path / "answers").iterdir():
        left.unlink()
    counting.run(CACHE, "-k", "e2", "--lm-report-dir=other")
    counting.asked(forget=True)
    counting.run(CACHE, "--lm-resume")
    assert 3 == len(counting.asked(forget=True))


def test_a_mode_without_a_cache_is_a_usage_error(counting: Project) -> None:
    ran = counting.run("--lm-cache-mode=refresh")
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(["*--lm-cache-mode=refresh needs --lm-cache DIR*"])
    assert 0 == len(counting.asked())


def test_the_ini_option_is_a_folder_below_the_root(counting: Project) -> None:
    counting.write("pytest.ini", "[pytest]\nlm_cache = kept\n")
    counting.run()
    assert (counting.path / "kept/answers.sqlite").exists()


def test_read_only_needs_no_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    module("aiohttp")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project.task("tasks/words.jsonl", project.record("e", "x"))
    project.run(CACHE)
    ran = project.run_pytest("--lm-adapter=openai:any", CACHE, "--lm-cache-mode=read-only")
    assert 3 == ran.ret
    ran.stdout.fnmatch_lines(["*words: e* is not in the cache*"])


def test_a_recording_answers_by_id_and_is_not_cached(project: Project) -> None:
    same = {"prompt": "q", "targets": ["x"], "metric": "exact_match"}
    project.task("tasks/words.jsonl", {"id": "a", **same}, {"id": "b", **same})
    Path(project.path / "said.jsonl").write_text("".join(json.dumps({"id": id, "output": id}) + "\n" for id in "ab"))
    for _ in range(2):
        project.run_pytest("--lm-adapter=replay:said.jsonl", CACHE, "--lm-include-per-example")
        assert ["a", "b"] == outputs(project)


def test_a_run_with_the_baseline_s_own_answers_says_so(counting: Project) -> None:
    counting.run(CACHE, "--lm-baseline=base.json", "--lm-update-baseline", "--lm-report-dir=first")
    ran = counting.run(CACHE, "--lm-gate=baseline", "--lm-baseline=base.json")
    assert 0 == ran.ret
    ran.stdout.fnmatch_lines(["*6 of 6 examples have the baseline's answers from the cache: they say nothing*"])
    assert any("the baseline's answers from the cache" in each for each in counting.board()["gate"]["warnings"])
