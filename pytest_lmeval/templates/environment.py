"""Define the Jinja environment: a sandbox with plain data, few filters, and limits on the size of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pytest_lmeval.errors import nearest
from pytest_lmeval.templates.filters import FILTERS, LimitReached, budget_of, check_size, guarded, weigh

_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)
_TEXT_METHODS = """
    capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace
    istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip
    split splitlines startswith strip swapcase title upper
"""
_METHODS: Mapping[Any, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS.split()),
    dict: frozenset({"get", "items", "keys", "values"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
}
_LOOP = frozenset({"cycle", "first", "index", "index0", "last", "length", "nextitem", "previtem", "revindex"})
_MAX_POWER = 64


class _Missing(StrictUndefined):
    """A missing value, whose use raises an error that suggests known names."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if not isinstance(self._undefined_obj, dict) or not isinstance(self._undefined_name, str):
            return super()._undefined_message
        known = [str(key) for key in self._undefined_obj]
        return f"there is no {self._undefined_name!r}{nearest(self._undefined_name, known, 'there is')}"


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Allows only the attributes that this module lists; an element of a mapping hides a method with the same name."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a mapping's element ``attribute``, or otherwise the attribute of ``obj`` with this name."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return True if templates may access the attribute."""
        if isinstance(obj, LoopContext):
            return attr in _LOOP
        return attr in _METHODS.get(type(obj), frozenset())

    def is_safe_callable(self, obj: Any) -> bool:
        """Return True if templates may call ``obj``: an allowed method, or ``range``."""
        owner = getattr(obj, "__self__", None)
        name = getattr(obj, "__name__", "")
        if isinstance(owner, LoopContext):
            return name == "cycle"
        return obj is self.globals["range"] or name in _METHODS.get(type(owner), frozenset())

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # a template's own keyword may be called self
        """Call a function or method for a template; raise an error if its result would be too large."""
        if isinstance(__obj, Undefined):
            return __obj()  # raises the error of the undefined value
        if not __self.is_safe_callable(__obj):
            raise SecurityError(f"a {type(__obj).__name__} cannot be called")
        budget_of(__context).step()
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and name in ("join", "replace"):
            return guarded(name, owner, args, budget_of(__context))
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return ``left operator right``; raise an error if the result would be too large."""
        budget_of(context).step()
        for value in (left, right):
            if not isinstance(value, (*_PLAIN, Undefined)):
                raise SecurityError(f"{type(value).__name__} has no {operator}")
        _check_size(operator, left, right)
        return budget_of(context).made(super().call_binop(context, operator, left, right))


def _check_size(operator: str, left: Any, right: Any) -> None:
    if operator == "+":
        check_size(weigh(left) + weigh(right))
    if operator == "%" and isinstance(left, str):
        raise SecurityError("join text with ~, not with %")
    if operator == "**" and not (_is_small(left) and _is_small(right)):
        raise LimitReached(f"a power of numbers beyond {_MAX_POWER}")
    if operator == "*":
        _check_product(left, right)


def _check_product(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(value, str | list | tuple) and isinstance(times, int):
            check_size(weigh(value) * times)
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 4096:
        raise LimitReached("a number of more than 4,096 bits")


def _is_small(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= _MAX_POWER


def make_environment() -> TemplateEnvironment:
    """Return a new environment with the allowed functions and filters."""
    environment = TemplateEnvironment(undefined=_Missing, autoescape=False, cache_size=0)
    environment.globals = {"range": environment.globals["range"]}
    environment.filters = dict[str, Callable[..., Any]](FILTERS)
    return environment
