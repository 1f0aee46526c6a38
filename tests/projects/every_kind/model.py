# It answers with what the prompt says, but for the words in wrong.txt. It writes down every request, and dies by
# SIGKILL when it has written as many as kill.txt says.

import json
import os
import signal

from pytest_lmeval.types import Completion, LogProb

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    path = os.path.join(HERE, name)
    return open(path).read() if os.path.exists(path) else ""


def note(entries):
    with open(os.path.join(HERE, "asked.txt"), "a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
    limit = read("kill.txt")
    if limit and len(read("asked.txt").splitlines()) >= int(limit):
        os.kill(os.getpid(), signal.SIGKILL)


class Model:
    name = "stub.v1"

    def generate_requests(self, requests):
        note([["text", request.text] for request in requests])
        return [self.completion(request.text) for request in requests]

    def completion(self, prompt):
        said = self.answer(prompt)
        if said.startswith("call "):
            call = (os.urandom(4).hex(), "word", {"said": said.removeprefix("call ")})
            return Completion("", tool_calls=[call])  # type: ignore[arg-type]  # a plain tuple will do
        return Completion(said)

    def answer(self, prompt):
        said = prompt.rpartition("say: ")[2].splitlines()[0].strip()
        return "hm" if said in read("wrong.txt").splitlines() else said

    def loglikelihood(self, requests):
        note([["continuation", one.context, one.continuation] for one in requests])
        return [self.probability(one) for one in requests]

    def probability(self, one):
        word = one.continuation.strip()
        liked = word in one.context.rpartition("say: ")[2].split()
        loss = (0.5 if liked else 2.0) + len(word) / 64
        if word in read("wrong.txt").splitlines():
            loss = 4.0
        tokens = tuple(-loss - place / 8 for place in range(len(one.continuation.split())))
        return LogProb(sum(tokens), tokens, liked, ids=tuple(one.continuation.split()))


class Judge:
    name = "judge.v1"

    def generate(self, prompts):
        return [self.reply(prompt) for prompt in prompts]

    def reply(self, prompt):
        if prompt.startswith("Grade a text by a rubric."):
            said = prompt.rpartition("<text-")[2].splitlines()[1]
            return json.dumps({"reason": f"it says {said}", "score": int(said != "hm")})
        if prompt.startswith("You play a user"):
            who = prompt.partition("Somebody who says ")[2].splitlines()[0]
            return json.dumps({"say": who, "done": prompt.count("<answer-") > 1 and "hm" not in prompt.splitlines()})
        return "no" if prompt.endswith("hm") else "yes"
