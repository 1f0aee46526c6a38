import os

import openai
import pytest

from pytest_lmeval import eval_task

SHARED = openai.OpenAI(api_key="unused", base_url="http://127.0.0.1:1/v1", max_retries=0)
NAMES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


def answer(question):
    """Answer as an application that makes its client deep inside."""
    return openai.OpenAI(max_retries=0).responses.create(model="any", input=question).output_text


@pytest.fixture
def of_production(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "http://127.0.0.1:1/v1" if name.endswith("URL") else "production")
    yield
    assert "production" == os.environ["OPENAI_PROJECT_ID"] == os.environ["OPENAI_API_KEY"]


@eval_task("env", data=[{"id": "a"}, {"id": "b"}])
def test_env(of_production, lm_env, row, lm):
    assert [lm.base_url, lm.token, None, None] == [os.environ.get(name) for name in NAMES]
    assert f"{row['id']}: hi" == answer("hi")
    assert 1 == len(lm.trace)


@eval_task("env_async")
async def test_env_async(lm_env):
    said = await openai.AsyncOpenAI(max_retries=0).responses.create(model="any", input="hi")
    assert "test_env_async: hi" == said.output_text


@eval_task("client", threads=True)
def test_client(lm):
    assert "test_client: hi" == lm.client(SHARED).responses.create(model="any", input="hi").output_text
    with pytest.raises(TypeError, match=r"^lm.client: builtins.str has no with_options.base_url=..."):
        lm.client("http://127.0.0.1")
