import pytest


@pytest.fixture
def number():
    return 1


def test_number(number):
    assert number == 1


@pytest.mark.parametrize("text", ["a", "b"])
def test_text(text):
    assert text.isalpha()
