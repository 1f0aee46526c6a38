"""What becomes of a request of an application's own client: it is asked as ``lm.ask`` would, and is a step."""

from __future__ import annotations

import re

from pytest_lmeval.errors import AdapterError, LmevalError, UsageError
from pytest_lmeval.functions.asker import Asker, close_answered, close_failed, open_request
from pytest_lmeval.functions.chat_request import ChatRequest
from pytest_lmeval.functions.endpoint import Endpoint
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.types import Completion


class Clients:
    """Answers the requests that come in at the endpoint, with the model that ``asker`` asks.

    Raise UsageError where that one's own requests would come in there, and be asked for ever.
    """

    def __init__(self, asker: Asker, endpoint: Endpoint) -> None:
        self._asker = asker
        self._endpoint = endpoint
        port, own = endpoint.root.rpartition(":")[2], str(getattr(asker.engine.adapter, "base_url", ""))
        if re.match(rf"https?://(localhost|127\.0\.0\.1|\[::1\]):{port}(/|$)", own):
            raise UsageError(
                f"adapter {asker.name}: its base_url {own} is this run's own endpoint; name a model's server"
            )

    def admit(self, state: ExampleState) -> str:
        """Return a new token under which requests of an example are answered."""
        return self._endpoint.register(state, self)

    def dismiss(self, token: str) -> None:
        """Answer requests with ``token`` no more."""
        self._endpoint.forget(token)

    def url(self, token: str) -> str:
        """Return the base URL for the example with ``token``."""
        return self._endpoint.url(token)

    async def answer(self, state: ExampleState, asked: ChatRequest) -> Completion:
        """Return the answer; raise LmevalError without one, which makes the example an error.

        What the adapter does not take is left out, and noted in the step.
        """
        state.check_is_running("a request to lm.base_url")
        request, step = open_request(state, self._asker.name, asked.messages, asked.fields)
        taken, left_out = self._asker.taken(request)
        dropped = sorted((*asked.dropped, *left_out))
        step.client = {"model": asked.model, **({"dropped": dropped} if dropped else {})}
        try:
            answer = await self._asker.ask(request, taken)
        except BaseException as error:
            found = error
            if isinstance(error, Exception) and not isinstance(error, LmevalError):
                found = AdapterError(f"a request to lm.base_url failed: {type(error).__name__}: {error}")
            close_failed(state, step, found)
            raise found from None
        return close_answered(state, step, answer)

    def refuse(self, state: ExampleState, what: str, error: AdapterError) -> None:
        """Note a request that nobody was asked, ``what`` being its method and path; the example is an error."""
        step = state.add(Step("request", what, start_ms=state.now_ms, may_fail=state.may_fail > 0))
        close_failed(state, step, error)
