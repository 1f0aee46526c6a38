import logging
import os
import sys
import warnings

import pytest

from pytest_lmeval import eval_task

KEY = os.environ["MY_MODEL"]


@eval_task("application")
async def test_the_application_gets_the_answer_as_it_came(lm):
    # What another example asked might come out of the cache, where the key is not.
    answer = await lm.ask("only asked here")
    lm.score("as it came", KEY in answer.text and KEY in answer.thoughts and KEY in answer.tool_calls[0].arguments)


def ended(how):
    if how == "raise":
        raise RuntimeError(KEY)
    if how == "chain":
        raise ValueError(KEY) from RuntimeError(KEY)
    if how == "group":
        raise ExceptionGroup(KEY, [ValueError(KEY), RuntimeError(KEY)])
    if how == "quit":
        raise SystemExit(KEY)
    others: dict = {"skip": pytest.skip, "fail": pytest.fail, "xfail": pytest.xfail}
    others.get(how, str)(KEY)


@eval_task("tells")
@pytest.mark.parametrize(
    "how",
    ["print", "log", "raise", "chain", "group", "quit", "skip", "fail", "xfail", "warn", "steps", "assert", "long"],
)
def test_tells(how, lm):
    answer = lm.ask("hello")
    local = [f"number {number} {KEY}" * 3 for number in range(50)]
    short = {f"name {KEY}": f"value {KEY}"}  # noqa: F841  # pytest shows it with a failure
    if how == "print":
        print(KEY), print(KEY, file=sys.stderr), os.write(1, KEY.encode())
    if how == "log":
        logging.getLogger().warning("logged %s", KEY)
    if how == "warn":
        warnings.warn(KEY)
    if how == "steps":
        lm.step("tool", KEY, {KEY: KEY}, KEY)
        lm.note(KEY, KEY)
        with lm.span(KEY):
            pass
    ended(how)
    lm.score(f"score {KEY}", 1)
    assert how != "assert" or answer.text == "x" * 300
    assert how != "long" or local == [KEY]
    assert not how


@eval_task("marked")
@pytest.mark.xfail(reason=KEY)
def test_marked(lm):
    lm.score("x", 0)


@eval_task("passed-anyway")
@pytest.mark.xfail(reason=KEY)
def test_passed_anyway(lm):
    lm.score("x", 1)


@eval_task("named")
@pytest.mark.parametrize("given", [KEY, f"a {KEY} b", KEY.lower(), KEY + KEY])
def test_named(given, lm):
    lm.score("x", 0)


@eval_task("rows", data=[{"id": KEY, "input": KEY}, {"id": f"x {KEY}", "input": KEY}])
def test_rows(row, lm):
    lm.score("x", 0)


@eval_task("judged")
def test_judged(lm):
    # The judge is shown the key, says it, and is understood.
    assert lm.judge("Is it polite?", f"hello {KEY}", labels=[f"yes {KEY}", "no"]) == f"yes {KEY}"


@pytest.mark.parametrize("given", [KEY])
def test_without_a_task(given, lm):
    lm.score("x", 0)


@pytest.fixture
def broken():
    raise RuntimeError(KEY)


def test_broken(broken):
    pass


@pytest.mark.skip(reason=KEY)
def test_skipped():
    pass


def test_records(record_property, record_testsuite_property):
    record_property("property", KEY), record_testsuite_property("suite", KEY)
    warnings.warn(KEY)
    logging.getLogger().error("plain %s", KEY)
