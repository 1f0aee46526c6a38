"""A model that does what its instructions say, and a judge that looks for what the rubric asks for."""

import json

from pytest_lmeval import Completion


class Model:
    name = "scripted.v1"

    async def complete(self, request):
        system, asked = (message.content for message in request.prompt)
        order, _, coming = asked.rpartition("Order ")[2].partition(", next: ")
        state = order.replace(": ", " is ")
        return Completion(f"Order {state}: {coming}." if "what happens next" in system else f"Order {state}.")


class Judge:
    name = "judge.v1"

    async def complete(self, request):
        reply = request.prompt[0].content.rpartition("<text-")[2].splitlines()[1]
        if ":" in reply:
            said = {"reason": "It says the state and what happens next.", "score": 1}
        else:
            said = {"reason": "It says the state, and leaves open what happens next.", "score": 0.5}
        return Completion(json.dumps(said))
