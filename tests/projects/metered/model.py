# The words of a prompt decide what comes back. Times are the model's own, or the run would measure them.

from pytest_lmeval.errors import AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.types import Completion

_asked: dict = {}


class Model:
    name = "metered.v1"
    think_tags = None

    async def complete(self, request):
        said = request.text.rpartition("say: ")[2]
        nth = _asked[said] = _asked.get(said, -1) + 1
        if said == "boom":
            raise ValueError("no such word")
        if said == "late":
            raise AdapterTimeout("no answer within 1 s")
        if said == "refused":
            raise RequestRefused("not this one")
        if said == "busy" and nth == 0:
            raise TransientError("busy", retry_after=0.0)
        text = f"{said} {nth}" if said == "moody" else said
        return Completion(
            text,
            latency_ms=2.0 + nth,
            finish_reason="length" if said == "cut" else "stop",
            prompt_tokens=3,
            completion_tokens=len(text),
            cost=None if said == "free" else 0.001,
            logprobs=(-0.25, -0.5) if said == "sure" else (),
            confidence=0.75 if said == "moody" else None,
            thoughts="let me think" if said == "deep" else "",
            reasoning_tokens=2 if said == "deep" else None,
            ttft_ms=1.0,
            served_by="metered-2026",
        )


class Judge:
    name = "judge.v1"

    def generate_requests(self, requests):
        return [Completion("yes", latency_ms=5.0, prompt_tokens=9, completion_tokens=1, cost=0.01) for _ in requests]
