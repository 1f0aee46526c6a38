"""An application with a client of its own, which names the model that it asks."""

import json
import os
import urllib.request

MODEL = "good"


def answer(question):
    """Return what the model says."""
    return ask(MODEL, question)


def ask(model, question):
    """Ask a model as any client of OpenAI's interface does."""
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
