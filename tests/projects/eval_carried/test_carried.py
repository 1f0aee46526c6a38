import openai

from pytest_lmeval import eval_task

CLIENT = openai.OpenAI(api_key="unused", max_retries=0)
FUNCTION = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
QUESTION = {"role": "user", "content": "Is it open?"}
CHAT = {"model": "m", "tools": [{"type": "function", "function": FUNCTION}]}
RESPONSES = {"model": "m", "tools": [{"type": "function", **FUNCTION}]}


def results(message):
    return [{"role": "tool", "tool_call_id": call.id, "content": "open"} for call in message.tool_calls]


def outputs(response):
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": "open"} for call in calls]


@eval_task("chat")
def test_chat(lm):
    create = lm.client(CLIENT).chat.completions.create
    message = create(**CHAT, messages=[QUESTION]).choices[0].message
    done = create(**CHAT, messages=[QUESTION, message, *results(message)])
    assert (4, 2) == (
        done.usage.prompt_tokens_details.cached_tokens,
        done.usage.completion_tokens_details.accepted_prediction_tokens,
    )
    lm.score("right", "It is open." == done.choices[0].message.content)


@eval_task("chat_streamed")
def test_chat_streamed(lm):
    talk = [QUESTION]
    for _ in range(2):
        with lm.client(CLIENT).chat.completions.stream(**CHAT, messages=talk) as events:
            message = events.get_final_completion().choices[0].message
        talk += [message.model_dump(exclude_none=True), *results(message)] if message.tool_calls else []
    lm.score("right", "It is open." == message.content)


@eval_task("responses")
def test_responses(lm):
    create = lm.client(CLIENT).responses.create
    first = create(**RESPONSES, input=[QUESTION])
    second = create(**RESPONSES, input=[QUESTION, *first.output, *outputs(first)])
    assert (4, 2) == (
        second.usage.input_tokens_details.cached_tokens,
        second.usage.output_tokens_details.accepted_prediction_tokens,
    )
    lm.score("right", "It is open." == second.output_text)


@eval_task("responses_streamed")
def test_responses_streamed(lm):
    client = lm.client(CLIENT)
    with client.responses.stream(**RESPONSES, input=[QUESTION]) as events:
        first = events.get_final_response()
    with client.responses.stream(**RESPONSES, input=outputs(first), previous_response_id=first.id) as events:
        lm.score("right", "It is open." == events.get_final_response().output_text)


@eval_task("asked")
def test_asked(lm):
    answer = lm.ask([QUESTION], tools=[FUNCTION])
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]
    for message in (answer, {"role": "assistant", "content": None, "tool_calls": calls}):
        done = lm.ask([QUESTION, message, *results(answer)], tools=[FUNCTION])
        lm.note("done", done.text)
        assert "It is open." == done.text
    lm.score("right", True)
