import os
import subprocess
import sys

import pytest

from pytest_lmeval import eval_task

IDS = os.environ["CLIENTS"].split()

TALK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PROGRAMS = {
    "openai": f"""
import openai

for client in (openai.OpenAI(), openai):
    assert "42" in client.chat.completions.create(**{TALK}).choices[0].message.content
""",
    "azure": f"""
import openai

with openai.AzureOpenAI() as azure, openai.AzureOpenAI(azure_deployment="d") as other:
    for client in (azure, other):
        assert "42" in client.chat.completions.create(**{TALK}).choices[0].message.content
    assert "42" in azure.responses.create(model="m", input="hi").output_text
    assert azure.embeddings.create(model="e", input="hi").data
""",
    "anthropic": f"""
import anthropic

with anthropic.Anthropic() as client:
    assert "42" in client.messages.create(max_tokens=9, **{TALK}).content[0].text
""",
}
REQUESTS = {"openai": 2, "azure": 4, "anthropic": 1}
PRODUCTION = {
    **dict.fromkeys(("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL"), "http://127.0.0.1:1"),
    **dict.fromkeys(("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"), "production"),
    **dict.fromkeys(("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_AUTH_TOKEN"), "production"),
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer production",
    "http_proxy": "http://127.0.0.1:1",
    "NO_PROXY": "intranet",
}


@pytest.fixture
def production(monkeypatch):
    for name, value in PRODUCTION.items():
        monkeypatch.setenv(name, value)
    before = variables()
    yield
    assert before == variables()


def variables():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@eval_task("env", data=[{"id": id} for id in IDS])
def test_env(row, production, lm_env, lm):
    assert "intranet,127.0.0.1,localhost" == os.environ["NO_PROXY"] == os.environ["no_proxy"]
    ended = subprocess.run([sys.executable, "-c", PROGRAMS[row["id"]]], capture_output=True, text=True, timeout=100)
    assert not ended.returncode, ended.stderr
    assert REQUESTS[row["id"]] == len(lm.trace)


@eval_task("here")
def test_here(production, lm_env, lm):
    exec(PROGRAMS[IDS[-1]])
    assert REQUESTS[IDS[-1]] == len(lm.trace)
