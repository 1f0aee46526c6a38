import openai

from pytest_lmeval import eval_task

CLIENT = openai.OpenAI(api_key="unused", max_retries=0)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}}
NO = {"role": "assistant", "content": None, "refusal": "I cannot."}
PART = {"type": "text", "text": "again", "cache_control": {"type": "ephemeral"}}


@eval_task("shapes")
def test_shapes(lm):
    create = lm.client(CLIENT).chat.completions.create
    create(model="m", messages=[{"role": "user", "content": "q"}, NO, {"role": "user", "content": [PART]}])
    for choice in (ALLOWED, "any"):
        create(model="m", messages=[{"role": "user", "content": "q"}], tools=[TOOL], tool_choice=choice)
    azure = openai.AzureOpenAI(base_url=lm.base_url, api_key=lm.token, api_version="2024-10-21")
    by_deployment = {"azure_endpoint": lm.base_url, "api_key": lm.token, "api_version": "2024-10-21"}
    for client in (azure, openai.AzureOpenAI(azure_deployment="small", **by_deployment)):
        with client:
            found = client.embeddings.create(model="small", input="x", encoding_format="float")
        assert [0.5] == found.data[0].embedding
    lm.score("right", True)


@eval_task("errors", data=[{"id": "in a list"}, {"id": "of a list"}])
def test_errors(row, lm):
    with lm.may_fail():
        try:
            lm.client(CLIENT).chat.completions.create(model="m", messages=[{"role": "user", "content": row["id"]}])
        except openai.BadRequestError as error:
            lm.score("right", ("too long", 7) == (error.body["message"], error.body["code"]))
