import pytest

from pytest_lmeval import eval_task

DRINKS = [{"id": name, "said": name} for name in ("tea", "water", "juice", "milk", "coffee")]


@eval_task("drinks", data=DRINKS)
async def test_drinks(row, lm):
    answer = await lm.ask(f"say: {row['said']}")
    assert answer.text == row["said"]


@eval_task("blocking", data=DRINKS[:4])
def test_blocking(row, lm, tmp_path):
    answer = lm.ask(f"say: {row['said']}")
    lm.score("same", answer.text == row["said"])


@eval_task("greetings", data=[{"id": "hello"}, {"id": "bye"}])
@pytest.mark.parametrize("name", ["Ada", "Bo"])
async def test_greetings(row, lm, name):
    answer = await lm.ask(f"say: {row['id']} {name}")
    assert name in answer.text
