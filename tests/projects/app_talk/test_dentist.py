"""Evals of conversations: a model plays the customer."""

import dentist
from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from pytest_lmeval import eval_task

DAYS = ["Monday", "Tuesday", "Friday"]
ROWS = [
    {"id": f"{name}-{day}", "name": name, "day": day, "persona": f"Your name is {name}. You can come on {day}."}
    for name in ("Ann", "Ben", "Cleo", "Dan")
    for day in DAYS
]


@eval_task("dentist", data=ROWS, fails=(ValidationError,))
async def test_dentist(row, lm):
    chat = ChatOpenAI(model=dentist.MODEL, base_url=lm.base_url, api_key=lm.token, max_retries=0, **dentist.OPTIONS)
    graph = dentist.graph_of(chat)
    user = lm.user(row["persona"], "You want an appointment.", max_turns=5)
    async for said in user:
        user.reply(await dentist.reply_to(graph, row["id"], said))
    answers = [turn["content"] for turn in user.turns if turn["role"] == "assistant"]
    lm.output(answers[-1])
    lm.score("booked", f"{row['name']} on {row['day']}" in answers[-1])
    lm.score("short", len(answers) <= 3)
