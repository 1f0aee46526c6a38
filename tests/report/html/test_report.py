"""The file itself: self-contained, inert, and whole or not there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pytest_lmeval.report.html import render_report, write_report
from tests.report.html.samples import HOSTILE, board_of, compared_run, hostile_run, result

PAGE = Path(render_report.__code__.co_filename).with_name("page")


class _Elements(HTMLParser):
    """Every start tag with its attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.cdata_elem is not None:
            self.raw.append((self.tags[-1][1].get("type") or self.tags[-1][0], data))


def _sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_nothing_but_this_very_script_and_style() -> None:
    page = _Elements(render_report(*compared_run()))
    content = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes) or ""
    policy = dict(rule.split(" ", 1) for rule in content.split("; "))
    raw = {kind: text for kind, text in page.raw if kind in ("script", "style")}
    assert ("'none'", "'none'", "'none'") == tuple(policy[name] for name in ("default-src", "base-uri", "form-action"))
    assert _sha256(raw["script"]) == policy["script-src"]
    assert _sha256(raw["style"]) == policy["style-src"]
    assert "data:" == policy["img-src"]


def test_the_policy_stands_before_anything_that_it_rules() -> None:
    tags = [tag for tag, _ in _Elements(render_report(*compared_run())).tags]
    assert ["html", "head", "meta", "meta"] == tags[:4]
    assert tags.index("script") > 3


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = _Elements(render_report(*compared_run()))
    links = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert ["data:,", "#main"] == links


def test_hostile_text_adds_no_element() -> None:
    board, results, comparison, before = hostile_run()
    page = render_report(board, results, comparison, before)
    found = _Elements(page)
    kinds = {tag for tag, _ in found.tags}
    assert len(board["tasks"]) + 2 == sum(tag == "script" for tag, _ in found.tags)
    assert set() == kinds & {"img", "b"}
    assert all(not name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert page.isascii()


def test_every_data_block_is_json_that_gives_the_texts_back() -> None:
    board, results, comparison, before = hostile_run()
    page = _Elements(render_report(board, results, comparison, before))
    blocks = [json.loads(text) for kind, text in page.raw if kind == "application/json"]
    outputs = {
        answer["output"] for task in blocks[1:] for example in task["examples"] for answer in example.get("answers", ())
    }
    assert set(HOSTILE) == outputs
    assert all(not set("<>&") & set(text) for kind, text in page.raw if kind == "application/json")


def test_equal_runs_give_equal_files() -> None:
    assert render_report(*compared_run()) == render_report(*compared_run())


def test_without_scripts_the_verdict_the_reasons_and_the_scores_are_there() -> None:
    page = render_report(*compared_run())
    static = re.search("<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert static is not None
    assert "<h1>regression: stub.v1, overall" in static[1] or "<h1>regression: stub.v1, an incomplete" in static[1]
    assert "<li>sums: 0.7500 to 0.5000</li>" in static[1]
    assert '<th scope="row">mcq</th>' in static[1]


@pytest.mark.parametrize("results", [[], [result("a", score=None, status="error")]])
def test_a_run_without_a_score_has_a_report(results: list[object]) -> None:
    assert "incomplete" in render_report(board_of(results, complete=False, gate=None), results)  # type: ignore[arg-type]


def test_the_parts_of_the_page_are_ascii_and_ask_for_no_address() -> None:
    for part in PAGE.iterdir():
        text = part.read_text(encoding="ascii")
        assert [] == [url for url in re.findall(r"https?://[^\s\"')]+", text) if url != "http://www.w3.org/2000/svg"]


def test_no_part_of_the_page_parses_text_as_html() -> None:
    makers = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b"
    assert [] == [part.name for part in PAGE.glob("*.js") if re.search(makers, part.read_text(encoding="ascii"))]


def test_the_file_is_written_whole_into_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    write_report(path, *compared_run())
    assert render_report(*compared_run()) == path.read_text(encoding="ascii")
    assert [path] == list(path.parent.iterdir())


def test_a_file_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write_report(tmp_path / "file" / "report.html", *compared_run())
