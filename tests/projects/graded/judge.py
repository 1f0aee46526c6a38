"""A judge that grades by what is between the tags: ``good`` is 1, ``half`` is 0.5, all else 0."""

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
SCORES = {"good": 1, "half": 0.5}


class Judge:
    name = "judge.v1"
    request_options = ("response_format",)

    def generate_requests(self, requests):
        with open(os.path.join(HERE, "judged.txt"), "a") as file:
            file.writelines(json.dumps([request.text, dict(request.options)]) + "\n" for request in requests)
        return [self.reply(request.text) for request in requests]

    def reply(self, prompt):
        said = prompt.rpartition("<text-")[2].partition("\n")[2].partition("\n</text-")[0]
        if said == "prose":
            return "It is right, so I give it a 1."
        if said == "again" and "cannot be read" not in prompt:
            return "1"
        if said == "fenced":
            return '```json\n{"reason": "fenced", "score": 1}\n```'
        if '"label"' in prompt:
            return json.dumps({"reason": f"it says {said}", "label": "yes" if said == "good" else "no"})
        return json.dumps({"reason": f"it says {said}", "score": SCORES.get(said, 0)})
