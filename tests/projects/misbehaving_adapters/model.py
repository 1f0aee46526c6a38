# The prompt says what the model does; everything but "fine" spoils its call.

import sys


class Model:
    name = "rogue.v1"

    def generate(self, prompts):
        spoilt = [prompt for prompt in prompts if prompt != "fine"]
        if not spoilt:
            return list(prompts)
        return self.misbehave(spoilt[0], prompts)

    def misbehave(self, how, prompts):
        if how == "one too few":
            return list(prompts)[1:]
        if how == "one too many":
            return [*prompts, "more"]
        if how == "none at all":
            return None
        if how == "a generator":
            return (prompt for prompt in prompts)
        if how == "raises":
            raise RuntimeError("out of tokens")
        if how == "raises nothing to say":
            raise ValueError
        if how == "exits":
            sys.exit(5)
        assert how == "times out"
        raise TimeoutError("60 s")
