import app
import pytest

from pytest_lmeval import eval_task

KEPT = []


@pytest.fixture
def after():
    yield
    KEPT.append(app.answer("say: between"))


@eval_task("between", data=[{"id": "a"}, {"id": "b"}])
def test_between(row, after, lm_env, lm):
    lm.score("said", app.answer("say: hi") == "hi")


@eval_task("without", data=[{"id": "c"}])
def test_without(row, lm):
    lm.score("said", app.answer("say: hi") == "sorry")


@eval_task("own_first", data=[{"id": "d"}])
def test_own_first(row, lm_env, lm):
    said = [app.answer("say: hi", client.ask) for client in (app.Client(), app.client())]
    lm.score("said", said == ["hi", "sorry"])


@eval_task("kept_first", data=[{"id": "e"}])
def test_kept_first(row, lm_env, lm):
    with lm.may_fail():
        said = [app.answer("say: hi", client.ask) for client in (app.client(), app.Client())]
    lm.score("said", said == ["hi", "sorry"])


def test_between_turns():
    assert ["sorry", "sorry"] == KEPT
