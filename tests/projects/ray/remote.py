"""A model that does what its prompts say; files in the folder say what happens at its start."""

import os
import time
from pathlib import Path

HERE = Path(__file__).parent


class Model:
    name = "remote.v1"
    fingerprint = "one"

    def __init__(self, sleep=0.0, fails=""):
        if fails:
            raise MemoryError(fails)
        self._sleep = sleep
        number = len(list(HERE.glob("started-*")))
        (HERE / f"started-{os.getpid()}").touch()
        if number and (HERE / "slow").exists():
            time.sleep(float((HERE / "slow").read_text()))
        if number and (HERE / "other").exists():
            self.fingerprint = f"other-{os.getpid()}"

    def generate(self, prompts):
        time.sleep(self._sleep * len(prompts))
        for prompt in prompts:
            with open(HERE / "asked.txt", "a") as file:
                file.write(f'[{os.getpid()}, "{prompt}"]\n')
            if "poison" in prompt:
                os._exit(9)
            if "hang" in prompt and not (HERE / "hung").exists():
                (HERE / "hung").touch()
                time.sleep(60)
        return [prompt.rpartition("say: ")[2] for prompt in prompts]


class Paid(Model):
    def generate(self, prompts):
        raise NotImplementedError

    def generate_requests(self, requests):
        from pytest_lmeval.types import Completion

        texts = Model.generate(self, [request.text for request in requests])
        return [Completion(text, cost=1.0) for text in texts]
