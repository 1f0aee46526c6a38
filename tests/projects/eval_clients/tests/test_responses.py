import openai
import pytest
from pydantic import BaseModel

from pytest_lmeval import eval_task

SEARCH = {"type": "function", "name": "search", "parameters": {"type": "object"}, "strict": False}


class Said(BaseModel):
    q: int


def client(lm):
    return openai.AsyncOpenAI(api_key="unused", base_url=lm.base_url, max_retries=2)


@eval_task("responses")
async def test_responses(lm):
    answer = await client(lm).responses.create(model="any", input="hi", instructions="Be brief.", max_output_tokens=9)
    assert "Be brief.\n\nhi" == answer.output_text.partition(": ")[2]
    assert ("completed", "any", 5) == (answer.status, answer.model, answer.usage.total_tokens)
    more = await client(lm).responses.create(model="any", input="and?", previous_response_id=answer.id)
    assert more.output_text.endswith("and?")
    assert ["user", "assistant", "user"] == [each["role"] for each in lm.trace[-1].input]
    parsed = await client(lm).responses.parse(model="any", input='{"q": 7}', text_format=Said)
    assert isinstance(parsed.output_parsed, Said)


@eval_task("responses_tools", data=[{"id": "whole"}, {"id": "streamed"}])
async def test_responses_tools(row, lm):
    asked = {"model": "any", "tools": [SEARCH], "input": [{"role": "user", "content": "Where?"}]}
    if row["id"] == "whole":
        answer = await client(lm).responses.create(**asked)
    else:
        async with client(lm).responses.stream(**asked) as events:
            kinds = [event.type async for event in events]
            answer = await events.get_final_response()
        assert ("response.created", "response.completed") == (kinds[0], kinds[-1])
        assert "response.function_call_arguments.done" in kinds
    (call,) = answer.output
    assert ("function_call", "search", '{"q": 1}') == (call.type, call.name, call.arguments)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "found 1"}
    talk = [*asked["input"], call.model_dump(), result]
    final = await client(lm).responses.create(**asked | {"input": talk})
    assert f"{row['id']} found 1" == final.output_text


@eval_task("responses_streamed")
async def test_responses_streamed(lm):
    text, numbers = "", []
    async for event in await client(lm).responses.create(model="any", input="a longer question", stream=True):
        numbers.append(event.sequence_number)
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert "test_responses_streamed: a longer question" == text
    assert [*range(len(numbers))] == numbers
    with pytest.raises(openai.BadRequestError, match="conversation: expected nothing"), lm.may_fail():
        await client(lm).responses.create(model="any", input="x", conversation="conv_1")
