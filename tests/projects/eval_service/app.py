"""A service in a process of its own: it embeds its index as it starts, and asks a model for each request."""

import http.server
import os
import sys
import threading
import urllib.parse

import openai

CLIENT = openai.OpenAI(base_url=os.environ["BASE"], api_key="unused", max_retries=0)


def index():
    """Embed the pages, of which one is no page if so wished."""
    for text in os.environ.get("PAGES", "tea coffee").split():
        CLIENT.embeddings.create(model="embed", input=text)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        question = urllib.parse.unquote(self.path[1:])
        passed_on = {"baggage": self.headers["baggage"]} if self.headers["baggage"] else {}
        talk = [{"role": "user", "content": question}]
        try:
            reply = CLIENT.chat.completions.create(model="m", messages=talk, extra_headers=passed_on)
            status, said = 200, reply.choices[0].message.content
        except openai.APIStatusError as error:
            status, said = error.status_code, str(error)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{status} {said}".encode())

    def log_message(self, *_):
        pass


def end_with_input():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    try:
        index()
    except openai.APIStatusError as error:
        print(error.status_code, flush=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
