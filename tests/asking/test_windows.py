"""Adapters that want to know many requests at a time: windows, in the batches that they plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.asking.windows import WindowTransport
from pytest_lmeval.errors import AdapterError, AdapterTimeout
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Request
from tests.tables import each_row

if TYPE_CHECKING:
    from tests.conftest import Project

PATIENCE_S = 120.0


class Sorting:
    """Answers with the prompt; plans batches of two, the longest prompts first, and keeps calls and windows."""

    name = "sorting"
    request_window = 4

    def __init__(self) -> None:
        self.windows: list[list[str]] = []
        self.calls: list[list[str]] = []

    def plan_window(self, requests: list[Request]) -> Any:
        self.windows.append(list(map(text_of, requests)))
        order = sorted(range(len(requests)), key=lambda place: -len(text_of(requests[place])))
        return [order[first : first + 2] for first in range(0, len(order), 2)]

    def generate_requests(self, requests: Sequence[Generate]) -> list[Any]:
        self.calls.append(list(map(text_of, requests)))
        return [Completion(request.text) for request in requests]

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb]:
        self.calls.append(list(map(text_of, requests)))
        return [LogProb(-1.0) for _ in requests]


def text_of(request: Request) -> str:
    return request.text if isinstance(request, Generate) else request.context


def jobs_of(*batches: str, on_answer: Any = None) -> list[Job]:
    return [Job([Generate(text) for text in batch.split()], on_answer=on_answer) for batch in batches]


def ask(model: Any, jobs: Sequence[Job], **limits: Any) -> None:
    inbox = Inbox()
    transport = WindowTransport(model, Policy(**limits), inbox, model.request_window)
    transport.submit(jobs)
    for job in jobs:
        assert inbox.wait(job, PATIENCE_S)
    transport.close()


def shown(job: Job) -> list[str]:
    return [
        answer.text if isinstance(answer, Completion) else f"{type(answer).__name__}: {answer}"
        for answer in job.answers or ()
    ]


def test_a_window_is_asked_in_the_batches_that_the_adapter_plans() -> None:
    model, done = Sorting(), list[list[str]]()
    jobs = jobs_of("a bbb", "cccc", "dd", "e", on_answer=lambda job: done.append(shown(job)))
    ask(model, jobs)
    assert [["a", "bbb", "cccc", "dd"], ["e"]] == model.windows
    assert [["cccc", "bbb"], ["dd", "a"], ["e"]] == model.calls
    # Each job as the last of its requests is answered, in the order of its requests.
    assert [["cccc"], ["a", "bbb"], ["dd"], ["e"]] == done


def test_a_job_is_never_split_over_windows() -> None:
    model = Sorting()
    ask(model, jobs_of("a b c", "d e f", "g h i j k"))
    assert [["a", "b", "c", "d", "e", "f"], ["g", "h", "i", "j", "k"]] == model.windows


def test_an_adapter_without_a_plan_gets_the_window_in_one_call() -> None:
    class Whole(Sorting):
        plan_window = None  # type: ignore[assignment]  # as if it had none

    model = Whole()
    ask(model, jobs_of("a bb", "ccc", "d", "e"))
    assert [["a", "bb", "ccc", "d"], ["e"]] == model.calls


def test_texts_and_log_likelihoods_are_planned_apart() -> None:
    model, job = Sorting(), Job()
    job.add("key", [Generate("aa"), LogLikelihood("b", "c"), Generate("d"), LogLikelihood("eee", "f")])
    ask(model, [job])
    assert [["aa", "d"], ["b", "eee"]] == model.windows
    assert [Completion, LogProb, Completion, LogProb] == [type(answer) for answer in job.answers or ()]


class Planning(Sorting):
    """Plans what it was told to, once."""

    def __init__(self, plan: Any) -> None:
        super().__init__()
        self.plan: Any = plan

    def plan_window(self, requests: list[Request]) -> Any:
        plan, self.plan = self.plan, None
        if isinstance(plan, BaseException):
            raise plan
        return super().plan_window(requests) if plan is None else plan


@each_row(
    ("plan", "said"),
    [
        ([[0, 1, 2]], "plan_window returned 3 place(s) for 4 request(s); expected each place once"),
        ([[0, 1], [1, 2, 3]], "plan_window returned 5 place(s) for 4 request(s)"),
        ([[0, 1, 2, 4]], "plan_window returned 4 place(s) for 4 request(s)"),
        ([[0, 1, 2, -1]], "plan_window returned 4 place(s) for 4 request(s)"),
        ([[0, 1, 2, True]], "plan_window returned 4 place(s) for 4 request(s)"),
        ([["a", "b", "c", "d"]], "plan_window returned 4 place(s) for 4 request(s)"),
        ([], "plan_window returned 0 place(s) for 4 request(s)"),
        (7, "adapter sorting raised TypeError: 'int' object is not iterable"),
        ([0, 1, 2, 3], "adapter sorting raised TypeError: 'int' object is not iterable"),
        (RuntimeError("boom"), "adapter sorting raised RuntimeError: boom"),
        (AdapterError("closed"), "closed"),
    ],
)
def test_a_plan_that_cannot_be_used_is_an_error_of_its_window_alone(plan: Any, said: str) -> None:
    model = Planning(plan)
    first, second, later = jobs_of("a b", "c d", "e")
    ask(model, [first, second, later])
    assert all(said in text for text in [*shown(first), *shown(second)])
    assert (["e"], [["e"]]) == (shown(later), model.calls)


def test_empty_batches_of_a_plan_are_not_asked() -> None:
    model = Planning([[], [1, 0], []])
    (job,) = jobs_of("a b")
    ask(model, [job])
    assert (["a", "b"], [["b", "a"]]) == (shown(job), model.calls)


@each_row("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_means_to_stop_the_run_reaches_whoever_waits(error: BaseException) -> None:
    jobs = jobs_of("a", "b")
    ask(Planning(error), jobs)
    assert [error, error] == [job.failure for job in jobs]


def test_a_stuck_batch_is_a_timeout_of_its_jobs_and_the_rest_is_asked_again() -> None:
    free = threading.Event()

    class Sticky(Sorting):
        def generate_requests(self, requests: Sequence[Generate]) -> list[Any]:
            answers = super().generate_requests(requests)
            if any(request.text == "stuck" for request in requests):
                free.wait(PATIENCE_S)
            return answers

    model = Sticky()
    engine = Engine(model, Policy(batch_size=1, timeout_s=0.2))
    keys = ["first1", "aa", "b", "stuck", "c", "d"]
    coming = iter(keys)
    engine.plan([[key] for key in keys], lambda: next(coming, None))
    outcomes = {}
    for key in keys:
        try:
            outcomes[key] = [answer.text for answer in engine.respond(key, requests) if isinstance(answer, Completion)]
        except AdapterTimeout as error:
            outcomes[key] = [str(error)]
    free.set()
    engine.close()
    assert "did not return within 0.2 s for each of 2 request(s)" in outcomes["stuck"][0]
    # It was sorted to the front, with the longest, which has the timeout, too.
    assert outcomes.pop("stuck") == outcomes.pop("first1")
    assert {key: [key] for key in outcomes} == outcomes
    assert 1 == sum("stuck" in call for call in model.calls)


def requests(key: Any) -> list[Generate]:
    return [Generate(str(key))]


def test_closing_asks_no_more_after_the_batch_that_is_under_way() -> None:
    begun, free = threading.Event(), threading.Event()

    class Slow(Sorting):
        def generate_requests(self, requests: Sequence[Generate]) -> list[Any]:
            answers = super().generate_requests(requests)
            begun.set()
            free.wait(PATIENCE_S)
            return answers

    before = set(threading.enumerate())
    model = Slow()
    transport = WindowTransport(model, Policy(), Inbox(), 4)
    transport.submit(jobs_of("aaa bbb c", "d"))
    assert begun.wait(PATIENCE_S)
    transport.close()
    free.set()
    deadline = time.monotonic() + PATIENCE_S
    while any(thread.name == "lmeval-batches" for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert [["aaa", "bbb"]] == model.calls


def test_a_run_knows_a_window_before_it_asks_and_the_next_while_it_scores() -> None:
    model = Sorting()
    engine = Engine(model, Policy(batch_size=2))
    keys = list("abcdefghij")
    coming = iter(keys)
    engine.plan([keys[first : first + 2] for first in range(0, 10, 2)], lambda: next(coming, None))
    for number, key in enumerate(keys):
        engine.respond(key, requests)
        if number == 0:
            assert 8 == len(engine.jobs) + 1
    engine.close()
    assert [["a", "b", "c", "d"], ["e", "f", "g", "h"]] == model.windows[:2]
    assert keys == [text for window in model.windows for text in window]


WINDOWED = """
class Model:
    name = "windowed.v1"
    request_window = {window}

    def __init__(self):
        self.sizes = []

    def plan_window(self, requests):
        with open("windows.txt", "a") as file:
            print(len(requests), file=file)
        return [[place] for place in reversed(range(len(requests)))]

    def generate_requests(self, requests):
        assert len(requests) == 1
        return [request.text.rpartition("say: ")[2] for request in requests]
"""


def test_a_command_asks_in_windows_and_scores_in_order_of_the_examples(project: Project) -> None:
    project.write("windowed.py", WINDOWED.format(window=5))
    project.task("tasks/a.jsonl", *[project.record(f"a{number}", str(number)) for number in range(7)])
    project.task("tasks/b.jsonl", *[project.record(f"b{number}", str(number)) for number in range(5)])
    assert 0 == project.run("--lm-adapter=windowed:Model", "--lm-batch-size=1").ret
    sizes = list(map(int, (project.path / "windows.txt").read_text().split()))
    # The last ones are asked while examples are scored, as soon as there is room for them.
    assert (5, 5, 12) == (sizes[0], max(sizes), sum(sizes))
    assert ["a"] * 7 + ["b"] * 5 == [name.partition(":")[0] for name in project.ledger()]


def test_an_example_whose_turn_comes_under_a_worker_brings_its_batch_as_its_window(project: Project) -> None:
    project.write("windowed.py", WINDOWED.format(window=50))
    project.task("tasks/a.jsonl", *[project.record(f"a{number}", str(number)) for number in range(12)])
    assert 0 == project.run("--lm-adapter=windowed:Model", "--lm-batch-size=6", "-n2").ret
    assert [6, 6] == list(map(int, (project.path / "windows.txt").read_text().split()))


def test_eval_functions_that_ask_at_the_same_time_are_one_window(project: Project) -> None:
    project.write("windowed.py", WINDOWED.format(window=50))
    project.write(
        "test_many.py",
        "from pytest_lmeval import eval_task\n"
        "@eval_task('many', data=[{'id': str(n)} for n in range(12)])\n"
        "async def test_many(row, lm):\n"
        "    assert (await lm.ask('say: ' + row['id'])).text == row['id']\n",
    )
    assert 0 == project.run("--lm-adapter=windowed:Model").ret
    assert [12] == list(map(int, (project.path / "windows.txt").read_text().split()))
