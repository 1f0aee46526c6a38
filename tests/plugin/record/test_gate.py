"""The gate of a run: modes, floors, baselines, and that exit code, JUnit, JSON report and board agree."""

from __future__ import annotations

import glob
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import BOTH, MadeOnce, Project


def junit(project: Project) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties of the suite, and the message of every failed test by its name."""
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    properties = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
    failures = {case.attrib["name"]: case.find("failure") for case in suite.iter("testcase")}
    failed = {name: node.text or "" for name, node in failures.items() if node is not None}
    assert len(failed) == int(suite.attrib["failures"])
    return properties, failed


def json_report(project: Project) -> Any:
    return json.loads((project.path / "report.json").read_text())


REPORTS = ("--junitxml=junit.xml", "--json-report", "--json-report-file=report.json")


def score_many(project: Project, wrong: int, *, of: int = 60, name: str = "many") -> None:
    """Write a task of which the model gets ``wrong`` examples wrong; the prompts tell nothing of it."""
    answers = {f"q{n}": "right" if n >= wrong else "wrong" for n in range(of)}
    project.write("answers.json", json.dumps(answers))
    project.write(
        "oracle.py",
        "import json, pathlib\n"
        "class Model:\n    name = 'oracle.v1'\n"
        "    def generate(self, prompts):\n"
        "        answers = json.loads(pathlib.Path(__file__).with_name('answers.json').read_text())\n"
        "        return [answers[prompt] for prompt in prompts]\n",
    )
    records = [{"id": f"e{n}", "prompt": f"q{n}", "targets": ["right"], "metric": "exact_match"} for n in range(of)]
    project.task(f"tasks/{name}.jsonl", *records)


def run_many(project: Project, *args: str) -> pytest.RunResult:
    return project.run_pytest("--lm-adapter=oracle:Model", *args)


# Modes and floors


@pytest.mark.parametrize(("floor", "status"), [("0.8", 0), ("0.8001", 1)])
def test_a_floor_is_reached_by_a_mean_that_is_below_it_by_rounding_alone(
    project: Project, floor: str, status: int
) -> None:
    for wrong, name in ((3, "one"), (2, "two"), (1, "three")):
        records = [project.record(f"e{n}", "?" if n < wrong else name, name) for n in range(10)]
        project.task(f"tasks/{name}.jsonl", *records)
    result = project.run("tasks", "--lm-gate=tasks", f"--lm-min-score=overall={floor}")
    assert 0.8 > project.board()["overall_score"] > 0.79999
    assert status == result.ret
    if status:
        result.stdout.fnmatch_lines(["*overall: 0.8000 is below its floor 0.8001"])


def test_a_score_that_would_look_as_if_it_reached_its_floor_is_shown_in_full(project: Project) -> None:
    score_many(project, 1, of=3)
    result = run_many(project, "tasks", "--lm-gate=tasks", "--lm-min-score=many=0.66667")
    result.stdout.fnmatch_lines(["*many: 0.6666666666666666 is below its floor 0.66667"])


def test_no_task_is_called_as_the_score_over_all_tasks(project: Project) -> None:
    score_many(project, 1, of=3, name="overall")
    result = run_many(project, "tasks")
    assert 0 != result.ret
    result.stdout.fnmatch_lines(["*overall.jsonl: the task name 'overall' is reserved for the score over all tasks*"])


def test_in_mode_tasks_an_example_under_its_threshold_is_below_and_a_task_under_its_floor_fails_the_run(
    small: Project,
) -> None:
    result = small.run("--lm-gate=tasks", "--lm-min-score=arithmetic=0.9", *REPORTS)
    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        ["*gate tasks: FLOOR", "*arithmetic: 0.6667 is below its floor 0.9", "*1 failed, 4 passed, 1 below*"]
    )
    board = small.board()
    assert ("tasks", "floor") == (board["gate"]["mode"], board["gate"]["verdict"])
    assert [0.9, None] == [row["min_score"] for row in board["tasks"]]
    assert 1 == board["counts"]["below"]
    properties, failed = junit(small)
    assert ("tasks", "floor") == (properties["lm_gate"], properties["lm_verdict"])
    assert ["gate"] == list(failed)
    assert "arithmetic: 0.6667 is below its floor 0.9" in failed["gate"]
    report = json_report(small)
    assert (1, "floor") == (report["exitcode"], report["lmeval"]["gate"]["verdict"])
    assert "Evals failed: below the floor" in (small.path / "reports/leaderboard.md").read_text()


def test_a_floor_may_stand_in_the_ini_file_and_the_command_line_wins(small: Project) -> None:
    ini = (small.path / "pytest.ini").read_text()
    small.write("pytest.ini", ini + "lm_min_scores =\n    overall=0.99\n    elsewhere=1\n")
    assert 1 == small.run("--lm-gate=tasks").ret
    assert 0 == small.run("--lm-gate=tasks", "--lm-min-score=overall=0.5").ret


@pytest.mark.parametrize(("mode", "code", "status"), [("tasks", 1, "failed"), ("none", 0, "below")])
def test_an_example_that_must_pass_is_a_failed_test_where_others_are_below(
    project: Project, mode: str, code: int, status: str
) -> None:
    must = project.spec("must", "5", target="4", metadata={"must_pass": True})
    project.task("tasks/sums.jsonl", must, project.spec("other", "5", target="4"))
    assert code == project.run(f"--lm-gate={mode}", "--lm-include-per-example").ret
    examples = project.examples()
    assert (status, "below") == (examples["sums:must"]["status"], examples["sums:other"]["status"])
    assert ("must_pass" if code else "pass") == project.board()["gate"]["verdict"]


@pytest.mark.parametrize("option", ["-n0", "-v"])
def test_the_gate_stands_in_the_summary_and_is_no_part_of_the_progress(small: Project, option: str) -> None:
    result = small.run("--lm-gate=tasks", "--lm-min-score=overall=1", option)
    result.stdout.fnmatch_lines(["FAILED leaderboard::gate - gate tasks: floor"])
    assert "[120%]" not in result.stdout.str()


def test_the_gate_is_not_what_last_failed(small: Project) -> None:
    small.run("--lm-gate=tasks", "--lm-min-score=overall=1")
    cached = small.path / ".pytest_cache/v/cache/lastfailed"
    assert not cached.exists() or "gate" not in cached.read_text()


# Against a baseline


@pytest.fixture
def many(project: Project, made_once: MadeOnce) -> Project:
    """Provide a task with the reports of a run that became its first baseline."""
    score_many(project, 6)

    def fill(folder: Path) -> None:
        result = run_many(project, "--lm-baseline=baseline.json", "--lm-update-baseline")
        assert 0 == result.ret
        result.stdout.fnmatch_lines(["*gate baseline: NEW", "  baseline written to baseline.json"])
        for name in ("baseline.json", "reports"):
            shutil.move(project.path / name, folder)

    shutil.copytree(made_once("gate-many", fill), project.path, dirs_exist_ok=True)
    return project


def test_the_first_baseline_is_new_and_the_next_says_when_nothing_changed(many: Project) -> None:
    assert "new" == many.board()["gate"]["verdict"]
    before = (many.path / "baseline.json").read_bytes()
    result = run_many(many, "--lm-baseline=baseline.json", "--lm-update-baseline", "-n2")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["*gate baseline: PASS", "  baseline *: nothing changed"])
    assert before == (many.path / "baseline.json").read_bytes()


def test_a_regression_fails_the_run_and_everything_says_so(many: Project) -> None:
    score_many(many, 20)
    result = run_many(many, "--lm-baseline=baseline.json", *REPORTS)
    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        ["many * regression *", "*gate baseline: REGRESSION", "*1 failed, 40 passed, 20 below*"]
    )
    gate = many.board()["gate"]
    assert ("baseline", "regression") == (gate["mode"], gate["verdict"])
    assert 14 == len(gate["comparison"]["worse"])
    properties, failed = junit(many)
    assert "regression" == properties["lm_verdict"]
    assert ["gate"] == list(failed)
    assert 1 == json_report(many)["exitcode"]
    text = (many.path / "reports/leaderboard.md").read_text()
    assert text.startswith("# Evals failed: a regression: oracle.v1\n")
    assert "| right | right | wrong | 1 | 0 |" in text


def test_one_example_less_is_no_regression_unless_every_flip_counts(many: Project) -> None:
    score_many(many, 7)
    assert 0 == run_many(many, "--lm-baseline=baseline.json").ret
    assert 1 == run_many(many, "--lm-baseline=baseline.json", "--lm-strict").ret
    assert "regression" == many.board()["gate"]["verdict"]


@pytest.mark.again
def test_an_adapter_that_always_answers_the_same_has_every_flip_counted(many: Project) -> None:
    many.write("oracle.py", (many.path / "oracle.py").read_text() + "    exact = True\n")
    score_many_answers = json.loads((many.path / "answers.json").read_text()) | {"q6": "wrong"}
    many.write("answers.json", json.dumps(score_many_answers))
    assert 1 == run_many(many, "--lm-baseline=baseline.json").ret


def test_a_drop_within_the_tolerance_is_no_regression(many: Project) -> None:
    score_many(many, 20)
    assert 0 == run_many(many, "--lm-baseline=baseline.json", "--lm-tolerance=0.3").ret


def test_a_ledger_is_a_baseline_too(many: Project) -> None:
    (many.path / "reports").rename(many.path / "kept")
    score_many(many, 20)
    assert 1 == run_many(many, "--lm-baseline=kept/ledger.jsonl").ret


def test_a_selection_is_compared_with_its_own_examples_alone(many: Project) -> None:
    assert 0 == run_many(many, "--lm-baseline=baseline.json", "--lm-limit=10").ret
    comparison = many.board()["gate"]["comparison"]
    assert (10, []) == (comparison["paired"], comparison["removed"])


def test_a_task_whose_file_was_not_named_is_not_missed_and_one_whose_file_is_gone_is(many: Project) -> None:
    many.task("tasks/words.jsonl", {"id": "w", "prompt": "q50", "targets": ["right"], "metric": "exact_match"})
    assert 0 == run_many(many, "--lm-baseline=baseline.json", "--lm-update-baseline").ret
    assert 0 == run_many(many, "tasks/words.jsonl", "--lm-baseline=baseline.json").ret
    assert 1 == many.board()["gate"]["comparison"]["paired"]
    (many.path / "tasks/many.jsonl").unlink()
    assert 1 == run_many(many, "--lm-baseline=baseline.json").ret
    assert "stale" == many.board()["gate"]["verdict"]


def test_a_run_of_nothing_that_the_baseline_knows_does_not_pass_for_one_that_was_compared(many: Project) -> None:
    many.task("tasks/words.jsonl", {"id": "w", "prompt": "q50", "targets": ["right"], "metric": "exact_match"})
    assert 1 == run_many(many, "tasks/words.jsonl", "--lm-baseline=baseline.json").ret
    assert "stale" == many.board()["gate"]["verdict"]


def test_a_baseline_of_other_examples_is_stale_and_says_how_to_renew_it(many: Project) -> None:
    records = [
        {"id": f"e{n}", "prompt": f"q{n}", "targets": ["right", "also"], "metric": "exact_match"} for n in range(60)
    ]
    many.task("tasks/many.jsonl", *records)
    result = run_many(many, "--lm-baseline=baseline.json")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*gate baseline: STALE", "*--lm-update-baseline*"])


UPDATE = ("--lm-baseline=base.json", "--lm-update-baseline")


@pytest.mark.parametrize(
    ("options", "how"),
    [
        (["-k", "arith_1"], "1 of 5 are selected (-k)"),
        (["-m", "not slow"], "4 of 5 are selected (-m)"),
        (["--deselect=tasks/words.jsonl::red"], "4 of 5 are selected (--deselect)"),
        (["--lm-limit=2"], "4 of 5 are selected (--lm-limit)"),
        (["--lm-sample=1"], "2 of 5 are selected (--lm-sample)"),
        (["tasks/words.jsonl::red"], "1 of 2 are selected (node ids, --lf, --sw or a plugin)"),
    ],
)
def test_a_selection_cannot_become_the_baseline_and_asks_nothing(small: Project, options: list[str], how: str) -> None:
    small.write(
        "conftest.py",
        "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow')\n"
        "def pytest_collection_modifyitems(items):\n"
        "    [item.add_marker('slow') for item in items if item.name == 'red']\n",
    )
    result = small.run(*options, *UPDATE)
    assert 4 == result.ret
    result.stderr.fnmatch_lines([f"*--lm-update-baseline needs a run of all examples; {glob.escape(how)}: *"])
    assert [] == small.calls()
    assert not (small.path / "base.json").exists()


@pytest.mark.parametrize("processes", BOTH)
def test_a_run_without_a_task_of_the_baseline_cannot_become_the_baseline(small: Project, processes: str) -> None:
    small.run(*UPDATE)
    asked = small.calls()
    result = small.run("tasks/words.jsonl", processes, *UPDATE)
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*needs a run of all tasks in base.json; not collected: arithmetic: *"])
    assert asked == small.calls()
    (small.path / "tasks/arithmetic.jsonl").unlink()
    small.run(processes, *UPDATE)
    assert "new" == small.board()["gate"]["verdict"]


def test_an_option_that_leaves_nothing_out_is_no_selection(small: Project) -> None:
    small.run("--lm-limit=3", "-k", "arith or blue or red", "--lm-gate=none", *UPDATE)
    assert "new" == small.board()["gate"]["verdict"]
    assert (small.path / "base.json").exists()


@pytest.mark.parametrize("processes", BOTH)
def test_an_incomplete_run_is_not_new_and_every_report_says_that_no_baseline_was_written(
    small: Project, processes: str
) -> None:
    breaking = "class Model:\n    name = 'm.v1'\n    def generate(self, prompts):\n        raise OSError('no line')\n"
    small.write("breaking.py", breaking)
    result = small.run_pytest("--lm-adapter=breaking:Model", processes, *UPDATE, *REPORTS)
    assert 3 == result.ret
    reason = "baseline not written to base.json: this run is not complete"
    result.stdout.fnmatch_lines([f"  {reason}"])
    assert "incomplete" == small.board()["gate"]["verdict"]
    assert reason in small.board()["gate"]["reasons"]
    assert reason in junit(small)[0]["lm_reasons"]
    assert reason in (small.path / "reports/report.html").read_text()
    assert reason in (small.path / "reports/leaderboard.md").read_text()
    assert not (small.path / "base.json").exists()


def test_a_failure_shows_what_the_baseline_said(many: Project) -> None:
    score_many(many, 7)
    result = run_many(many, "--lm-baseline=baseline.json", "--lm-gate=examples", "-k", "e6")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["  baseline (passed): right"])


def test_a_baseline_of_a_newer_version_is_a_usage_error(small: Project) -> None:
    small.write("base.json", '{"schema": "pytest-lmeval/leaderboard/3"}')
    result = small.run("--lm-baseline=base.json")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*newer version*"])
    assert [] == small.calls()


def test_a_baseline_without_its_examples_is_a_usage_error_that_says_how_to_get_them(small: Project) -> None:
    small.run()
    (small.path / "reports").rename(small.path / "kept")
    # The ledger beside the board has them.
    assert 0 == small.run("--lm-baseline=kept/leaderboard.json").ret
    assert "pass" == small.board()["gate"]["verdict"]
    (small.path / "kept/ledger.jsonl").unlink()
    result = small.run("--lm-baseline=kept/leaderboard.json")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*--lm-include-per-example*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lm-update-baseline", "--lm-baseline=b.json", "--lm-shard=1/2"], "*merge the shards first*"),
        (["--lm-alpha=0"], "*expected a number > 0 and < 1, got '0'*"),
        (["--lm-tolerance=2"], "*expected a number >= 0 and < 1*"),
        (["--lm-shard=3/2"], "*expected I/N*"),
    ],
)
def test_settings_that_make_no_sense_are_usage_errors(small: Project, options: list[str], message: str) -> None:
    result = small.run(*options)
    assert 4 == result.ret
    result.stderr.fnmatch_lines([message])


# What was left out


def change_many(project: Project) -> None:
    """Remove ``e0`` and ``e1``, change the prompt of ``e7`` and the targets of ``e2`` and ``e8``, add an example."""
    path = project.path / "tasks/many.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()][2:]
    by_id = {record["id"]: record for record in records}
    by_id["e2"]["targets"] = ["wrong"]
    by_id["e7"]["prompt"] = "q50"
    by_id["e8"]["targets"] = ["left"]
    project.task("tasks/many.jsonl", *records, {**by_id["e9"], "id": "new"})


LEFT_OUT = (
    "not compared: 3 changed (2 passed before), 2 removed (0 passed before), 1 new; "
    "compared: 55 of the baseline's 60 examples"
)
REWORDED = (
    "1 of 3 changed differ in the prompt alone: "
    "--lm-pair-by=id (ini: lm_pair_by; of lmeval diff: --pair-by=id) compares them"
)
BY_OLD_TARGETS = (
    "2 of 3 changed examples were also scored with their old targets, for information: 1 passed before, "
    "1 pass with the new targets, 1 would pass with the old targets"
)


def letters(text: str) -> str:
    """Return the letters and digits of a text: whatever markup is around them."""
    return re.sub(r"\W", "", re.sub(r"&#?\w+;", "", text))


@pytest.mark.parametrize(
    ("options", "verdict", "processes"),
    [
        ([], "pass", "-n0"),
        (["--lm-min-score=many=1"], "floor", "-n2"),
        (["--lm-gate=none"], "pass", "-n0"),
        (["--lm-update-baseline"], "new", "-n0"),
    ],
)
def test_every_verdict_says_on_every_output_what_was_left_out_and_what_new_targets_changed(
    many: Project, processes: str, options: list[str], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(many.path / "summary.md"))
    change_many(many)
    result = run_many(many, processes, "--lm-baseline=baseline.json", *options, *REPORTS)
    gate = many.board()["gate"]
    assert verdict == gate["verdict"]
    lines = [
        LEFT_OUT,
        "changed: many: e7, many: e8, many: e2",
        "removed: many: e0, many: e1",
        "new: many: new",
        REWORDED,
        BY_OLD_TARGETS,
        "pass with the new targets only: many: e2",
        "pass with the old targets only: many: e8",
    ]
    assert lines == [line for line in gate["reasons"] if line in lines]
    assert lines == gate["comparison"]["coverage"]
    markdown, page = (many.path / "reports" / name for name in ("leaderboard.md", "report.html"))
    for line in lines:
        assert f"  {line}" in result.outlines
        assert line in junit(many)[0]["lm_reasons"]
        for path in (markdown, page, many.path / "summary.md"):
            assert letters(line) in letters(path.read_text())
    assert [("e2", True, False), ("e8", False, True)] == [
        (each["id"], each["passes"], each["passes_by_old_targets"]) for each in gate["comparison"]["retargeted"]
    ]


def test_that_everything_was_compared_is_said_too(many: Project) -> None:
    result = run_many(many, "--lm-baseline=baseline.json", "--junitxml=junit.xml")
    said = "all 60 examples of the baseline were compared"
    result.stdout.fnmatch_lines([f"  {said}"])
    assert said in junit(many)[0]["lm_reasons"]


def test_examples_that_were_not_selected_skipped_or_not_scored_are_counted_by_what_they_are(many: Project) -> None:
    result = run_many(many, "--lm-baseline=baseline.json", "-k", "e10 or e2")
    result.stdout.fnmatch_lines(["  not compared: 48 not selected (43 passed before); compared: 12 of *"])
    skipping = (
        "import pytest\ndef pytest_runtest_setup(item):\n    if item.name in ('e0', 'e9'): pytest.skip('later')\n"
    )
    many.write("conftest.py", skipping)
    result = run_many(many, "--lm-baseline=baseline.json")
    result.stdout.fnmatch_lines(["  not compared: 2 removed, skipped or lost (1 passed before); compared: 58 of *"])


# GitHub


def test_the_step_summary_and_the_annotations_are_written_where_github_runs_it(
    small: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(small.path / "summary.md"))
    result = small.run()
    result.stdout.fnmatch_lines(["::error file=tasks/arithmetic.jsonl,line=2,title=arithmetic%3A arith_2 failed::*"])
    assert (small.path / "summary.md").read_text().startswith("# Evals failed: examples below their threshold")


def test_what_must_pass_is_annotated_before_what_only_failed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    must = project.spec("must", "5", target="4", metadata={"must_pass": True})
    project.task("tasks/sums.jsonl", *[project.spec(f"e{n}", "5", target="4") for n in range(12)], must)
    noted = [line for line in project.run().outlines if line.startswith("::error")]
    assert 10 == len(noted)
    assert "sums%3A must failed" in noted[0]


def test_a_baseline_that_was_asked_another_number_of_times_is_doubtful(many: Project) -> None:
    result = run_many(many, "--lm-baseline=baseline.json", "--lm-repeats=2")
    result.stdout.fnmatch_lines(["doubtful: the number of repeats differs from the baseline*"])


def test_a_task_that_is_asked_more_often_than_another_makes_no_part_of_a_run_doubtful(project: Project) -> None:
    score_many(project, 0, of=4)
    record = {"id": "e", "prompt": "q0", "targets": ["right"], "metric": "exact_match", "extras": {"repeats": 3}}
    project.task("tasks/often.jsonl", record)
    run_many(project, "tasks", "--lm-baseline=baseline.json", "--lm-update-baseline")
    assert [1, 3] == sorted({len(line["outputs"]) for line in project.ledger().values()})
    result = run_many(project, "tasks/many.jsonl", "--lm-baseline=baseline.json")
    result.stdout.no_fnmatch_line("*number of repeats differs*")


def test_a_gate_that_the_command_switches_off_is_not_blamed_on_the_ini_file(small: Project) -> None:
    result = small.run("tasks", "--lm-gate=none")
    result.stdout.fnmatch_lines(["NOT GATED: gate none: no result can fail this run"])


def test_an_ini_file_that_switches_the_gate_off_is_named_and_nothing_has_passed(small: Project) -> None:
    ini = "[pytest]\naddopts = --lm-gate none\nlm_task_paths = .\npythonpath = ..\n"
    small.write("tasks/pytest.ini", ini)
    result = small.run("tasks")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(
        [
            "lmeval: adapter model:Model, gate none, *, ini tasks/pytest.ini, *",
            "NOT GATED: gate none: no result can fail this run (set by tasks/pytest.ini or the environment)",
        ]
    )
    assert "tasks/pytest.ini" == small.board()["manifest"]["ini_file"]
    text = (small.path / "reports/leaderboard.md").read_text()
    assert text.startswith("# Evals not gated: ")
    assert "gate none: no result can fail this run (set by tasks/pytest.ini or the environment)" in text
    page = (small.path / "reports/report.html").read_text()
    assert "<h1>not gated: " in page
    told = small.lmeval("report", "reports/ledger.jsonl", "-o", "again.html").stdout.str()
    assert "gate none: not gated" in told
    assert not re.search(r"\b[Pp]assed\b(?! by)", text)


def test_the_ini_file_of_a_run_is_named_where_there_is_one(small: Project) -> None:
    small.run("tasks").stdout.fnmatch_lines(["lmeval: *, ini pytest.ini, *"])
    (small.path / "pytest.ini").unlink()
    small.write("conftest.py", "import sys; sys.path.insert(0, '.')")
    result = small.run("tasks", "--rootdir=.")
    result.stdout.no_fnmatch_line("lmeval: *, ini *")
    assert "ini_file" not in small.board()["manifest"]
