"""A metric and fixtures that can be heard, and the outcomes that pytest knows."""

import logging
import sys
import warnings

import pytest

from pytest_lmeval.types import Metric


def loud(prediction, targets, extras):
    print("printed for", prediction)
    print("on stderr for", prediction, file=sys.stderr)
    logging.getLogger("loud").warning("logged for %s", prediction)
    if prediction == "warn":
        warnings.warn("warned for it", stacklevel=1)
    if prediction == "skip":
        pytest.skip("no reason")
    if prediction == "xfail":
        pytest.xfail("known")
    return float(prediction in targets)


def pytest_lmeval_register(registry):
    registry.metrics["loud"] = Metric("loud", loud)


@pytest.fixture(scope="session")
def shelf():
    print("the shelf is set up")
    yield ["book"]
    print("the shelf is torn down")


@pytest.fixture(autouse=True, scope="module")
def room(request):
    print("up", request.node.name)
    yield
    print("down", request.node.name)
