"""A changed prompt is compared with the old one: pairs by id, on every output, and both prompts shown."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MadeOnce, Project
from tests.yaml_tasks import single_turn

BASELINE = ("--lm-baseline=base.json", "--lm-pair-by=id")
# It knows every answer, and gives the wrong one to the numbers in ``wrong`` if it is told to hurry.
MODEL = """
class Model:
    name = "oracle.v1"
    wrong = range(12)

    def generate(self, prompts):
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        number = int(prompt.rpartition(" ")[2])
        return "?" if prompt.startswith("Hurry") and number in self.wrong else str(number)
"""


def write_task(project: Project, prompt: str, *, of: int = 60) -> None:
    records = [
        {"id": f"e{n}", "prompt": f"{prompt} {n}", "targets": [str(n)], "metric": "exact_match"} for n in range(of)
    ]
    project.task("tasks/numbers.jsonl", *records)


@pytest.fixture(autouse=True)
def _oracle(project: Project) -> None:
    project.write("oracle.py", MODEL)
    project.usual = ("--lm-adapter=oracle:Model",)


@pytest.fixture
def compared(project: Project, made_once: MadeOnce) -> Project:
    """Provide a project with a baseline of one prompt, and task files with another one."""

    def fill(folder: Path) -> None:
        write_task(project, "Repeat slowly:")
        assert 0 == project.run(*BASELINE, "--lm-update-baseline").ret
        for name in ("base.json", "reports"):
            shutil.move(project.path / name, folder)

    shutil.copytree(made_once("prompts-compared", fill), project.path, dirs_exist_ok=True)
    write_task(project, "Hurry up:")
    return project


def test_a_worse_prompt_is_a_regression_and_every_output_says_so_and_shows_both(compared: Project) -> None:
    ran = compared.run(*BASELINE, "--junitxml=junit.xml")
    assert 1 == ran.ret
    counted = "paired by id: the prompts of 60 of 60 examples differ from the baseline: numbers 60"
    board = compared.board()
    gate = board["gate"]
    assert ("regression", {"numbers": 60}) == (gate["verdict"], gate["comparison"]["other_prompts"])
    assert counted in gate["reasons"]
    suite = ElementTree.parse(compared.path / "junit.xml").getroot()[0]
    properties = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
    assert "regression" == properties["lm_verdict"]
    assert counted in properties["lm_reasons"]
    ran.stdout.fnmatch_lines(
        [
            "  worse: numbers: e0",
            "    wanted: 0",
            "    said before: 0 (score 1)",
            "    says now: ? (score 0)",
            "    prompt before: Repeat slowly: 0",
            "    prompt now: Hurry up: 0",
            f"  {counted}",
        ]
    )
    markdown = (compared.path / "reports/leaderboard.md").read_text()
    assert counted in markdown
    assert "| numbers: e0 | 0 | 0 | ? | 1 | 0 | Repeat slowly: 0 | Hurry up: 0 |" in markdown
    example = page(compared)[0]
    assert ("Hurry up: 0", "Repeat slowly: 0") == (example["prompt"], example["before"]["prompt"])
    assert "worse" == example["flip"]
    assert "changed" not in example["before"]


def test_without_pairs_by_id_a_changed_prompt_makes_the_baseline_stale_and_the_way_to_compare_it_is_named(
    compared: Project,
) -> None:
    ran = compared.run("--lm-baseline=base.json")
    assert 1 == ran.ret
    assert "stale" == compared.board()["gate"]["verdict"]
    ran.stdout.fnmatch_lines(
        [
            "  stale baseline: 0 of its 60 * could be compared *; to compare prompts: --lm-pair-by=id",
            "  60 of 60 changed differ in the prompt alone: --lm-pair-by=id (ini: lm_pair_by; *) compares them",
        ]
    )


def test_the_ini_file_can_pair_by_id_for_every_run_and_says_so(compared: Project) -> None:
    with (compared.path / "pytest.ini").open("a") as file:
        file.write("lm_pair_by = id\n")
    compared.run("--lm-baseline=base.json").stdout.fnmatch_lines(["*set by the ini file pytest.ini: pair-by id*"])
    assert "regression" == compared.board()["gate"]["verdict"]
    without = compared.run("--lm-gate=none")
    assert 0 == without.ret
    without.stdout.no_fnmatch_line("*without effect*")
    assert 1 == compared.run("--lm-baseline=base.json", "--lm-pair-by=content").ret
    assert "stale" == compared.board()["gate"]["verdict"]


def test_changed_targets_are_no_pair_however_pairs_are_made(compared: Project) -> None:
    write_task(compared, "Repeat slowly:", of=59)
    last = {"id": "e59", "prompt": "Repeat slowly: 59", "targets": ["fifty-nine"], "metric": "exact_match"}
    with (compared.path / "tasks/numbers.jsonl").open("a") as file:
        file.write(json.dumps(last) + "\n")
    assert 0 == compared.run(*BASELINE).ret
    comparison = compared.board()["gate"]["comparison"]
    assert [{"task": "numbers", "id": "e59", "passed_before": True}] == comparison["changed"]
    assert "other_prompts" not in comparison


def test_a_baseline_without_scoring_hashes_is_refused_before_any_request(compared: Project) -> None:
    text = (compared.path / "base.json").read_text()
    old = re.sub(r', "scoring_hash": "[0-9a-f]{64}"', "", text)
    assert old != text
    compared.write("base.json", old)
    ran = compared.run(*BASELINE)
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(["*base.json: pairs by id need the scoring_hash*; to renew it, run *"])
    assert not (compared.path / "reports/leaderboard.json").exists() or "stale" != compared.board()["gate"]["verdict"]
    # To renew it, it may be as old as it likes.
    write_task(compared, "Repeat slowly:")
    assert 0 == compared.run(*BASELINE, "--lm-update-baseline").ret
    assert text.count("scoring_hash") == (compared.path / "base.json").read_text().count("scoring_hash")


def test_the_commands_compare_prompts_too(compared: Project) -> None:
    compared.run("--lm-report-dir=new", "--lm-gate=none")
    by_id = compared.lmeval("diff", "base.json", "new/ledger.jsonl", "--pair-by=id", "--limit=1")
    assert 1 == by_id.ret
    by_id.stdout.fnmatch_lines(
        ["  old prompt:", "    Repeat slowly: 0", "  prompt:", "    Hurry up: 0", "verdict: regression"]
    )
    compared.lmeval("diff", "base.json", "new/ledger.jsonl").stdout.fnmatch_lines(["verdict: stale"])
    refused = compared.lmeval("rank", "base.json", "new/ledger.jsonl")
    assert 2 == refused.ret
    ranked = compared.lmeval("rank", "base.json", "new/ledger.jsonl", "--pair-by=id")
    assert 0 == ranked.ret
    for part in (1, 2):
        compared.run(f"--lm-shard={part}/2", f"--lm-report-dir=s{part}", "--lm-gate=none")
    shards = ("s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "whole", "--gate=baseline", "--baseline=base.json")
    assert 1 == compared.lmeval("merge", *shards, "--pair-by=id").ret
    assert "regression" == compared.board("whole")["gate"]["verdict"]
    compared.lmeval("merge", *shards).stdout.fnmatch_lines(["gate baseline: stale"])
    ranked.stdout.fnmatch_lines(["oracle.v1 (base.json) * 1.0000 *", "oracle.v1 (new/ledger.jsonl) * 0.8000 *"])


VARIANTS = single_turn(
    "numbers",
    '- {key: right, type: string_equals, ground_truth: "{{ sample.n }}"}\n',
    "<< config.tone >>: {{ sample.n }}",
    "config_spec:\n- {type: categorical, key: tone, allowed_values: [Repeat slowly, Hurry up]}\n",
)


def test_a_list_of_configs_is_ranked_as_variants_of_a_task(project: Project) -> None:
    project.write("tasks/numbers.yaml", VARIANTS)
    project.write("tasks/rows.csv", "n\n" + "".join(f"{n}\n" for n in range(30)))
    project.write(
        "both.yaml",
        "- {name: quick, tone: Hurry up}\n- {name: slow, tone: Repeat slowly}\n",
    )
    assert 0 == project.run("--lm-config=both.yaml", "--lm-gate=none").ret
    ranked = project.lmeval("rank", "reports/ledger.jsonl", "--by=config")
    assert 0 == ranked.ret, ranked.stderr.str()
    ranked.stdout.fnmatch_lines(
        ["slow * 1.0000 *", "quick * 0.6000 *", "scores are over the 30 example(s) *: numbers 30"]
    )
    project.write("one.yaml", "tone: Hurry up\n")
    assert 0 == project.run("--lm-config=one.yaml", "--lm-gate=none").ret
    alone = project.lmeval("rank", "reports/ledger.jsonl", "--by=config")
    assert 2 == alone.ret
    alone.stderr.fnmatch_lines(["*no variants of a task; --by config needs a run of several configs or prompts"])


CLASS = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask

class Numbers(BaseTask[str]):
    NAME = "Numbers"
    DATASET_PATH = "rows.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"PROMPT: {item['n']}"

    def _get_ground_truth(self, item):
        return item["n"]SUFFIX
"""

TALK = """
from pytest_lmeval.tasks import Task

class Numbers(Task):
    eval_type = "generative"

    def num_examples(self):
        return 30

    def get_example(self, index):
        question, answer = f"PROMPT: {index}", str(index)
        return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}

    def evaluate(self, conversation, response):
        return response == conversation["messages"][-1]["content"]SUFFIX
"""


@pytest.mark.parametrize("source", [CLASS, TALK])
def test_of_a_class_the_methods_that_write_prompts_may_change_and_no_others(project: Project, source: str) -> None:
    project.write("tasks/rows.csv", "n\n" + "".join(f"{n}\n" for n in range(30)))

    def write(prompt: str, suffix: str = "") -> None:
        project.write("tasks/task_numbers.py", source.replace("PROMPT", prompt).replace("SUFFIX", suffix))

    write("Repeat slowly")
    assert 0 == project.run(*BASELINE, "--lm-update-baseline").ret
    write("Hurry up")
    assert 1 == project.run(*BASELINE).ret
    assert ("regression", 30) == (project.board()["gate"]["verdict"], project.board()["gate"]["comparison"]["paired"])
    write("Hurry up", " or False")
    project.run(*BASELINE)
    assert "stale" == project.board()["gate"]["verdict"]


def page(project: Project) -> list[dict[str, Any]]:
    """Return the examples that the page shows of its first task, in order."""
    text = (project.path / "reports/report.html").read_text()
    found = re.search(r'<script type="application/json" id="task-0">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    examples: list[dict[str, Any]] = json.loads(found[1])["examples"]
    return examples
