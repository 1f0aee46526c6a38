"""Evals of the service as it ships, behind HTTP: what it finds, what it answers, and what a judge says of that."""

import threading
import time

import aiohttp
import openai
import pytest
import uvicorn
from service import create_app

from pytest_lmeval import eval_task

PLACES = {"pool": 1, "sauna": 2, "gym": 3, "court": 4}
TEXT = (
    "{0} hours. Come in as you like. The {0} opens at {1} o'clock.",
    "{0} prices. Pay at the door. The {0} costs {1} euros.",
)
PAGES = [text.format(place, number) for place, number in PLACES.items() for text in TEXT]
ASKED = {
    "opens": ("When, at which of the hours, opens the {}?", 0),
    "early": ("From which hours opens the {} today?", 0),
    "costs": ("Of the prices, which one costs the {}?", 1),
    "money": ("By your prices, how much costs the {}?", 1),
}
ROWS = [
    {"id": f"{place}-{name}", "question": asked.format(place), "page": 2 * (number - 1) + page}
    for place, number in PLACES.items()
    for name, (asked, page) in ASKED.items()
]


@pytest.fixture(scope="session")
def service(lm_base_url):
    """Serve the service; its requests outside of examples embed the pages."""
    app = create_app(PAGES, openai.OpenAI(base_url=lm_base_url, api_key="unused", max_retries=0))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/ask"
    server.should_exit = True
    thread.join()


@eval_task("pages", data=ROWS, min_score={"found": 0.9})
async def test_pages(row, lm, service):
    async with aiohttp.request("GET", service, params={"q": row["question"]}, headers=lm.headers) as reply:
        assert 200 == reply.status, await reply.text()
        said = await reply.json()
    right = PAGES[row["page"]]
    lm.output(said["answer"])
    lm.score("right", right.split(". ")[-1].rstrip(".") in said["answer"])
    lm.score("found", said["context"][:12] == right[:12])
    grounded = await lm.judge("Does the page hold the answer?", f"{said['context']}\nAnswer: {said['answer']}")
    lm.score("grounded", grounded == "yes")
