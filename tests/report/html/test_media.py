"""Images, audio and files on the page: embedded small ones without their metadata, and links to others."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.data.spilled import spilled
from pytest_lmeval.media.stripped import without_metadata
from pytest_lmeval.report.html import embedded, render_report
from tests.conftest import Project
from tests.pictures import CAT, DOG, GIF, JPEG, PDF, WAV, WEBP, png
from tests.report.html.browser import FACES, NARROW, Browser
from tests.report.html.samples import compared_run
from tests.report.html.test_accessibility import FOUND, axe

MODEL = """
from pytest_lmeval import Completion

class Model:
    name = "seer"
    media = frozenset({"image", "audio", "file"})

    def generate_requests(self, requests):
        return [Completion("cat") for _ in requests]
"""
FUNCTION = """
from pytest_lmeval import Image, eval_task

@eval_task("f")
async def test_f(lm):
    await lm.ask(["Which?", Image("tasks/cat.png")])
    lm.output("a cat")
    lm.score("right", 0.0)
"""
PLACE = b"59.4370 N, 24.7536 E"
PHOTO = JPEG[:2] + b"\xff\xe1" + struct.pack(">H", 8 + len(PLACE)) + b"Exif\0\0" + PLACE + JPEG[2:] + PLACE
LARGE = png(0, 0, 200, extra=bytes(200_000))
SOUND = WAV[:40] + struct.pack("<I", 800) + bytes(range(100)) * 8
FILES = {"cat.png": CAT, "photo.jpg": PHOTO, "large.png": LARGE, "a.wav": SOUND, "a.pdf": PDF, "<b>.png": DOG}


@pytest.fixture
def page(project: Project) -> Path:
    """Run a task with each kind of media, and an eval function."""
    project.write("seer.py", MODEL)
    project.usual = ("--lm-adapter=seer:Model",)
    for name, data in FILES.items():
        project.write(f"tasks/{name}", data)
    parts: dict[str, Any] = {
        "cat": {"image": "cat.png"},
        "twice": {"image": "cat.png"},
        "photo": {"image": "photo.jpg"},
    }
    parts |= {"large": {"image": "large.png"}, "sound": {"audio": "a.wav"}, "paper": {"file": "a.pdf"}}
    parts |= {"odd": {"image": "<b>.png"}, "address": {"image": f"data:image/gif;base64,{b64encode(GIF).decode()}"}}
    records = [{"id": id, "prompt": ["Which?", part], "targets": ["cat"]} for id, part in parts.items()]
    turns = [{"user": ["First?", parts["cat"]], "targets": ["cat"]}, {"user": ["Then?", parts["odd"]]}]
    talk = {"id": "talk", "turns": turns}
    project.task("tasks/t.jsonl", *({"metric": "exact_match", **record} for record in records))
    project.task("tasks/u.jsonl", talk)
    project.write("test_f.py", FUNCTION)
    project.run("tasks", "test_f.py")
    return project.path / "reports/report.html"


def _blocks(page: Path) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, bytes]]]:
    """Return the facts of the media on a page by their first letters of SHA-256, and the types and bytes it embeds."""
    found = re.findall(r'<script type="application/json" id="media-?(\w*)">(.*?)</script>', page.read_text())
    assert len(found) == len(dict(found))
    texts = {digest: json.loads(text.replace("\\u002b", "+")) for digest, text in found}
    facts = texts.pop("")
    pairs = {digest: text.removeprefix("data:").split(";base64,") for digest, text in texts.items()}
    return facts, {digest: (kind, b64decode(data)) for digest, (kind, data) in pairs.items()}


def _of(data: bytes) -> str:
    return sha256(data).hexdigest()


def test_the_page_has_the_bytes_of_small_files_once_and_links_to_others(page: Path) -> None:
    facts, held = _blocks(page)
    assert {_of(data) for data in (*FILES.values(), GIF)} == {*facts}
    assert {_of(data): data for data in (CAT, DOG, GIF, SOUND)}.items() <= {
        digest: data for digest, (_, data) in held.items()
    }.items()
    assert {_of(CAT), _of(DOG), _of(GIF), _of(SOUND), _of(PHOTO)} == {*held}
    assert "audio/wav" == held[_of(SOUND)][0]
    assert {"is": "PNG, 200 kB", "link": "../tasks/large.png"} == facts[_of(LARGE)]
    assert {"is": "PDF, 45 B", "link": "../tasks/a.pdf"} == facts[_of(PDF)]


def test_the_place_of_a_photo_is_not_in_the_page(page: Path) -> None:
    _, held = _blocks(page)
    assert ("image/jpeg", JPEG) == held[_of(PHOTO)]
    assert not any(PLACE in data for _, data in held.values())


def test_a_report_of_a_ledger_has_the_files_that_did_not_change(page: Path, project: Project) -> None:
    (project.path / "tasks/cat.png").write_bytes(CAT[:-1] + b"!")
    (project.path / "tasks/a.pdf").unlink()
    assert 0 == project.lmeval("report", "reports/ledger.jsonl", "-o", "out/again.html").ret
    facts, held = _blocks(project.path / "out/again.html")
    assert {_of(DOG), _of(SOUND), _of(PHOTO)} == {*held}
    assert {"is": "PNG, 73 B"} == facts[_of(CAT)]
    assert {"is": "PDF, 45 B"} == facts[_of(PDF)]
    assert "../tasks/large.png" == facts[_of(LARGE)]["link"]


def test_files_beyond_the_total_are_links(page: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MOST_IN_ALL", len(CAT))
    # A data set of the same run may hold the bytes, too.
    spilled(DOG)
    record = {"image": "cat.png", "type": "image/png", "sha256": _of(CAT), "size": len(CAT)}
    other = {**record, "image": "<b>.png", "sha256": _of(DOG), "size": len(DOG)}
    messages = [{"role": "user", "content": [other, record]}]
    shown = [{"status": "passed", "messages": messages}, {"status": "failed", "messages": [{"content": [record]}]}]
    blocks = dict(
        embedded.media_blocks(
            [("t", json.dumps({"examples": shown}))], {"t": [project.path / "tasks"]}, project.path / "reports"
        )
    )
    facts = json.loads(blocks.pop("media"))
    assert [f"media-{_of(CAT)}"] == [*blocks], "an example that failed comes first"
    assert "../tasks/%3Cb%3E.png" == facts[_of(DOG)]["link"]


def test_a_hostile_record_names_nothing_that_the_page_reads(tmp_path: Path) -> None:
    (tmp_path / "evil.svg").write_bytes(b"<svg/>")
    digest = _of(b"<svg/>")
    svg = {"image": "evil.svg", "type": "image/png", "sha256": digest, "size": 6}
    wrong = [{**svg, "sha256": '"><script>'}, {**svg, "size": -1}, {**svg, "image": 5}, {**svg, "image": "\0"}]
    text = json.dumps({"examples": [{"messages": [svg, *wrong]}]})
    ((id, facts),) = embedded.media_blocks([("t", text)], {"t": [tmp_path]}, tmp_path)
    assert ("media", {digest: {"is": "PNG, 6 B", "link": "evil.svg"}}) == (id, json.loads(facts))


def test_a_page_without_media_does_not_enter_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(embedded, "media_blocks")
    assert 'id="media' not in render_report(*compared_run())


def test_metadata_is_cut_from_each_format() -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + b"sums"

    def webp(*chunks: tuple[bytes, bytes]) -> bytes:
        body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data for name, data in chunks)
        return b"RIFF" + struct.pack("<I", len(body)) + body

    texts = b"".join(chunk(name, PLACE) for name in (b"tEXt", b"zTXt", b"iTXt", b"eXIf"))
    head = 8 + 25
    assert CAT == without_metadata(CAT[:head] + texts + CAT[head:] + PLACE, "image/png")
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(PLACE)) + PLACE
    assert JPEG == without_metadata(JPEG[:2] + comment.replace(b"\xfe", b"\xed", 1) + comment + JPEG[2:], "image/jpeg")
    whole = webp((b"VP8X", b"\x1c" + bytes(9)), (b"VP8L", b"ab"), (b"EXIF", PLACE), (b"XMP ", PLACE))
    assert webp((b"VP8X", b"\x10" + bytes(9)), (b"VP8L", b"ab")) == without_metadata(whole, "image/webp")
    assert WEBP == without_metadata(WEBP, "image/webp")
    for data, found in ((CAT, "image/png"), (JPEG, "image/jpeg"), (whole, "image/webp")):
        assert not any(PLACE in (without_metadata(data[:end], found) or b"") for end in range(12, len(data)))
        assert without_metadata(data[:-1], found) is None


@pytest.mark.again
def test_workers_leave_their_bytes_to_the_page(page: Path, project: Project) -> None:
    (project.path / "tmp").mkdir()
    alone = _blocks(page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(project.path / "tmp"))
        project.run("tasks", "test_f.py", "-n2")
    assert alone == _blocks(page)
    assert [] == [*(project.path / "tmp").glob("lmeval-media-*")]


def test_several_models_share_the_pictures(page: Path, project: Project) -> None:
    project.run("tasks", "--lm-adapter=a=seer:Model", "--lm-adapter=b=seer:Model")
    facts, held = _blocks(page)
    assert {_of(CAT), _of(DOG), _of(GIF), _of(SOUND), _of(PHOTO)} == {*held}
    assert "../tasks/large.png" == facts[_of(LARGE)]["link"]
    assert "../../tasks/large.png" == _blocks(page.parent / "a/report.html")[0][_of(LARGE)]["link"]


def test_a_picture_opens_larger_and_audio_plays(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/t?id=cat")
    browser.wait_for("document.querySelector('.picture img').naturalWidth === 2")
    assert "image cat.png, PNG, 73 B" == browser.text(".media figcaption")
    browser.js("document.querySelector('.picture').focus()")
    browser.press("Enter")
    assert "image cat.png, PNG, 73 B" == browser.text("dialog.larger[open] p span")
    browser.press("Escape")
    browser.wait_for("document.querySelector('dialog') === null")
    assert [True, "#/task/t?id=cat"] == browser.js("[document.activeElement.matches('.picture'), location.hash]")
    browser.js("document.querySelector('.picture').click(); document.querySelector('dialog button').click()")
    browser.wait_for("document.querySelector('dialog') === null")
    browser.open(page, "#/task/t?id=sound")
    browser.wait_for("document.querySelector('audio').duration > 0.09")
    browser.open(page, "#/task/t?id=odd")
    assert "image <b>.png, PNG, 72 B" == browser.text(".media figcaption")
    browser.open(page, "#/task/t?id=large")
    assert "../tasks/large.png" == browser.js("document.querySelector('.media a').getAttribute('href')")
    browser.open(page, "#/task/u?id=talk")
    assert ["image cat.png, PNG, 73 B", "image <b>.png, PNG, 72 B"] == browser.texts("ol .media figcaption")
    browser.open(page, "#/task/f?id=test_f")
    browser.js("document.querySelector('.step summary').click()")
    browser.wait_for("document.querySelectorAll('.picture').length === 2")
    assert "Which? [image tasks/cat.png, PNG, 73 B]" in browser.text(".examples tbody")
    assert not [each for each in browser.events if each["method"] in FACES]


@pytest.mark.parametrize("size", [(1280, 900), NARROW], ids=["wide", "phone"])
def test_pages_with_media_have_no_violation(browser: Browser, page: Path, size: tuple[int, int]) -> None:
    browser.size(*size)
    for dark in (False, True):
        browser.dark(dark)
        for id in ("cat", "sound", "large"):
            browser.open(page, f"#/task/t?id={id}")
            browser.js(f"{axe()};0")
            assert [] == browser.js(FOUND), id
            assert browser.js("document.documentElement.scrollWidth <= innerWidth")
        browser.open(page, "#/task/t?id=cat")
        browser.js(f"{axe()};document.querySelector('.picture').click();0")
        assert [] == browser.js(FOUND)
