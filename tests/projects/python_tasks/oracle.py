# Answers by what the last question is about; as a model would, with words around the answer.

import json

ANSWERS = {
    "capital of Chad": "Answer: N'Djamena\n",
    "capital of Peru": "Cuzco",
    "colour of the sky": "blue",
    "12 eggs": "Half of them, so the answer is 6",
    "def mean": "Sure.\n```python\ndef mean(numbers):\n    return sum(numbers) / len(numbers)\n```\nDone.",
    "thirst": "It must be B.",
    "itching": "B",
    "absolute value": "```python\ndef size(x):\n    return x\n```",
}


class Oracle:
    name = "oracle.v1"

    def generate(self, prompts):
        with open("prompts.txt", "a") as file:
            file.writelines(json.dumps(prompt) + "\n" for prompt in prompts)
        return [next((said for cue, said in ANSWERS.items() if cue in prompt[-300:]), "?") for prompt in prompts]


class Full(Oracle):
    def generate_requests(self, requests):
        from pytest_lmeval import Completion

        with open("requests.txt", "a") as file:
            for request in requests:
                turns = [[turn.role, turn.content] for turn in request.prompt]
                file.write(json.dumps([turns, request.stop, request.max_tokens]) + "\n")
        return [Completion(text) for text in self.generate([request.text for request in requests])]


class Probable(Oracle):
    def loglikelihood(self, requests):
        from pytest_lmeval import LogProb

        return [LogProb(-0.1 if request.continuation == "A" else -3.0) for request in requests]
