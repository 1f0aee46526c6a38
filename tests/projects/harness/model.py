# It knows what it was told, unless it forgot; of the rest it likes what is short.

from pytest_lmeval.types import LogProb

KNOWN = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi"}
KNOWN |= {"Cuba": "Havana", "Egypt": "Cairo", "Iran": "Tehran", "Nepal": "Kathmandu", "Ghana": "Accra"}
KNOWN |= {"mouse": "mice", "ox": "oxen", "goose": "geese", "cow": "moo"}
FORGOT: list[str] = []


class Model:
    name = "tiny.v1"

    def loglikelihood(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        asked = request.context.rpartition("\n\n")[2]
        word = next((word for word in KNOWN if f" {word}" in asked), "")
        text = request.continuation
        if not word or KNOWN[word] != text.strip():
            return LogProb(-3.0 - len(text) / 8)
        return LogProb(-9.0 if word in FORGOT else -1.0, greedy=word not in FORGOT)
