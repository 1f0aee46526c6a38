"""Choose the model and the prices for each request, which may name a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic

from pytest_lmeval.adapters.http.options import Given
from pytest_lmeval.adapters.http.secret import read_key
from pytest_lmeval.adapters.options import fault
from pytest_lmeval.adapters.resolve import making
from pytest_lmeval.errors import RequestRefused, UsageError, nearest
from pytest_lmeval.numbers import Number
from pytest_lmeval.project import project_table
from pytest_lmeval.types import Generate, Request

_NEEDED = ("price_input", "price_output")
_NAMES = (*_NEEDED, "price_cache_write", "price_cache_read", "price_cached")
_PRICE = Number(0)
Prices = Mapping[str, Mapping[str, float]]
"""Each model's prices per million tokens, by the names of the adapter's price options."""


class ServerModel(Generic[Given]):
    """An adapter's model, options, API key and prices.

    ``model`` is the server's name for the model; if it is empty, each request must name a model. The constructor reads
    the key from an environment variable, and raises UsageError for an unusable option or a missing key.
    """

    kind: ClassVar[str]
    """The adapter's name in a spec."""

    def __init__(self, model: str, options: Given) -> None:
        if not isinstance(model, str) or (model and not model.strip()) or not model.isprintable():
            raise UsageError(f"adapter {self.kind!r} needs the name of a model: {self.kind}:MODEL")
        if not model and options.price_input is not None:
            raise fault(self.kind, "option price_input needs a model; expected [tool.lmeval.prices.MODEL]")
        self._key = read_key(self.kind, options.api_key_env, options.needs_key)
        if self._key.stands_in((model, options)):
            raise UsageError(f"adapter {self.kind!r}: the API key itself is in the model's name or in an option")
        self._options, self._model, self._prices = options, model, read_prices()
        self.model_by_request = not model
        self.name = model or self.kind
        self.base_url = options.base_url
        self.options = options.public()
        self.unnamed_options = options.unnamed
        self.manifest: dict[str, str] = {"id": model} if model else {}
        self.requests_per_minute = options.requests_per_minute
        self.tokens_per_minute = options.tokens_per_minute

    def _asked_model(self, request: Request) -> str:
        """Return the model to query; raise RequestRefused if neither the request nor the adapter names a model."""
        named = request.options.get("model", self._model) if isinstance(request, Generate) else self._model
        if not isinstance(named, str) or not named:
            raise RequestRefused(
                f"adapter {self.kind}: has no model of its own, and the request names none; "
                f"--lm-adapter={self.kind}:MODEL names one"
            )
        return named

    def _priced(self, model: str) -> Given:
        """Return the options with the prices of ``model``; prices in the options apply only to the adapter's model."""
        if model == self._model if self._options.price_input is not None else not self._prices:
            return self._options
        known = self._prices.get(model, {})
        names = [each.name for each in fields(self._options) if each.name in _NAMES]
        changed: dict[str, Any] = {name: known.get(name) for name in names}
        return replace(self._options, **changed)


def read_prices() -> Prices:
    """Read ``[tool.lmeval.prices]`` of the adapter's project; raise UsageError for invalid prices."""
    project = making().project
    table = {} if project is None else project_table(project).get("prices", {})
    where = "pyproject.toml: tool.lmeval.prices"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table of tables, one per model")
    for model, prices in table.items():
        _check_prices(f"{where}.{model}", prices)
    return table


def _check_prices(where: str, prices: Any) -> None:
    # TOML reads an unquoted name with a dot as a table within a table.
    if not isinstance(prices, dict) or any(isinstance(value, dict) for value in prices.values()):
        raise UsageError(f'{where}: expected a table of prices; quote a name with dots: [tool.lmeval.prices."a.b"]')
    for name, value in prices.items():
        if name not in _NAMES:
            raise UsageError(f"{where}: unknown key {name!r}{nearest(name, _NAMES)} (choices: {', '.join(_NAMES)})")
        if not _PRICE.allows(value):
            raise UsageError(f"{where}: {name} is {value!r:.80}; expected {_PRICE}, per million tokens")
    if missing := [name for name in _NEEDED if name not in prices]:
        raise UsageError(f"{where}: no {' and no '.join(missing)}; expected both (0 if it is free)")
