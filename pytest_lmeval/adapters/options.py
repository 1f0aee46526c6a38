"""Check an adapter's options with one function per option, which returns the option's value.

A check raises a ValueError that describes the expected value, but never quotes the given value, which may be an API
key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_lmeval.errors import UsageError, nearest

Check = Callable[[Any], Any]


def checked(
    adapter: str, checks: Mapping[str, Check], given: Mapping[str, object], show: Callable[[Any], str] = repr
) -> dict[str, Any]:
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    found = {}
    for name, value in given.items():
        if name not in checks:
            choices = ", ".join(sorted(checks))
            raise fault(adapter, f"unknown option {name!r}{nearest(name, checks)} (choices: {choices})")
        try:
            found[name] = checks[name](value)
        except ValueError as error:
            raise fault(adapter, f"option {name} is {show(value)}; expected {error}") from None
    return found


def fault(adapter: str, what: str) -> UsageError:
    """Create the UsageError for an error in an adapter's spec or options."""
    return UsageError(f"adapter {adapter!r}: {what}")


def text(value: Any) -> str:
    """Accept any text."""
    if not isinstance(value, str):
        raise ValueError("text")
    return value


def flag(value: Any) -> bool:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def choice(*choices: str) -> Check:
    """Accept one of ``choices``."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}{nearest(str(value), choices)}")
        return str(value)

    return check


def table(example: str) -> Check:
    """Accept a table of options, such as ``example``."""

    def check(value: Any) -> Mapping[str, object]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise ValueError(f"a table such as {example}")
        return value

    return check
