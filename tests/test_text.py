"""Text from outside is shown, and not obeyed."""

from __future__ import annotations

import os

import pytest

from pytest_lmeval.text import holds_command, is_installed, is_of_package, node_path, printable
from tests.runner_log import ORDERS, commands_in
from tests.tables import each_row


@pytest.mark.parametrize("text", ORDERS)
@pytest.mark.parametrize("keep", ["", "\t", "\n\t"])
def test_no_order_is_left_and_what_was_said_can_be_read(text: str, keep: str) -> None:
    assert [] != commands_in(text)
    shown = printable(text, keep=keep)
    assert [] == commands_in(shown)
    assert text == shown.replace("\\x0d", "\r").encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert shown == printable(shown, keep=keep)


@each_row("text", [text for text in ORDERS if "\x1b" not in text])
def test_an_order_is_found_in_text_that_is_not_to_be_changed(text: str) -> None:
    assert holds_command(text)


@each_row(
    "text",
    [
        "a::b::c",
        "tasks/a.jsonl::b",
        ": : a",
        "## Title",
        "##",
        "#[derive(Debug)]",
        "std::vec",
        "x[::2]",
        "a ## [b]",
        "C:\\x",
        "日本語 é",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert [] == commands_in(text)
    assert not holds_command(text)
    assert text == printable(text) == printable(text, keep="")


def test_a_tab_and_a_line_break_are_kept_where_they_may_be() -> None:
    assert "a\tb\n\\x3a:c\\x1b" == printable("a\tb\n::c\x1b")
    assert "a\\tb\\n::c\\x1b" == printable("a\tb\n::c\x1b", keep="")


@each_row("text", ["--- a", "+++ a", "~~~ a", "^^^ +++", "travis_fold:end:a", "travis_time:start:a"])
def test_what_a_log_is_folded_at_is_spelled_out_of_text_from_outside_alone(text: str) -> None:
    shown = printable(f"a\n{text}", folds=False)
    assert f"a\n\\x{ord(text[0]):02x}{text[1:]}" == shown == printable(shown, folds=False)
    assert text == printable(text)
    assert not holds_command(text)


@each_row("text", ["---", "----- a", "---a", " --- a", "a --- b", "+++", "^^^", "travis"])
def test_what_folds_nothing_stays_as_it_is(text: str) -> None:
    assert text == printable(text, folds=False)


def test_a_path_is_one_word_of_a_node_id() -> None:
    assert "a/\\x3a\\x3aerror\\x3a\\x3a\\nb.jsonl" == node_path("a/::error::\nb.jsonl")
    assert "\\x23#[a]\\u202e\\udcff" == node_path("##[a]\u202e\udcff")
    assert "ünï cödé\xa0[1]: 2.jsonl" == node_path("ünï cödé\xa0[1]: 2.jsonl")


@each_row(
    ("path", "package", "installed"),
    [
        ("/p/.venv/lib/python3/site-packages/a/b.py", True, True),
        ("/usr/local/lib/python3/dist-packages/a.py", True, True),
        (os.__file__, False, True),
        ("<string>", False, True),
        ("/p/app.py", False, False),
        ("/p/site-packages.py", False, False),
        ("/p/site-packages-of-mine/app.py", False, False),
    ],
)
def test_installed_code_is_told_from_the_projects(path: str, package: bool, installed: bool) -> None:
    assert (package, installed) == (is_of_package(path), is_installed(path))
