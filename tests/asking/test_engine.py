"""The examples want one answer at a time; the adapter is asked in the batches that were planned."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import DEFAULT_BATCH_SIZE, Policy
from pytest_lmeval.asking.transport import Inbox, Job, Sender
from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.run.plan import plan_batches
from pytest_lmeval.types import Completion, Generate, Response


class Echo:
    """Answers with the prompt, and keeps the batches it was asked; a prompt ``bad`` gets an error."""

    name = "echo"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def generate_requests(self, requests: list[Generate]) -> list[Any]:
        self.calls.append([request.text for request in requests])
        return [AdapterError("no") if each.text == "bad" else Completion(each.text) for each in requests]


def _request(key: Any) -> list[Generate]:
    return [Generate(str(key))]


def _texts(responses: Sequence[Response]) -> list[str]:
    return [response.text for response in responses if isinstance(response, Completion)]


def _planned(adapter: Any, *batches: Sequence[Any], batch_size: int = DEFAULT_BATCH_SIZE) -> Engine:
    engine = Engine(adapter, Policy(batch_size=batch_size))
    engine.plan(batches)
    return engine


def test_the_default_batch_size_is_eight() -> None:
    assert 8 == DEFAULT_BATCH_SIZE == Engine(Echo()).policy.batch_size


def test_a_key_outside_the_plan_is_asked_alone() -> None:
    adapter = Echo()
    assert ["z"] == _texts(_planned(adapter, ["a", "b"]).respond("z", _request))
    assert [["z"]] == adapter.calls


def test_a_key_that_is_wanted_again_is_asked_again() -> None:
    adapter = Echo()
    engine = _planned(adapter, ["a", "b"])
    assert ["a"] == _texts(engine.respond("a", _request)) == _texts(engine.respond("a", _request))
    assert ["b"] == _texts(engine.respond("b", _request))
    assert [["a", "b"], ["a"]] == adapter.calls


def test_an_adapter_error_is_raised_for_its_key_alone() -> None:
    engine = _planned(Echo(), ["a", "bad", "b"])
    assert ["a"] == _texts(engine.respond("a", _request))
    with pytest.raises(AdapterError, match="no"):
        engine.respond("bad", _request)
    assert ["b"] == _texts(engine.respond("b", _request))


@pytest.mark.parametrize("error", [ValueError("no template"), UsageError("no template")])
def test_a_prompt_that_cannot_be_made_is_the_error_of_its_key_alone(error: Exception) -> None:
    def requests_of(key: str) -> list[Generate]:
        if key == "b":
            raise error
        return _request(key)

    adapter = Echo()
    engine = _planned(adapter, ["a", "b", "c"])
    with pytest.raises(AdapterError, match="no template"):
        engine.respond("b", requests_of)
    assert [["a"], ["c"]] == [_texts(engine.respond(key, requests_of)) for key in ("a", "c")]
    assert [["a", "c"]] == adapter.calls


def test_examples_of_many_requests_are_asked_in_calls_of_the_batch_size() -> None:
    adapter = Echo()
    engine = _planned(adapter, ["a", "b"], batch_size=2)
    responses = [_texts(engine.respond(key, lambda key: [Generate(f"{key}{n}") for n in range(3)])) for key in "ab"]
    assert [["a0", "a1", "a2"], ["b0", "b1", "b2"]] == responses
    assert [["a0", "a1"], ["a2", "b0"], ["b1", "b2"]] == adapter.calls


def test_an_example_without_requests_has_no_responses() -> None:
    adapter = Echo()
    assert [] == _planned(adapter, ["a"]).respond("a", lambda key: [])
    assert [] == adapter.calls


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 9), st.randoms(use_true_random=False))
def test_every_key_is_asked_once_and_gets_its_own_answer(groups: list[str], size: int, random: Any) -> None:
    adapter = Echo()
    engine = Engine(adapter, Policy(batch_size=size))
    batches = plan_batches(((group, f"{group}{number}") for number, group in enumerate(groups)), size)
    engine.plan(batches)
    keys = [key for batch in batches for key in batch]
    random.shuffle(keys)
    for key in keys:
        assert [key] == _texts(engine.respond(key, _request))
    assert sorted(batches) == sorted(adapter.calls)


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30), st.integers(1, 9))
def test_asking_ahead_asks_the_same_batches_in_the_order_they_will_be_wanted(groups: list[str], size: int) -> None:
    adapter = Echo()
    keys = [f"{group}{number}" for number, group in enumerate(groups)]
    batches = plan_batches(((key[0], key) for key in keys), size)
    engine = Engine(adapter, Policy(batch_size=size))
    coming = iter(keys)
    engine.plan(batches, lambda: next(coming, None))
    assert [[key] for key in keys] == [_texts(engine.respond(key, _request)) for key in keys]
    engine.close()
    assert batches == adapter.calls


def test_no_more_is_asked_ahead_than_the_next_batch() -> None:
    rendered: list[int] = []

    def requests_of(key: int) -> list[Generate]:
        rendered.append(key)
        return _request(key)

    engine = Engine(Echo(), Policy(batch_size=4))
    coming = iter(range(100))
    engine.plan(plan_batches((("a", key) for key in range(100)), 4), lambda: next(coming, None))
    for key in range(100):
        assert [str(key)] == _texts(engine.respond(key, requests_of))
        assert len(rendered) <= (key // 4 + 2) * 4
    engine.close()
    assert list(range(100)) == rendered


def test_of_several_threads_that_wait_one_replaces_what_hangs() -> None:
    made: list[Hanging] = []
    both = threading.Barrier(2)

    class Hanging:
        wait = None

        def __init__(self) -> None:
            made.append(self)
            self.submitted: list[Job] = []
            self.looks = 0

        def is_stuck(self) -> bool:
            self.looks += 1
            if self is made[0] and self.looks < 3:
                both.wait(60)
            return self is made[0]

        def submit(self, jobs: Sequence[Job]) -> None:
            self.submitted += jobs

        def abandon(self) -> list[Job]:
            return self.submitted

        def close(self) -> None:
            pass

    sender, job = Sender(Hanging, Inbox(), None), Job([Generate("a")])
    sender.send([job])
    threads = [threading.Thread(target=sender.look_after) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [[job], [job]] == [each.submitted for each in made]
