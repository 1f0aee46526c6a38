"""Decide which function-scoped and class-scoped fixtures allow an early start, and set them up for each example."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from pytest_lmeval.plugin.private.items import arguments_of, closure_of, fixture_definitions
from pytest_lmeval.text import OURS, is_of_package

SAFE = "lm_safe_fixtures"
_DJANGO = "pytest_django."
# Autouse fixtures of pytest-django: each has no effect without its mark, or in a project without Django's settings.
_OF_MARKS = {
    "_django_db_marker": "django_db",
    "_django_isolate_apps": "django_isolate_apps",
    "_django_set_urlconf": "urls",
    "_template_string_if_invalid_marker": "ignore_template_errors",
}
_OF_SETTINGS = ("_dj_autoclear_mailbox", "_django_clear_site_cache")
# These do nothing until a test or a fixture calls their methods, which then change the whole process.
_PATCHES = {"monkeypatch": "_pytest.monkeypatch", "mocker": "pytest_mock."}


def reason_against(item: Any, name: str, definition: Any, safe: Sequence[str]) -> str:
    """Return why a fixture makes its examples run one at a time, or "" if it has no effect or is ``safe``."""
    if not is_needed(item, name, definition):
        return ""
    if name in _PATCHES:
        takers = [described(taker, fixture_definitions(item, taker)[-1]) for taker in _takers(item, name)]
        way_out = "to run examples together, patch once in a session fixture, with pytest.MonkeyPatch.context()"
        return f"{(*takers, 'the function')[0]} takes {name}, whose changes hold for the whole process; {way_out}"
    if name == "lm_env":
        return (
            "the fixture lm_env sets variables, which hold for the whole process; to run examples together, give the "
            "application lm.client or lm.base_url"
        )
    shown = described(name, definition)
    if name not in safe:
        return f"{shown} is {definition.scope}-scoped; if several may exist at a time, name it in {SAFE}"
    if definition.params or name in definition.argnames or not _is_plain(definition):
        return f"{shown} is in {SAFE}, but it is async, a method, parametrized, an override, or takes request"
    return ""


def is_needed(item: Any, name: str, definition: Any) -> bool:
    """Return True if the function takes a fixture, or if the fixture has an effect."""
    return name in arguments_of(item) or not _does_nothing(item, name, definition)


def order_of(fixtures: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the names and definitions of ``fixtures``, each after the fixtures that it takes."""
    found: dict[str, Any] = {}

    def add(name: str) -> None:
        for each in fixtures[name].argnames:
            # A fixture that takes its own name overrides another.
            if each in fixtures and each not in found and each != name:
                add(each)
        found[name] = fixtures[name]

    for name in fixtures:
        add(name)
    return tuple(found.items())


def set_up(definition: Any, values: Mapping[str, Any], finishers: list[Callable[[], None]]) -> Any:
    """Return the value of a fixture for one example; add its tear-down to ``finishers``."""
    made = definition.func(**{name: values[name] for name in definition.argnames})
    if not inspect.isgeneratorfunction(definition.func):
        return made
    value = next(made)
    finishers.append(lambda: _finish(made))
    return value


def described(name: str, definition: Any) -> str:
    """Return a fixture's name with its location in the project, or with the package to which it belongs."""
    function = inspect.unwrap(definition.func)
    code, module = getattr(function, "__code__", None), str(getattr(function, "__module__", ""))
    if code is None or code.co_filename.startswith(OURS) or is_of_package(code.co_filename):
        return f"fixture {name} of {module.partition('.')[0].lstrip('_') or '?'}"
    return f"fixture {name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def check_safe(names: Iterable[str]) -> None:
    """Raise pytest.UsageError for a fixture that is never safe."""
    for name in names:
        if name in _PATCHES:
            raise pytest.UsageError(f"ini {SAFE}: {name} changes the whole process, so its examples run one at a time")


def _does_nothing(item: Any, name: str, definition: Any) -> bool:
    module = str(getattr(definition.func, "__module__", ""))
    if name in _PATCHES and module.startswith(_PATCHES[name]):
        return not _takers(item, name)
    if not module.startswith(_DJANGO):
        return False
    if (mark := _OF_MARKS.get(name)) is not None:
        return item.get_closest_marker(mark) is None
    if name == "_live_server_helper":
        return "live_server" not in closure_of(item)
    # An eval is never a method of a unittest class.
    return name == "_django_setup_unittest" or (name in _OF_SETTINGS and not _has_django_settings())


def _takers(item: Any, name: str) -> list[str]:
    """Return the names of the fixtures that take the fixture ``name`` and have an effect."""
    return [
        each
        for each in closure_of(item)
        for definition in fixture_definitions(item, each)[-1:]
        if name in definition.argnames and each != name and not _does_nothing(item, each, definition)
    ]


def _has_django_settings() -> bool:
    settings = getattr(sys.modules.get("django.conf"), "settings", None)
    return bool(os.environ.get("DJANGO_SETTINGS_MODULE")) or bool(getattr(settings, "configured", False))


def _is_plain(definition: Any) -> bool:
    """Return True if calling the fixture's function, with fixtures as arguments, sets the fixture up completely."""
    function = definition.func
    if (
        "request" in definition.argnames
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        return False
    return len(inspect.signature(function).parameters) == len(definition.argnames)


def _finish(values: Any) -> None:
    if next(values, _finish) is not _finish:
        raise RuntimeError("a fixture yields once")
