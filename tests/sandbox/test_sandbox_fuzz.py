"""Frames that no program in good faith would send, and comparisons of whatever gets through."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.sandbox.boot import frame
from pytest_lmeval.sandbox.inside.wire import MAX_DEPTH, encode, unpack
from pytest_lmeval.sandbox.levels import Ends
from pytest_lmeval.sandbox.results import Limits
from pytest_lmeval.sandbox.session import ProgramEndError, Session
from pytest_lmeval.sandbox.values import ORDER, contains, near, ordered, parse, same, show, tagged, truth
from tests.examples import examples

# Whatever JSON can say, with the words that mean something here more often than by chance.
TAGS = st.sampled_from(["tuple", "set", "dict", "bytes", "float", "list", ""])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["nan", "inf", "-inf", "6869", "0", "\0"])
)
ANYTHING = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(TAGS, part, max_size=2), max_leaves=20
)
MESSAGES = ANYTHING.map(lambda item: json.dumps(["value", item]).encode()) | st.binary(max_size=60)


def parsed(payload: bytes) -> list[Any] | None:
    try:
        return parse(payload)
    except ValueError:
        return None


@given(MESSAGES)
@examples(500)
def test_a_payload_is_a_message_or_a_value_error(payload: bytes) -> None:
    message = parsed(payload)

    assert message is None or (isinstance(message, list) and isinstance(message[0], str))


@given(MESSAGES, MESSAGES, st.sampled_from(sorted(ORDER)))
@examples(500)
def test_whatever_gets_through_can_be_compared(one: bytes, other: bytes, symbol: str) -> None:
    items = [part for message in (parsed(one), parsed(other)) if message for part in message]
    for left in items:
        assert show(left)
        assert isinstance(truth(left), bool)
        assert isinstance(near(symbol, left, 1.5, 2), bool)
        for right in items:
            assert same(left, right) == same(right, left)
            assert isinstance(contains(left, right), bool)
            assert isinstance(ordered(symbol, left, right), bool)


@given(MESSAGES)
@examples(500)
def test_what_gets_through_is_what_an_encoder_could_have_sent(payload: bytes) -> None:
    for part in (parsed(payload) or ["value"])[1:]:
        try:
            value = unpack(part)
        except (TypeError, UnicodeEncodeError):
            # A list in a set or as a key: nothing equal to it can be expected.
            continue
        if "nan" not in show(part) and "set" not in str(part) and "dict" not in str(part):
            assert same(part, tagged(value))


@given(st.integers(0, 2 * MAX_DEPTH), st.sampled_from([("[", "]"), ('{"tuple":[', "]}"), ('{"set":[', "]}")]))
def test_depth_is_bounded_for_every_container(depth: int, brackets: tuple[str, str]) -> None:
    payload = f'["value",{brackets[0] * depth}1{brackets[1] * depth}]'.encode()

    assert (depth <= MAX_DEPTH) == (parsed(payload) is not None)


class Puppet:
    """A child that has written something and ended."""

    preamble = b""
    denies = True
    returncode = 0

    def processes(self) -> list[int]:
        return []

    def poll(self) -> int:
        return self.returncode

    def wait(self, timeout_s: float) -> int:
        return self.returncode

    def stop(self) -> None: ...

    def close(self) -> None: ...


class Puppeteer:
    def __init__(self, written: bytes) -> None:
        self.written = written

    def launch(self, limits: Limits, ends: Ends) -> Puppet:
        os.write(ends.result, self.written)
        return Puppet()

    def close(self) -> None: ...


def started(written: bytes) -> Session:
    launcher: Any = Puppeteer(written)
    return Session(launcher, Limits())


READY = b'["ready"]'
FRAMES = st.lists(
    MESSAGES.map(lambda payload: len(payload).to_bytes(4, "big") + payload) | st.binary(max_size=12), max_size=5
)


@given(FRAMES.map(b"".join))
@examples(300)
def test_whatever_is_on_the_pipe_every_question_gets_an_answer_or_the_end(written: bytes) -> None:
    with started(len(READY).to_bytes(4, "big") + READY + written) as session:
        for _ in range(7):
            try:
                kind, *_ = session.ask({})
            except ProgramEndError:
                break
            assert isinstance(kind, str)
        else:
            pytest.fail("more answers than frames")


@given(st.binary(max_size=30))
@settings(max_examples=50, deadline=None)
def test_a_frame_cut_short_is_the_end(payload: bytes) -> None:
    whole = len(READY).to_bytes(4, "big") + READY + frame(payload)
    with (
        started(whole[:-1]) as session,
        pytest.raises(ProgramEndError, match="exited with status 0 before it answered"),
    ):
        session.ask({})


@given(ANYTHING)
def test_a_value_and_its_encoding_are_the_same(item: Any) -> None:
    assert same(tagged(item), json.loads(encode(item))) == ("NaN" not in json.dumps(item))
