from openai import OpenAI

from pytest_lmeval import eval_task

GIVEN = {}


def headers(**entries):
    return {"baggage": ", ".join(f"{name.replace('_', '.')} = {value};p=1" for name, value in entries.items())}


@eval_task("ended", data=[{"id": "a"}])
def test_ended(row, lm, service):
    GIVEN["ended"] = lm.headers
    assert service("x", headers(team="tea", lmeval_example=lm.token))[1].endswith("42.")
    with_other = {"baggage": f"team=tea,{lm.headers['baggage']}, b=%C3%A4"}
    client = OpenAI(base_url=lm.base_url, api_key="unused", max_retries=0, default_headers=with_other)
    client.embeddings.create(model="embed", input="x")
    assert 2 == len(lm.trace)


@eval_task("late", data=[{"id": "a"}])
def test_late(row, lm, service):
    lm.score("gone", service("x", GIVEN["ended"])[0] == 410)


@eval_task("unknown", data=[{"id": "a"}])
def test_unknown(row, lm, service):
    lm.score("refused", service("x", {"baggage": "lmeval.example=else"})[0] == 421)


@eval_task("two", data=[{"id": "a"}])
def test_two(row, lm, service):
    both = {"baggage": f"{lm.headers['baggage']},lmeval.example=else"}
    assert 409 == service("x", both)[0]
    lm.score("refused", True)
