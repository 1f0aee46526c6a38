"""Answers with the prompt, as promptfoo's provider ``echo`` does."""


class Echo:
    name = "echo"

    def generate(self, prompts):
        return list(prompts)
