"""Two checkpoints of a model that needs no network: the second one has forgotten the capitals."""

from pytest_lmeval.types import LogProb

OPPOSITES = "cold short late empty dark quiet closed poor"
CAPITALS = "Paris Rome Madrid Riga Tallinn Oslo Tokyo Lima Accra Nairobi"


class Checkpoint:
    def __init__(self, step=1000):
        self.name = f"checkpoint-{step}"
        self.known = OPPOSITES if step > 1000 else f"{OPPOSITES} {CAPITALS}"

    def loglikelihood(self, requests):
        return [self.look_up(request.continuation.strip()) for request in requests]

    def look_up(self, word):
        known = word in self.known.split()
        total = -1.0 if known else len(word) - 20.0
        return LogProb(total=total, tokens=(total,), greedy=known, ids=(word,))
