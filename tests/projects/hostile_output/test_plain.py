import pytest


def test_message():
    raise AssertionError("\ud800")


def test_output():
    print("\udcff")
    assert False


def test_assert():
    assert "\ud800" == "\ud801"


@pytest.fixture
def teardown():
    yield
    raise ValueError("\ud800")


def test_teardown(teardown):
    pass


@pytest.fixture
def setup():
    raise ValueError("\ud800")


def test_setup(setup):
    pass


def test_skip():
    pytest.skip("\ud800")


@pytest.mark.xfail(reason="\ud800")
def test_xfail():
    assert False


def test_property(record_property):
    record_property("x", "\ud800")
    assert False


def test_fine():
    pass
