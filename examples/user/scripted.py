"""A model that does what its instructions say, and a user who gives a number when asked."""

import json
import re

from pytest_lmeval import Completion


class Model:
    name = "scripted.v1"

    async def complete(self, request):
        system, *_, said = (message.content for message in request.prompt)
        if "Ask for the number" not in system:
            return Completion("We are sorry to hear that.")
        number = re.search(r"[A-Z]\d\d", said)
        return Completion(f"{number[0]}: your money is back in three days." if number else "What is the number?")


class User:
    name = "user.v1"

    async def complete(self, request):
        persona, *talk = (message.content for message in request.prompt)
        if not talk:
            said = {"say": "I want to send a book back.", "done": False}
        elif "number" in talk[-1]:
            said = {"say": re.search(r"[A-Z]\d\d", persona)[0], "done": False}
        else:
            said = {"say": "And my money?", "done": "three days" in talk[-1]}
        return Completion(json.dumps(said))
