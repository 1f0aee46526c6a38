"""Send clients' requests to the model under test, or forward them to its server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_lmeval.adapters.facts import member
from pytest_lmeval.adapters.protocol import NamedModel
from pytest_lmeval.errors import AdapterError, LmevalError, UsageError
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.clients.body import ClientRequest, refused
from pytest_lmeval.functions.endpoint import Endpoint
from pytest_lmeval.functions.example import ExampleState, close_answered, close_failed, open_request, open_step
from pytest_lmeval.functions.steps import Step

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_lmeval.functions.clients.forwarding import Forwarded
    from pytest_lmeval.types import Completion, Generate


class Clients:
    """Answers requests at the endpoint with the model behind ``asker``.

    Raise UsageError if the adapter's server is this endpoint, because requests would loop endlessly.
    """

    def __init__(self, asker: Asker, endpoint: Endpoint) -> None:
        self._asker = asker
        self.endpoint = endpoint
        self._kept: Mapping[str, str] = {}
        self.takes_messages = asker.facts.takes_messages
        self._unnamed: frozenset[str] = member(asker.engine.adapter, "unnamed_options") or frozenset()
        port, own = endpoint.root.rpartition(":")[2], member(asker.engine.adapter, "base_url") or ""
        if re.match(rf"https?://(localhost|127\.0\.0\.1|\[::1\]):{port}(/|$)", own):
            raise UsageError(
                f"adapter {asker.name}: its base_url {own} is this run's own endpoint; name a model's server"
            )

    @property
    def model(self) -> tuple[str, str]:
        """The adapter's name, and the key that distinguishes adapters with the same name."""
        return self._asker.name, self._asker.key

    def of_kept_client(self, owner: str) -> Clients:
        """Return a copy that handles requests from a client kept from the example ``owner``."""
        found = copy(self)
        found._kept = {"kept": f"kept client of {owner}"}
        return found

    async def answer(self, state: ExampleState, asked: ClientRequest) -> Completion:
        """Return the model's answer; if no answer arrives, mark the example as an error and raise LmevalError.

        Drop the request's fields that the adapter rejects, and record their names in the step. The adapter adds no
        default options to the request.
        """
        state.check_is_running("a request to lm.base_url")
        asker, fields, name = self._asker, asked.fields, self._asker.name
        if asker.passes(asked.model):
            fields = {**fields, "options": {**fields["options"], "model": NamedModel(asked.model)}}
            name = asked.model
        request, step = open_request(state, name, asked.messages, fields)
        taken, left_out = self._asker.taken(request)
        dropped = sorted((*asked.dropped, *left_out))
        about = {"model": asked.model, "options": asked.named, **({"dropped": dropped} if dropped else {})}
        step.client = {**about, **self._kept}
        if asker.facts.model_by_request and not asked.model:
            error = refused(400, f"model: the request names none, and {name}: requires one")
            close_failed(state, step, error)
            raise error
        return await self._ask(state, step, request, self._as_named(taken, asked.limit))

    def _as_named(self, taken: Generate, limit: str) -> Generate:
        """Return a request without the adapter's defaults, and with the client's field for the token limit."""
        options: dict[str, object] = dict.fromkeys(self._unnamed - {"max_tokens_field"})
        if limit and "max_tokens_field" in self._unnamed and taken.max_tokens is not None:
            options |= {"max_tokens": None, limit: taken.max_tokens}
        return replace(taken, options={**options, **taken.options}) if options else taken

    async def forward(self, state: ExampleState, asked: Forwarded) -> web.Response:
        """Return the server's reply; if no reply arrives, mark the example as an error and raise LmevalError."""
        from pytest_lmeval.adapters.http.forward import forward, model_in
        from pytest_lmeval.functions.clients.forwarding import reply_to

        state.check_is_running("a request to lm.base_url")
        what = f"{asked.method} {asked.path}"
        if not self._asker.facts.forwards:
            error = refused(501, f"{what} goes to the adapter's server, and {self._asker.name} has none")
            self.refuse(state, what, error)
            raise error
        of = {"task": state.task, "id": state.id, "repeat": state.repeat}
        request = forward(asked.method, asked.target, asked.content, asked.headers, **of)
        step = open_step(state, "http", what, request)
        model = model_in(asked.content)
        # A recording has no server, and its name differs from the model's name.
        is_other = model not in ("", self._asker.name) and bool(member(self._asker.engine.adapter, "base_url"))
        is_other = is_other and not self._asker.facts.model_by_request
        step.client = {**({"model": model} if is_other else {}), **self._kept}
        answer = await self._ask(state, step, request, request)
        try:
            return reply_to(answer)
        except AdapterError as error:
            close_failed(state, step, error)
            raise

    async def _ask(self, state: ExampleState, step: Step, request: Generate, taken: Generate) -> Completion:
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
        """Record a rejected request as an error in the example; ``what`` is the request's method and path."""
        step = Step("request", what, start_ms=state.now_ms, may_fail=state.may_fail > 0, client=self._kept)
        state.steps.append(step)
        close_failed(state, step, error)
