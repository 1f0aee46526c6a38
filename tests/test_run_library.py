"""The whole path without pytest: tasks and an adapter in, a leaderboard out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_lmeval import (
    Completion,
    Example,
    Generate,
    Task,
    ToyAdapter,
    UsageError,
    load_tasks,
    run_leaderboard,
    run_task,
    write_leaderboard,
)
from pytest_lmeval.asking.caching import CacheSettings
from pytest_lmeval.errors import AdapterError, AdapterTimeout
from pytest_lmeval.records.cache import FILE, AnswerStore
from pytest_lmeval.run.library import run_tasks
from pytest_lmeval.run.settings import RunSettings, timestamp
from pytest_lmeval.task import complete
from tests import needs
from tests.formats.test_task_protocol import Bare

SHIPPED = Path(__file__).parents[1] / "tasks"


class Silent:
    """Answers with nothing."""

    name = "silent.v1"

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return [""] * len(prompts)


class Echo:
    """Answers with the last word of the prompt, and keeps the batches it was asked."""

    name = "echo.v1"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def generate(self, prompts: Sequence[str]) -> list[str]:
        self.calls.append(list(prompts))
        return [prompt.split()[-1] for prompt in prompts]


def _record(word: str, target: str | None = None, **extras: Any) -> dict[str, Any]:
    targets = [word if target is None else target]
    return {"id": word, "prompt": f"say {word}", "targets": targets, "metric": "exact_match", "extras": extras}


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    """Provide two tasks: of five examples, one wrong for an echo; and of two examples."""
    letters = [_record(letter) for letter in "abcd"] + [_record("e", "not e")]
    for name, records in (("letters", letters), ("en/words", [_record("red"), _record("blue")])):
        file = tmp_path / f"{name}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(map(json.dumps, records)))
    return load_tasks(tmp_path)


@pytest.fixture(scope="module")
def shipped() -> list[Task]:
    """Provide the tasks that the project ships."""
    return load_tasks(SHIPPED)


# One task


def test_a_task_becomes_a_row(tasks: list[Task]) -> None:
    words, letters = tasks
    row = run_task(letters, Echo())
    assert ("letters", 0.8, 4, 5, "exact_match") == (row.task, row.score, row.correct, row.total, row.metric)
    assert letters.path.as_posix() == row.path
    assert letters.sha256 == row.sha256
    assert row.latency_ms is not None
    assert ["passed"] * 4 + ["failed"] == [result.status for result in row.per_example]
    assert 1.0 == run_task(words, Echo()).score


def test_results_come_in_the_order_of_the_examples(tasks: list[Task]) -> None:
    results = run_tasks([tasks[0]], Echo()).results
    assert ["red", "blue"] == [result.id for result in results] == [result.outputs[0] for result in results]
    assert {"echo.v1"} == {result.adapter for result in results}


@pytest.mark.parametrize(("size", "calls"), [(1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (8, [5])])
def test_the_adapter_is_asked_in_batches(tasks: list[Task], size: int, calls: list[int]) -> None:
    adapter = Echo()
    run_task(tasks[1], adapter, batch_size=size)
    assert calls == [len(call) for call in adapter.calls]


def test_few_shot_examples_stand_before_the_prompt(tmp_path: Path) -> None:
    record = {
        "task_id": "a",
        "category": "arithmetic",
        "prompt": "2 + 3 =",
        "targets": ["="],
        "metric_name": "exact_match",
        "post_process": "none",
        "few_shot_examples": [{"prompt": "1 + 1 =", "completion": "2"}, {"prompt": "1 + 2 =", "completion": "3"}],
    }
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    adapter = Echo()
    (result,) = run_tasks([load_tasks(tmp_path)[0]], adapter).results
    assert [["1 + 1 = 2\n\n1 + 2 = 3\n\n2 + 3 ="]] == adapter.calls
    assert adapter.calls == [[result.prompt]]


def test_another_rendering_reaches_the_model_and_the_result(tasks: list[Task]) -> None:
    adapter = Echo()
    results = run_tasks([tasks[0]], adapter, render=lambda example: f"please {example.prompt}").results
    assert [["please say red", "please say blue"]] == adapter.calls
    assert adapter.calls == [[result.prompt for result in results]]


def test_thresholds_may_be_given(tasks: list[Task]) -> None:
    results = run_tasks([tasks[1]], Echo(), RunSettings(thresholds={"letters": 0.0})).results
    assert {("passed", 0.0)} == {(result.status, result.threshold) for result in results}


# Many tasks


def test_a_board_has_every_task_and_their_unweighted_mean(tasks: list[Task]) -> None:
    board = run_leaderboard(tasks, Echo())
    assert [("en/words", 1.0), ("letters", 0.8)] == [(row.task, row.score) for row in board.tasks]
    assert (True, 0.9) == (board.complete, board.overall_score)
    assert {"collected": 7, "scored": 7} == {key: board.counts[key] for key in ("collected", "scored")}
    assert "echo.v1" == board.facts.adapter


def test_the_digest_depends_on_results_alone(tasks: list[Task]) -> None:
    digests = {
        run_leaderboard(tasks, Echo()).digest,
        run_leaderboard(tasks, Echo(), batch_size=1).digest,
        run_leaderboard(tasks[::-1], Echo(), batch_size=3).digest,
    }
    assert 1 == len(digests)
    assert run_leaderboard(tasks, Silent()).digest not in digests


def test_a_board_is_stamped_with_the_time_in_utc(tasks: list[Task]) -> None:
    stamp = datetime.fromisoformat(run_leaderboard(tasks, Echo()).facts.timestamp)
    assert timedelta(0) == stamp.utcoffset()
    # A day, so that a slow machine cannot matter.
    assert abs(datetime.now(UTC) - stamp) < timedelta(days=1)
    assert timestamp().endswith("Z")


def test_the_shipped_tasks_are_all_solved_by_the_toy_model(shipped: list[Task], tmp_path: Path) -> None:
    board = run_leaderboard(shipped, ToyAdapter())
    wrong = [
        (row.task, each.id, each.status, each.error)
        for row in board.tasks
        for each in row.per_example
        if each.status != "passed"
    ]
    assert [] == wrong
    assert (True, sum(len(task.examples) for task in shipped)) == (board.complete, board.counts["scored"])
    write_leaderboard(board, tmp_path / "leaderboard.json")
    written = json.loads((tmp_path / "leaderboard.json").read_bytes())
    facts = ("overall_score", "digest", "complete")
    assert [board.overall_score, board.digest, True] == [written[fact] for fact in facts]


def test_a_model_that_says_nothing_scores_zero_on_a_complete_board(shipped: list[Task]) -> None:
    board = run_leaderboard(shipped, Silent())
    assert [(row.task, 0.0, 0) for row in board.tasks] == [(row.task, row.score, row.correct) for row in board.tasks]
    assert (True, 0.0) == (board.complete, board.overall_score)
    assert (0, 0) == (board.counts["errors"], board.counts["timeouts"])


# Tasks of others


class Sayings(Bare):
    """A task of somebody else's, with nothing but what every task must have."""

    name = "sayings"
    path = Path("sayings.own")
    examples = (Example("a", "say a", ("a",), "exact_match"), Example("b", "say b", ("c",), "exact_match"))


def test_a_task_without_the_optional_members_runs_beside_others(tasks: list[Task]) -> None:
    board = run_leaderboard([*tasks, Sayings()], Echo())
    assert {"en/words": 1.0, "letters": 0.8, "sayings": 0.5} == {row.task: row.score for row in board.tasks}
    assert 0.5 == run_task(Sayings(), Echo()).score
    assert ["passed", "failed"] == [result.status for result in run_tasks([complete(Sayings())], Echo()).results]


def test_a_task_that_lacks_a_required_member_is_refused_before_any_call(tasks: list[Task]) -> None:
    class Unscored:
        name = "unscored"
        path = Path("unscored.own")

    adapter = Echo()
    with pytest.raises(UsageError, match=r"unscored.own: the task 'unscored' \(Unscored\) has no sha256, .*scoring; a"):
        run_leaderboard([*tasks, Unscored()], adapter)
    assert [] == adapter.calls


# Faults


class Failing:
    """Fails on ``b`` and is late on ``c``."""

    name = "failing.v1"

    def generate_requests(self, requests: list[Generate]) -> list[Any]:
        return [self._answer(request.id) for request in requests]

    def _answer(self, word: str) -> Completion | AdapterError:
        faults = {"b": AdapterError("down"), "c": AdapterTimeout("late")}
        return faults.get(word) or Completion(word)


class Priced:
    """Asks for ten cents."""

    name = "priced.v1"

    def generate(self, prompts: list[str]) -> list[Completion]:
        return [Completion("x", cost=0.1) for _ in prompts]


def test_costs_are_summed_without_the_digits_of_binary_fractions(tasks: list[Task]) -> None:
    board = run_leaderboard(tasks[:1], Priced(), repeats=3)
    assert {0.3} == {each.usage["cost"] for each in board.tasks[0].per_example}
    assert board.usage["cost"] == round(board.usage["cost"], 2)


class Indiscreet:
    """Says its key in every error, as clients do that show what they sent."""

    name = "indiscreet.v1"

    def __init__(self) -> None:
        self._api_key = "sk-CANARY-7f3a9b2c4d5e"
        self.headers = {"X-Own": "CANARY-in-a-header-11"}

    def generate(self, prompts: list[str]) -> list[str]:
        raise RuntimeError(f"refused: {self._api_key} {self.headers}")


def test_secrets_of_the_adapter_are_hidden_in_what_it_raises(tasks: list[Task]) -> None:
    for board in (run_leaderboard(tasks[:1], Indiscreet()), run_leaderboard(tasks[:1], Echo(), judge=Indiscreet())):
        assert "CANARY" not in json.dumps(board.to_json(per_example=True))
    errors = {each.error for each in run_leaderboard(tasks[:1], Indiscreet()).tasks[0].per_example}
    assert all("refused: ***" in error for error in errors)


def test_faults_of_the_adapter_are_never_scored_and_leave_the_board_incomplete(tasks: list[Task]) -> None:
    board = run_leaderboard(tasks, Failing())
    statuses = {each.id: (each.status, each.score, each.error) for each in board.tasks[1].per_example}
    assert {
        "a": ("passed", 1.0, ""),
        "b": ("error", None, "down (1 attempt)"),
        "c": ("timeout", None, "late (5 attempts)"),
        "d": ("passed", 1.0, ""),
        "e": ("failed", 0.0, ""),
    } == statuses
    assert 2 / 3 == board.tasks[1].score
    assert (1, 1) == (board.counts["errors"], board.counts["timeouts"])
    assert (False, None) == (board.complete, board.overall_score)


def test_an_adapter_that_cannot_answer_is_a_usage_error(tasks: list[Task]) -> None:
    with pytest.raises(UsageError, match="without any of the methods"):
        run_task(tasks[0], object())
    with pytest.raises(UsageError, match="without any of the methods"):
        run_leaderboard(tasks, SimpleNamespace(generate="text"))
    with pytest.raises(UsageError, match=r"got the name 'toy': use make_adapter\('toy'\)"):
        run_leaderboard(tasks, "toy")


@pytest.mark.parametrize("latency", [float("nan"), float("inf"), "fast"])
def test_nonsense_from_an_adapter_still_gives_a_board_that_can_be_written(
    tasks: list[Task], tmp_path: Path, latency: Any
) -> None:
    class Odd:
        name = "odd.v1"

        def generate_requests(self, requests: list[Generate]) -> list[Completion]:
            return [Completion("\ud800", latency) for _ in requests]

    board = run_leaderboard(tasks, Odd())
    write_leaderboard(board, tmp_path / "leaderboard.json", include_per_example=True)
    assert board.digest == json.loads((tmp_path / "leaderboard.json").read_bytes())["digest"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate": "exampels"}, "unknown gate 'exampels'"),
        ({"repeats": 0}, "repeats and batch_size of at least 1"),
        ({"timeout": 0}, "a timeout above 0"),
        ({"thresholds": {"letters": 7}}, "threshold of 'letters': expected a number from 0 to 1"),
        ({"thresholds": {"leters": 0.5}}, "unknown task or metric in thresholds 'leters'; did you mean 'letters'"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_any_call(
    tasks: list[Task], options: dict[str, Any], message: str
) -> None:
    adapter = Echo()
    with pytest.raises(UsageError, match=message):
        run_leaderboard(tasks, adapter, **options)
    assert [] == adapter.calls


def test_a_run_of_no_tasks_is_refused() -> None:
    with pytest.raises(UsageError, match="no tasks"):
        run_leaderboard([], Echo())


def test_folders_are_searched_through_links_and_each_file_is_found_once(tmp_path: Path) -> None:
    (tmp_path / "tasks/own").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    for file, word in (("tasks/own/a.jsonl", "a"), ("shared/b.jsonl", "b")):
        (tmp_path / file).write_text(json.dumps(_record(word)) + "\n")
    (tmp_path / "tasks/shared").symlink_to(tmp_path / "shared")
    for link, target in (("tasks/own/up", ".."), ("shared/round", "../tasks"), ("tasks/self", ".")):
        (tmp_path / link).symlink_to(target)
    assert ["own/a", "shared/b"] == [task.name for task in load_tasks(tmp_path / "tasks")]


def test_a_class_of_a_task_file_is_no_task_and_the_error_says_what_is() -> None:
    from pytest_lmeval.tasks import Task as Conversations

    task: Any = Conversations()
    with pytest.raises(UsageError, match=r"has no path.*load_tasks\(FILE\) returns the tasks of the classes in a file"):
        run_task(task, Silent())


def test_what_a_run_lacks_is_a_usage_error_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.installed("jsonschema")
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    record = {"id": "a", "prompt": "{}", "targets": ["{}"], "metric": "json_schema", "extras": {"json_schema": {}}}
    (tmp_path / "t.jsonl").write_text(json.dumps(record))
    adapter = Echo()
    with pytest.raises(UsageError, match=r"'json_schema' needs jsonschema, .* pip install 'pytest-lmeval\[json\]'"):
        run_leaderboard(load_tasks(tmp_path / "t.jsonl"), adapter)
    monkeypatch.undo()
    with pytest.raises(UsageError, match=r"adapter echo\.v1 does not say"):
        run_tasks(load_tasks(tmp_path / "t.jsonl"), adapter, RunSettings(max_cost=1.0))
    assert not adapter.calls


class Costly:
    """Answers with what a request cost."""

    name = "costly.v1"

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion]:
        return [Completion(request.text.split()[-1], cost=0.1) for request in requests]


class Free(Costly):
    """Answers with no cost, and says so."""

    tells_cost = False


@pytest.mark.parametrize(("adapter", "fine"), [(Costly(), True), (Free(), False), (Echo(), False)])
@pytest.mark.parametrize("as_judge", [False, True])
def test_a_limit_on_cost_needs_to_know_what_each_model_costs(
    tmp_path: Path, adapter: Any, fine: bool, as_judge: bool
) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps(_record("a")))
    models = {"adapter": Costly(), "judge": adapter} if as_judge else {"adapter": adapter}
    tasks, settings = load_tasks(tmp_path / "t.jsonl"), RunSettings(max_cost=1.0)
    if fine:
        assert ["passed"] == [result.status for result in run_tasks(tasks, settings=settings, **models).results]
        return
    with pytest.raises(UsageError, match=f"adapter {adapter.name} does not say: give it prices"):
        run_tasks(tasks, settings=settings, **models)


def test_a_run_that_is_refused_leaves_no_cache_open(
    tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Choosy(Echo):
        def check_selection(self, selected: Sequence[tuple[str, str]]) -> None:
            raise UsageError("not these")

    closed: list[AnswerStore] = []
    close = AnswerStore.close

    def noted(store: AnswerStore) -> None:
        close(store)
        closed.append(store)

    monkeypatch.setattr(AnswerStore, "close", noted)
    with pytest.raises(UsageError, match="not these"):
        run_tasks(tasks, Choosy(), RunSettings(cache=CacheSettings(tmp_path / "kept")))
    assert [tmp_path / "kept" / FILE] == [store.path for store in closed]


def test_the_board_has_the_address_that_was_asked_without_its_secret(tasks: list[Task]) -> None:
    class Remote(Echo):
        base_url = "https://me:sk-CANARY-7f3a9b2c@host/v1"

    manifest = run_leaderboard(tasks, Remote()).facts.manifest
    assert ("https://***@host/v1", "the adapter") == (manifest["base_url"], manifest["base_url_from"])
    assert "base_url" not in run_leaderboard(tasks, Echo()).facts.manifest
