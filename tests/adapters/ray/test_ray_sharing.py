"""How requests are shared out, and which options are whose: without Ray."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.adapters.identity import Identity, ReplicaFacts, difference
from pytest_lmeval.adapters.ray.options import RayOptions, lack, shared_out
from pytest_lmeval.adapters.ray.sharing import SentBatch, SharedRequest, Sharing
from pytest_lmeval.adapters.resolve import resolve_profile
from pytest_lmeval.errors import UsageError
from pytest_lmeval.loading import make_adapter
from tests.tables import each_row


def queued(count: int, replicas: str, ahead: int = 2, batch_size: int = 4) -> Sharing:
    sharing = Sharing(ahead, batch_size)
    for number in range(count):
        sharing.add(SharedRequest(number, lambda answer: None))
    for replica in replicas:
        sharing.join(replica, 0.0)
    return sharing


def sent(sharing: Sharing, now: float = 0.0) -> list[tuple[Any, SentBatch]]:
    found = []
    while (batch := sharing.next(now)) is not None:
        found.append(batch)
    return found


def shown(batches: list[tuple[Any, SentBatch]]) -> list[tuple[Any, list[int]]]:
    return [(replica, [each.request for each in batch.requests]) for replica, batch in batches]


def test_the_least_busy_replica_goes_first_and_each_has_two_batches() -> None:
    many = shown(sent(queued(100, "ab")))
    assert [("a", [0, 1, 2, 3]), ("b", [4, 5, 6, 7]), ("a", [8, 9, 10, 11]), ("b", [12, 13, 14, 15])] == many


def test_of_little_each_replica_gets_its_part() -> None:
    assert [("a", [0]), ("b", [1]), ("c", [2])] == shown(sent(queued(3, "abc")))


def test_what_was_with_a_dead_replica_goes_alone_to_one_that_is_idle() -> None:
    sharing = queued(6, "a")
    sent(sharing)
    assert [] == sharing.leave("a")
    sharing.join("b", 0.0)
    first = sent(sharing)
    assert [("b", [0])] == shown(first)
    assert sharing.answered("b", first[0][1], 1.0)
    second = sent(sharing)
    assert [("b", [1])] == shown(second)
    # The second replica that dies with it is the last.
    assert [1] == [each.request for each in sharing.leave("b")]
    assert not sharing.answered("b", second[0][1], 2.0)


def test_the_time_of_a_batch_begins_when_the_one_before_is_answered() -> None:
    sharing = queued(4, "a", batch_size=2)
    first, second = sent(sharing)
    assert [] == list(sharing.overdue(2.0, 1.0))
    assert [first[1]] == list(sharing.overdue(2.1, 1.0))
    assert [] == list(sharing.overdue(2.2, 1.0))
    assert not sharing.answered("a", first[1], 3.0)  # late: its requests have their timeouts
    assert [] == list(sharing.overdue(5.0, 1.0))
    assert [second[1]] == list(sharing.overdue(5.1, 1.0))
    assert ([], ["a"]) == (sharing.silent(5.0, 2.0), sharing.silent(5.1, 2.0))


def test_what_nobody_wants_any_more_is_not_sent() -> None:
    sharing = Sharing(1, 4)
    sharing.add(SharedRequest("gone", lambda answer: None, lambda: True))
    sharing.join("a", 0.0)
    assert None is sharing.next(0.0)


def test_options_that_are_not_its_own_are_those_of_the_adapter_that_it_copies() -> None:
    own, others = shared_out({"replicas": 3, "dtype": "bfloat16", "wait_s": 5})
    assert (RayOptions(replicas=3, wait_s=5), {"dtype": "bfloat16"}) == (own, others)
    resolved = resolve_profile("ray:hf:model", {"replicas": 3, "dtype": "bfloat16"}, None)
    assert ("hf:model", {"dtype": "bfloat16"}) == (resolved.adapter, resolved.options)


@each_row(
    ("given", "expected"),
    [
        ({"replicas": 0}, "option replicas is 0; expected a whole number from 1 to 1000"),
        ({"num_gpus": -1}, "option num_gpus is -1; expected a number from 0 to 1000"),
        ({"num_cpus": "two"}, "option num_cpus is 'two'; expected a number from 0 to 1000"),
        ({"ahead": 2.5}, "option ahead is 2.5; expected a whole number from 1 to 10"),
        ({"batch_size": True}, "option batch_size is True; expected a whole number from 1 to 4096"),
        ({"restarts": -1}, "option restarts is -1; expected a whole number from 0 to 1e+06"),
        ({"wait_s": float("nan")}, "option wait_s is nan; expected a number > 0"),
        ({"address": "ray://host:1"}, "option address is 'ray://host:1'; expected auto, or HOST:PORT"),
        ({"replicas": 1000, "batch_size": 4096}, "are more than 1000000"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_adapter("ray:toy", options=given)
    assert expected in str(refused.value)


@each_row(("spec", "expected"), [("ray:", "needs an adapter to copy"), ("ray:ray:toy", "needs an adapter to copy")])
def test_a_spec_without_a_model_is_refused(spec: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        make_adapter(spec)


@each_row(
    ("nodes", "given", "expected"),
    [
        ([{"CPU": 4}, {"CPU": 4}], {"replicas": 2, "num_gpus": 0}, ""),
        ([{}], {"replicas": 2, "num_gpus": 0, "num_cpus": 0}, ""),
        ([{"GPU": 1, "CPU": 1}], {"replicas": 3, "num_gpus": 1 / 3, "num_cpus": 0}, ""),
        (
            [{"CPU": 3, "GPU": 1}] * 2,
            {"replicas": 1, "num_gpus": 2, "num_cpus": 1},
            "1 replica with 1 CPU and 2 GPUs each need 1 CPU and 2 GPUs; "
            "the cluster has 6 CPUs and 2 GPUs on 2 node(s), "
            "room for 0 (num_gpus and num_cpus set what one replica needs)",
        ),
        (
            [{"CPU": 3}] * 3,
            {"replicas": 40, "num_gpus": 0, "num_cpus": 1},
            "40 replicas with 1 CPU each need 40 CPUs; the cluster has 9 CPUs on 3 node(s), room for 9 (replicas=9)",
        ),
    ],
)
def test_what_a_cluster_lacks_is_said_with_the_sum(nodes: Any, given: dict[str, Any], expected: str) -> None:
    assert expected == lack(nodes, RayOptions(**given))


def test_two_replicas_have_the_same_model_only_if_all_that_is_known_is_equal() -> None:
    def facts(**given: Any) -> ReplicaFacts:
        known = {"name": "m", "identity": Identity("k", True), "fingerprint": "f", "manifest": {}, "attributes": {}}
        also = {"generates": True, "scores": False, "streams": False, "version": "1", "node": "n", "pid": 1}
        return ReplicaFacts(**{**known, **also, **given})

    assert "" == difference(facts(), facts(pid=2, node="o"))
    others = ({"name": "o"}, {"fingerprint": "g"}, {"manifest": {"sha256": "0"}}, {"identity": Identity("l", True)})
    assert all(difference(facts(), facts(**other)) for other in others)
