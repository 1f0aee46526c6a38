"""Says what its prompt tells it to."""


class Model:
    name = "stub.v1"

    def generate(self, prompts):
        return [prompt.rpartition("say: ")[2] for prompt in prompts]
