"""A model that gives its answer to who names a number, a user who names it when asked, and a judge."""

import json
import re

from pytest_lmeval import Completion


class Model:
    name = "some.v1"

    async def complete(self, request):
        said = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].content
        number = re.search(r"[A-Z]\d\d", said)
        return Completion(f"{number[0]}: in three days." if number else "What is the number?")


class User:
    name = "user.v1"

    async def complete(self, request):
        persona, *talk = (message.content for message in request.prompt)
        number = re.search(r"[A-Z]\d\d", persona)
        if not talk:
            return Completion('{"say": "Where is it?", "done": false}')
        if "three days" in talk[-1]:
            return Completion('{"say": "Thanks.", "done": true}')
        return Completion(json.dumps({"say": number[0] if number else "You know it.", "done": False}))


class Judge:
    name = "judge.v1"

    async def complete(self, request):
        return Completion(json.dumps({"reason": "It says when, and nothing else.", "score": 0}))
