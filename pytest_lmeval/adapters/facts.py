"""Read the members of adapters, on behalf of all other modules; third-party adapters may lack optional members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import Number
from pytest_lmeval.redaction import SHORTEST_IN_ANSWERS, Scrubber, is_secret_name, secrets_among

_TAKES = {
    "complete": "request): one request",
    "generate_requests": "requests): a list of requests",
    "generate": "prompts): a list of texts",
    "loglikelihood": "requests): a list of requests",
}
ANSWERING_METHODS = tuple(_TAKES)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """The attributes of an adapter that do not change during a run; an adapter may lack any attribute.

    ``methods`` are the ANSWERING_METHODS that the adapter has. ``awaits_logprobs`` is True if the adapter's
    ``loglikelihood`` is async.
    """

    methods: frozenset[str] = frozenset()
    awaits_logprobs: bool = False
    exact: bool = False
    """True if the same input always gives the same output."""
    answers: bool = True
    """False if the adapter cannot answer; a run then refuses, before it starts, examples that need an answer."""
    trusted: bool = False
    """True if all code that the adapter writes comes from this package, so that any available sandbox may run it."""
    tells_cost: bool | None = None
    """False if the adapter's answers never have a ``cost``; a run with ``--lm-max-cost`` then fails at once."""
    hostable: bool = False
    """True if an async adapter can be pickled and may therefore run in another process."""
    forwards: bool = False
    """True if ``complete`` accepts ``adapters.http.forward.Forward``, an application's unchanged request."""
    model_by_request: bool = False
    """True if the adapter has no fixed model, and uses the model in the ``options`` of each request."""
    takes_messages: bool = False
    """True if an application may use Anthropic's Messages interface at ``lm.base_url``."""
    cacheable: bool = True
    """False if the adapter's answers depend on more than the request; the cache then stores no answers."""
    answers_by_example: bool = False
    """True if the adapter's answers as a judge depend on the example."""
    requests_per_minute: float | None = None
    """The maximum number of requests per minute to an async adapter."""
    tokens_per_minute: float | None = None
    """The maximum number of tokens per minute to and from an async adapter."""
    requests_in_flight: int | None = None
    """The maximum number of concurrent requests to an async adapter, instead of ``--lm-concurrency``."""
    request_window: int | None = None
    """The number of requests from which a batch adapter plans its calls, instead of ``--lm-batch-size`` examples."""
    request_options: frozenset[str] = frozenset()
    """The names of the adapter's options that a request may override; ``"*"`` means all options."""
    known_secrets: tuple[str, ...] = ()
    """Strings that a run hides in its cache, journal, reports and messages."""
    media: frozenset[str] = frozenset()
    """The kinds of media that the adapter accepts in prompts: ``image``, ``audio`` and ``file``."""
    recorded_models: frozenset[str] | None = None
    """The names of the models in a recording, or None for an adapter without a recording."""

    @classmethod
    def of(cls, adapter: object) -> AdapterFacts:
        """Return the facts about ``adapter``; raise UsageError if a member has the wrong type.

        A member that is None counts as missing.
        """
        found = {name: value for name in _ATTRIBUTES if (value := member(adapter, name)) is not None}
        methods = frozenset(filter(partial(method, adapter), ANSWERING_METHODS))
        is_async = iscoroutinefunction(method(adapter, "loglikelihood"))
        return cls(methods, is_async, **found)

    @property
    def streams(self) -> bool:
        """True if the adapter answers many individual requests concurrently instead of batches."""
        return "complete" in self.methods or self.awaits_logprobs


def adapter_name(adapter: object) -> str:
    """Return the adapter's ``name``, or else the name of its class; replace unprintable characters with ``?``."""
    name = getattr(adapter, "name", None)
    text = name if isinstance(name, str) and name else type(adapter).__name__
    return "".join(char if char.isprintable() else "?" for char in text)


def is_ours(adapter: object) -> bool:
    """Return True if the adapter's class belongs to this package."""
    return type(adapter).__module__.startswith("pytest_lmeval.")


def method(adapter: object, name: str) -> Callable[..., Any] | None:
    """Return the adapter's method called ``name``, or None if there is no such method."""
    found = getattr(adapter, name, None)
    return found if callable(found) else None


def member(adapter: object, name: str) -> Any:
    """Return the current value of a known attribute, or None; raise UsageError if it has the wrong type."""
    try:
        given = getattr(adapter, name, None)
    except Exception as error:  # an adapter's own code
        raise UsageError(f"adapter {adapter_name(adapter)}: {name} raised {type(error).__name__}: {error}") from None
    wanted, fits, take = _CHECKS[name]
    if given is None or fits(given):
        return None if given is None else take(given)
    is_shown = isinstance(given, bool | int | float | str) and not is_secret_name(name)
    shown = f"{given!r:.80}" if is_shown else type(given).__name__
    hint = "; a method needs @property" if callable(given) else ""
    raise UsageError(f"adapter {adapter_name(adapter)}: {name} is {shown}; expected {wanted}{hint}")


def members(adapter: object, names: Iterable[str]) -> dict[str, object]:
    """Return the members among ``names`` that the adapter has, without checking their types."""
    return {name: getattr(adapter, name) for name in names if hasattr(adapter, name)}


def tell(adapter: Any, name: str, value: object) -> bool:
    """Set an attribute and return True if the adapter has it; otherwise, return False."""
    if has := hasattr(adapter, name):
        setattr(adapter, name, value)
    return has


def check_adapter(adapter: object, spec: str) -> None:
    """Raise UsageError unless ``adapter`` has an answering method, and its members have the right types."""
    if isinstance(adapter, str):
        raise UsageError(f"expected an adapter, got the name {adapter!r}: use make_adapter({adapter!r})")
    facts = AdapterFacts.of(adapter)
    for name in ("base_url", "is_ready"):
        member(adapter, name)
    if not facts.methods:
        wanted = ", ".join(ANSWERING_METHODS)
        raise UsageError(f"adapter {spec!r} is a {type(adapter).__name__} without any of the methods {wanted}")
    if not is_ours(adapter):
        used = [name for name in ANSWERING_METHODS if name in facts.methods]
        for name in [used[0], *[name for name in used[1:] if name == "loglikelihood"]]:
            _check_call(method(adapter, name), name, f"adapter {spec!r}: {name}")


def _check_call(own: Any, name: str, which: str) -> None:
    """Raise UsageError if a run cannot call the method ``own``, for example because it has the wrong parameters."""
    from pytest_lmeval.registry import wrong_arguments

    if name.startswith("generate") and (iscoroutinefunction(own) or isasyncgenfunction(own)):
        raise UsageError(
            f"{which} is async, and a run would not await it: write `async def complete(self, request)`, which "
            "returns the answer to one request"
        )
    if isgeneratorfunction(own) or isasyncgenfunction(own):
        raise UsageError(f"{which} is a generator: return the answer instead of yielding it")
    if wrong := wrong_arguments(own, 1):
        raise UsageError(f"{which} cannot be called: {wrong}; expected {name}(self, {_TAKES[name]}")


def scrubber_of_objects(*adapters: object) -> Scrubber:
    """Return a scrubber for the adapters' ``known_secrets``, and for secrets in attributes such as ``_token``."""
    scrubber = Scrubber.of_options(*map(_held, adapters))
    scrubber.learn(secret for adapter in adapters for secret in AdapterFacts.of(adapter).known_secrets)
    return scrubber


def secrets_of(adapter: object) -> list[str]:
    """Return an adapter's ``known_secrets``, and the secrets in its attributes that are too long to be common words."""
    held = secrets_among(_held(adapter))
    known = AdapterFacts.of(adapter).known_secrets
    return [*known, *(secret for secret in held if len(secret) >= SHORTEST_IN_ANSWERS)]


def _held(adapter: object) -> Mapping[str, object]:
    # Skip other objects unless they have the name of a secret: a model's tables are long and hold no password.
    held: Mapping[str, object] = getattr(adapter, "__dict__", {})
    return {name: one for name, one in held.items() if isinstance(one, str) or is_secret_name(name)}


def _are_texts(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        return False
    return all(isinstance(one, str) for one in value)


_Check = tuple[str, Callable[[Any], bool], Callable[[Any], Any]]
# For each annotation of a member: a description, a check of a value, and a conversion.
_OF_TYPE: Mapping[str, _Check] = {
    "bool": ("True or False", lambda value: isinstance(value, bool), bool),
    "float": ("a number >= 0", Number(0).allows, lambda value: value or None),
    "int": ("a whole number from 1 to 1000000", Number(1, 1_000_000, whole=True).allows, int),
    "frozenset[str]": ("a list of names", _are_texts, frozenset),
    "tuple[str, ...]": ("a list of texts", _are_texts, tuple),
}
_ATTRIBUTES = {
    each.name: _OF_TYPE[str(each.type).removesuffix(" | None")]
    for each in fields(AdapterFacts)
    if each.name not in ("methods", "awaits_logprobs")
}
_CHECKS: Mapping[str, _Check] = {
    **_ATTRIBUTES,
    # A test's adapter may keep its answers there.
    "answers": ("True or False", lambda value: True, lambda value: value is not False),
    # Clients represent an address as an object whose text is the address.
    "base_url": ("a text", lambda value: not callable(value), str),
    "unnamed_options": _OF_TYPE["frozenset[str]"],
    "is_ready": _OF_TYPE["bool"],
    "fingerprint": ("a text", lambda value: isinstance(value, str), str),
    "manifest": ("a mapping", lambda value: isinstance(value, Mapping), dict),
}
