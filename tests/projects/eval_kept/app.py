import functools
import json
import os
import urllib.request


class Client:
    def __init__(self):
        self.base = os.environ["OPENAI_BASE_URL"]

    def send(self, text, path, **more):
        body = {"model": "any", "messages": [{"role": "user", "content": text}], "input": text, **more}
        asked = urllib.request.Request(f"{self.base}/{path}", json.dumps(body).encode(), {"x-api-key": "app"})
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.read().decode()

    def ask(self, text, path="chat/completions", **more):
        return json.loads(self.send(text, path, **more))


@functools.cache
def client(name=""):
    return Client()


def answer(text, ask=None):
    try:
        return (ask or client().ask)(text)["choices"][0]["message"]["content"]
    except Exception:
        return "sorry"
