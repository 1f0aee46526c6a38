"""The fixtures of a run; a conftest may override every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

_NO_JUDGE = "the lm_judge fixture needs --lm-judge SPEC, or an override in a conftest"


@pytest.fixture(scope="session")
def lm_adapter(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the model under test, from --lm-adapter; override it to configure one in Python."""
    from pytest_lmeval.plugin.state import run_state

    adapter = run_state(pytestconfig).adapter()
    yield adapter
    close = getattr(adapter, "close", None)
    if callable(close):
        close()


@pytest.fixture(scope="session")
def lm_judge(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the adapter that judges answers, from --lm-judge; without it, an object that is false."""
    from pytest_lmeval.plugin.state import run_state

    judge = run_state(pytestconfig).judge()
    if judge is None:
        yield _NoJudge()
        return
    yield judge
    close = getattr(judge, "close", None)
    if callable(close):
        close()


@pytest.fixture(scope="session")
def lm_engine(lm_adapter: Any, lm_judge: Any, pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide what stands between the examples and the adapter: requests are sent ahead of the scoring."""
    from pytest_lmeval.plugin.state import run_state

    state = run_state(pytestconfig)
    yield state.make_engine(lm_adapter)
    state.run.close()


@pytest.fixture(scope="session")
def lm_render() -> Callable[[Any], Any]:
    """Provide the function from an example to its prompt, text or a sequence of messages."""
    from pytest_lmeval.rendering import render

    return render


@pytest.fixture(scope="session")
def lm_sandbox(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Provide the place where code that the model wrote is run, from --lm-sandbox."""
    from pytest_lmeval.plugin.state import run_state

    with run_state(pytestconfig).run.programs.open() as sandbox:
        yield sandbox


@pytest.fixture
def lm(request: pytest.FixtureRequest, lm_engine: Any, lm_judge: Any) -> Iterator[Any]:
    """Provide what an eval function asks the model with, and scores by: ask, judge, score, step, span, note."""
    from pytest_lmeval.plugin.evals.fixture import provide

    yield from provide(request, lm_engine, lm_judge)


@pytest.fixture(scope="session")
def lm_base_url(lm_engine: Any, lm_judge: Any, pytestconfig: pytest.Config) -> str:
    """Provide the address of the endpoint for an application's own client; requests need lm.token as their key."""
    from pytest_lmeval.plugin.state import run_state

    return f"{run_state(pytestconfig).evals.endpoint_for(lm_engine, lm_judge)}/v1"


@pytest.fixture
def lm_example(request: pytest.FixtureRequest) -> Any:
    """Provide the example of the running item; None in a test that is no example."""
    return getattr(request.node, "example", None)


class _NoJudge:
    """The judge of a run without --lm-judge: it is false, and any use of it is a usage error."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise pytest.UsageError(_NO_JUDGE)
