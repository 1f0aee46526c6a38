# Says what the last message asks for, calls the tool where that is "call", fails where fail.txt names it, and ends the
# process at "three" where there is a die.txt.

import json
import os
import signal

from pytest_lmeval import AdapterError, Completion, ToolCall

HERE = os.path.dirname(__file__)


class Batch:
    name = "talker.v1"

    def generate_requests(self, requests):
        with open(os.path.join(HERE, "calls.txt"), "a") as file:
            file.write(json.dumps([os.getpid(), [self.said(each) for each in requests]]) + "\n")
        return [self.answer(each) for each in requests]

    def said(self, request):
        return request.prompt if isinstance(request.prompt, str) else request.prompt[-1].content

    def answer(self, request):
        said = self.said(request).rpartition("say: ")[2]
        path = os.path.join(HERE, "fail.txt")
        if os.path.exists(path):
            with open(path) as file:
                if said in file.read().split():
                    return AdapterError("broken")
        if os.path.exists(os.path.join(HERE, "die.txt")) and said == "three":
            os.kill(os.getpid(), signal.SIGKILL)
        if said == "call":
            return Completion("", tool_calls=(ToolCall("x", "look", '{"at": 1}'),))
        return Completion("<think>hm, " + said + "</think>" + said, cost=1.0, prompt_tokens=2)


class Async(Batch):
    generate_requests = None  # type: ignore[assignment]  # it has complete in its place

    async def complete(self, request):
        answer = Batch.generate_requests(self, [request])[0]
        if isinstance(answer, AdapterError):
            raise answer
        return answer
