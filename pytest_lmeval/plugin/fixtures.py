"""The fixtures of a run; a conftest may override every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import RunState

_TWO_WAYS = (
    "several models: --lm-adapter names them, and a conftest.py overrides the lm_adapter fixture; leave one of both"
)
_NO_JUDGE = "the lm_judge fixture needs --lm-judge SPEC, or an override in a conftest"


@pytest.fixture(scope="session")
def lm_adapter(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the model under test, from --lm-adapter; override it to configure one in Python."""
    yield from _opened(pytestconfig, _adapter)


@pytest.fixture(scope="session")
def lm_judge(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the adapter that judges answers, from --lm-judge; without it, an object that is false."""
    yield from _opened(pytestconfig, _judge)


@pytest.fixture(scope="session")
def lm_engine(lm_adapter: Any, lm_judge: Any, pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the engine, which asks the adapter ahead of the scoring."""
    from pytest_lmeval.plugin.asking.state import run_states

    states = run_states(pytestconfig)
    if "" not in states:
        from pytest_lmeval.plugin.settings.models import ByModel

        if not isinstance(lm_adapter, ByModel):
            raise pytest.UsageError(_TWO_WAYS)
    with ExitStack() as stack:
        engines = {}
        for label, state in states.items():
            judge = lm_judge.get(label) if label and isinstance(lm_judge, ByModel) else lm_judge
            engines[label] = state.ask(lm_adapter[label] if label else lm_adapter, judge)
            stack.callback(state.run.close)
        yield _provided(engines)


@pytest.fixture(scope="session")
def lm_render() -> Callable[[Any], Any]:
    """Provide the function from an example to its prompt, text or a sequence of messages."""
    from pytest_lmeval.task import render

    return render


@pytest.fixture(scope="session")
def lm_sandbox(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the place where code that the model wrote is run, from --lm-sandbox."""
    from pytest_lmeval.plugin.asking.state import run_states

    states = run_states(pytestconfig)
    with ExitStack() as stack:
        yield _provided({label: stack.enter_context(each.run.sandbox(each.plan)) for label, each in states.items()})


@pytest.fixture
def lm(request: pytest.FixtureRequest, lm_engine: Any, lm_judge: Any) -> Iterator[Any]:
    """Provide what an eval function asks the model with, and scores by: ask, judge, score, step, span, note."""
    from pytest_lmeval.plugin.asking.state import run_state
    from pytest_lmeval.plugin.evals.item import session_of
    from pytest_lmeval.plugin.evals.process import provide

    yield from provide(request, session_of(run_state(request.config)), lm_engine, lm_judge)


@pytest.fixture(scope="session")
def lm_base_url(lm_engine: Any, lm_judge: Any, pytestconfig: pytest.Config) -> str:
    """Provide the address of the endpoint for an application's own client; requests need lm.token as their key."""
    from pytest_lmeval.plugin.asking.state import run_state
    from pytest_lmeval.plugin.evals.item import session_of

    return f"{session_of(run_state(pytestconfig)).shared.endpoint.root}/v1"


@pytest.fixture
def lm_env(lm: Any) -> Iterator[None]:
    """Have clients that the application makes itself find the endpoint: OPENAI_BASE_URL and OPENAI_API_KEY are set."""
    from pytest_lmeval.functions.environment import pointed

    with pointed(lm):
        yield


@pytest.fixture
def lm_example(request: pytest.FixtureRequest) -> Any:
    """Provide the example of the running item; None in a test that is no example."""
    return getattr(request.node, "example", None)


def _adapter(state: RunState) -> Any:
    from pytest_lmeval.plugin.asking.state import make
    from pytest_lmeval.plugin.settings.settings import spec_of

    # Where no example needed it, another test may.
    if state.adapter is None:
        config = state.config
        return make(config, state.plan.registry, spec_of(config), dict(config.option.lm_adapter_arg))
    return state.adapter


def _judge(state: RunState) -> Any:
    from pytest_lmeval.plugin.asking.state import make_judge

    if state.judge is None and state.config.option.lm_judge:
        return make_judge(state.config, state.plan.registry)
    return state.judge or _NoJudge()


def _opened(config: pytest.Config, make: Callable[[RunState], Any]) -> Iterator[Any]:
    """Yield what ``make`` makes of the state, or for each of several models; close it afterwards."""
    from pytest_lmeval.adapters.facts import method
    from pytest_lmeval.plugin.asking.state import run_states

    # Where one cannot be made, or does not close, the others are closed all the same.
    with ExitStack() as stack:
        made = {}
        for label, state in run_states(config).items():
            made[label] = each = make(state)
            close = None if isinstance(each, _NoJudge) else method(each, "close")
            if close is not None:
                stack.callback(close)
        yield _provided(made)


def _provided(values: Mapping[str, Any]) -> Any:
    """Return what a fixture provides of these ``values`` by label: that of a single model, or one for each."""
    if "" in values:
        return values[""]
    from pytest_lmeval.plugin.settings.models import ByModel

    return ByModel(values)


class _NoJudge:
    """The judge of a run without --lm-judge: it is false, and any use of it is a usage error."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise pytest.UsageError(_NO_JUDGE)
