import anthropic

from pytest_lmeval import eval_task

CLIENT = anthropic.Anthropic(api_key="unused", max_retries=0)
QUESTION = {"role": "user", "content": "Is it open?"}
ASKED = {
    "model": "claude-opus-5-5",
    "max_tokens": 2000,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
}


def talk(message):
    uses = [block for block in message.content if block.type == "tool_use"]
    found = [{"type": "tool_result", "tool_use_id": use.id, "content": "open"} for use in uses]
    return [QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": found}]


@eval_task("messages")
def test_messages(lm):
    create = lm.client(CLIENT).messages.create
    first = create(**ASKED, messages=[QUESTION])
    done = create(**ASKED, messages=talk(first))
    assert (11, 5) == (done.usage.input_tokens, done.usage.cache_read_input_tokens)
    lm.score("right", "It is open." == done.content[-1].text)


@eval_task("messages_streamed")
def test_messages_streamed(lm):
    messages = [QUESTION]
    for _ in range(2):
        with lm.client(CLIENT).messages.stream(**ASKED, messages=messages) as events:
            message = events.get_final_message()
        messages = talk(message)
    lm.score("right", "It is open." == message.content[-1].text)
