"""The model that a request is for: the adapter's own, or the one that the request names; and what its answers cost.

An adapter without a model of its own (``openai:``) asks for what each request names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pytest_lmeval.adapters.http.options import Given, ServerOptions
from pytest_lmeval.adapters.options import fault
from pytest_lmeval.adapters.resolve import making
from pytest_lmeval.errors import RequestRefused, UsageError, nearest
from pytest_lmeval.numbers import Number
from pytest_lmeval.project import project_table
from pytest_lmeval.types import Generate

_NEEDED = ("price_input", "price_output")
_NAMES = (*_NEEDED, "price_cache_write", "price_cache_read")
_PRICE = Number(0)
Prices = Mapping[str, Mapping[str, float]]
"""Prices per million tokens by the model's name, under the names of the adapter's options."""


def check_model(kind: str, model: str, options: ServerOptions) -> None:
    """Raise UsageError for what is no name of a model, and for prices of an adapter without a model of its own."""
    if not isinstance(model, str) or (model and not model.strip()) or not model.isprintable():
        raise UsageError(f"adapter {kind!r} needs the name of a model: {kind}:MODEL")
    if not model and options.price_input is not None:
        raise fault(kind, "option price_input has no place without a model; expected [tool.lmeval.prices.MODEL]")


def asked_model(kind: str, own: str, request: Any) -> str:
    """Return the model that a request is for; raise RequestRefused if it names none, and the adapter has none."""
    named = request.options.get("model", own) if isinstance(request, Generate) else own
    if not isinstance(named, str) or not named:
        raise RequestRefused(
            f"adapter {kind}: has no model of its own, and the request names none; --lm-adapter={kind}:MODEL names one"
        )
    return named


def read_prices() -> Prices:
    """Return ``[tool.lmeval.prices]`` of the project whose adapter is being made; raise UsageError for bad prices."""
    project = making().project
    table = {} if project is None else project_table(project).get("prices", {})
    where = "pyproject.toml: tool.lmeval.prices"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table of tables, one per model")
    for model, prices in table.items():
        _check_prices(f"{where}.{model}", prices)
    return table


def _check_prices(where: str, prices: Any) -> None:
    # A name with a dot and without quotes is a table within a table.
    if not isinstance(prices, dict) or any(isinstance(value, dict) for value in prices.values()):
        raise UsageError(f'{where}: expected a table of prices; a name with dots is quoted: [tool.lmeval.prices."a.b"]')
    for name, value in prices.items():
        if name not in _NAMES:
            raise UsageError(f"{where}: unknown key {name!r}{nearest(name, _NAMES)} (choices: {', '.join(_NAMES)})")
        if not _PRICE.allows(value):
            raise UsageError(f"{where}: {name} is {value!r:.80}; expected {_PRICE}, per million tokens")
    if missing := [name for name in _NEEDED if name not in prices]:
        raise UsageError(f"{where}: no {' and no '.join(missing)}; expected both (0 for what is free)")


def priced(options: Given, own: str, model: str, prices: Prices) -> Given:
    """Return the options with the prices of ``model``: of the adapter's ``own`` those that were given, if they were."""
    if model == own if options.price_input is not None else not prices:
        return options
    known = prices.get(model, {})
    changed: dict[str, Any] = {each.name: known.get(each.name) for each in fields(options) if each.name in _NAMES}
    return replace(options, **changed)
