import asyncio

import openai
import pytest

from pytest_lmeval import eval_task

ROWS = [{"id": f"e{n}"} for n in range(20)]
SHARED: dict = {}


def client(lm):
    loop = asyncio.get_running_loop()
    if loop not in SHARED:
        SHARED[loop] = openai.AsyncOpenAI(api_key="unused", base_url="http://127.0.0.1:1/v1", max_retries=0)
    return SHARED[loop]


def said(text):
    return {"model": "any", "messages": [{"role": "user", "content": text}]}


@eval_task("url", data=ROWS)
async def test_url(row, lm):
    own = client(lm).with_options(base_url=lm.base_url)
    answers = await asyncio.gather(*[own.chat.completions.create(**said(f"q{n}")) for n in range(3)])
    assert [f"{row['id']}: q{n}" for n in range(3)] == [each.choices[0].message.content for each in answers]
    assert 5 == answers[0].usage.total_tokens
    assert 3 == len(lm.trace)


@eval_task("token", data=ROWS)
async def test_token(row, lm, lm_base_url):
    own = client(lm).with_options(base_url=lm_base_url, api_key=lm.token)
    answer = await own.chat.completions.create(**said("hi"))
    assert f"{row['id']}: hi" == answer.choices[0].message.content


@eval_task("stream", data=ROWS[:3])
async def test_stream(row, lm):
    stream = (
        await client(lm)
        .with_options(base_url=lm.base_url)
        .chat.completions.create(**said("a longer question"), stream=True, stream_options={"include_usage": True})
    )
    text, usage = "", None
    async for chunk in stream:
        text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        usage = chunk.usage or usage
    assert f"{row['id']}: a longer question" == text
    assert usage is not None
    assert 5 == usage.total_tokens


@eval_task("tools")
async def test_tools(lm):
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    answer = await client(lm).with_options(base_url=lm.base_url).chat.completions.create(**said("x"), tools=[tool])
    (call,) = answer.choices[0].message.tool_calls
    assert ("search", '{"q": 1}') == (call.function.name, call.function.arguments)
    assert "tool_calls" == answer.choices[0].finish_reason


@eval_task("blocking", data=ROWS[:4], threads=True)
def test_blocking(row, lm):
    own = openai.OpenAI(api_key="unused", base_url=lm.base_url)
    answer = own.chat.completions.create(**said("hi"))
    assert f"{row['id']}: hi" == answer.choices[0].message.content


KEPT: list = []


@eval_task("wrong", data=[{"id": "a"}, {"id": "b"}])
async def test_wrong(row, lm):
    KEPT.append(lm.base_url)
    with pytest.raises(openai.APIStatusError) as caught:
        await (
            client(lm)
            .with_options(base_url=f"{lm.base_url.partition('/e/')[0]}/v1")
            .chat.completions.create(**said("x"))
        )
    assert 421 == caught.value.status_code
    assert "base_url=lm.base_url" in str(caught.value)
    if row["id"] == "b" and len(KEPT) == 2:  # in the process that ran the other one, too
        await asyncio.sleep(0.3)
        with pytest.raises(openai.APIStatusError) as caught:
            await client(lm).with_options(base_url=KEPT[0]).chat.completions.create(**said("x"))
        assert 410 == caught.value.status_code
