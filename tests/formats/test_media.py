"""Images, audio and files in prompts: what a task file may name, and what is refused with its place."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

from pytest_lmeval import load_tasks, render
from pytest_lmeval.hashes import rendered
from pytest_lmeval.media import read
from pytest_lmeval.media.content import type_of
from pytest_lmeval.types import Media, Message
from tests.conftest import Project
from tests.needs import module
from tests.pictures import CAT, GIF, JPEG, MP3, PDF, WAV, WEBP
from tests.tables import each_row

SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>'


@each_row(
    ("data", "found"),
    [
        (CAT, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (WAV, "audio/wav"),
        (MP3, "audio/mpeg"),
        (b"\xff\xfb\x90\0", "audio/mpeg"),
        (b"fLaC\0", "audio/flac"),
        (b"OggS\0", "audio/ogg"),
        (b"\0\0\0\x18ftypM4A \0", "audio/mp4"),
        (PDF, "application/pdf"),
        (b"PK\3\4...", "application/zip"),
        (SVG, "image/svg+xml"),
        ("größer".encode(), "text/plain"),
        (b"a\0b", "application/octet-stream"),
        (b"\xfe\xff", "application/octet-stream"),
    ],
)
def test_the_type_is_that_of_the_content(data: bytes, found: str) -> None:
    assert found == type_of(data)


def made(folder: Path) -> dict[str, Message]:
    """Write a task of each kind that names pictures in its own way, and return the last message of each example."""
    (folder / "figures").mkdir()
    (folder / "figures" / "cat.jpg").write_bytes(CAT)  # the name is wrong, and does not matter
    address = f"data:image/jpeg;base64,{b64encode(CAT).decode()}"
    image, file = {"image": "figures/cat.jpg"}, {"image": "figures/{{ name }}.jpg"}
    scored = {"targets": ["cat"], "metric": "exact_match"}
    spec = {"category": "arithmetic", "metric_name": "exact_match", "post_process": "none", "targets": ["cat"]}
    shots = [{"prompt": "1 + 1 =", "completion": "2"}]
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": ["What?", file]},
    ]
    rows: dict[str, Any] = {"rows": [{"name": "cat"}], "target": "{{ name }}", "metric": "exact_match"}
    files: dict[str, list[Any]] = {
        "compact.jsonl": [{"id": "a", "prompt": ["What?", image], **scored}],
        "address.jsonl": [{"id": "a", "prompt": ["What?", {"image": address}], **scored}],
        "checks.jsonl": [{"id": "a", "prompt": ["What?", image], "checks": [scored]}],
        "spec.jsonl": [{"task_id": "a", "prompt": ["What?", image], **spec}],
        "shots.jsonl": [{"task_id": "a", "prompt": ["What?", image], "few_shot_examples": shots, **spec}],
        "turns.jsonl": [{"id": "a", "turns": [{"user": ["What?", image], "targets": ["cat"]}]}],
        "defaults.jsonl": [{"defaults": {"prompt": ["What?", file], "metric": "exact_match"}}, {"name": "cat", **ANY}],
        "parts.yaml": [{"prompt": ["What?", file], **rows}],
        "images.yaml": [{"prompt": "What?", "images": ["figures/{{ name }}.jpg"], **rows}],
        "chat.yaml": [{"prompt": chat, **rows}],
        "chat_images.yaml": [{"prompt": [*chat[:1], {**chat[1], "content": "What?"}], "images": [IN_YAML], **rows}],
    }
    for name, lines in files.items():
        (folder / name).write_text(
            "".join(json.dumps(line, indent=name.endswith("yaml") or None) + "\n" for line in lines)
        )
    return {task.path.name: render(task.examples[0])[-1] for task in load_tasks(folder)}  # type: ignore[misc]


ANY = {"targets": ["cat"]}
IN_YAML = "figures/{{ name }}.jpg"


def test_every_kind_of_task_file_has_the_same_picture(tmp_path: Path) -> None:
    messages = made(tmp_path)
    assert 11 == len(messages)
    for name, message in messages.items():
        (media,) = message.media
        assert ("image", "image/png", len(CAT), CAT) == (media.kind, media.type, media.size, read(media)), name
        source = "data:image/png" if name == "address.jsonl" else "figures/cat.jpg"
        shots = "1 + 1 = 2\n" if name == "shots.jsonl" else ""
        assert ("user", f"{shots}What?\n[image {source}, PNG, 73 B]") == (message.role, message.content), name


def test_the_hash_covers_the_bytes_and_not_the_path(tmp_path: Path) -> None:
    messages = made(tmp_path)
    del messages["shots.jsonl"]
    (hashed,) = {json.dumps(rendered([message])) for message in messages.values()}
    assert [["user", ["What?", ["image", messages["spec.jsonl"].media[0].sha256]]]] == json.loads(hashed)


def test_a_column_of_parquet_has_bytes_or_paths(tmp_path: Path) -> None:
    arrow, parquet = module("pyarrow"), module("pyarrow.parquet")
    images = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    (tmp_path / "dog.gif").write_bytes(GIF)
    cells = [{"bytes": CAT, "path": "1.png"}, {"bytes": None, "path": "dog.gif"}]
    columns = {
        "image": arrow.array(cells, images),
        "more": arrow.array([[{"bytes": JPEG, "path": None}], []], arrow.list_(images)),
        "sound": arrow.array([WAV, MP3]),
        "unused": arrow.array([b"x", b"y"]),
    }
    parquet.write_table(arrow.table({**columns, "label": ["cat", "dog"]}), tmp_path / "rows.parquet")
    (tmp_path / "t.yaml").write_text(
        'prompt: ["What?", {audio: "{{ sound }}"}]\nimages: ["{{ image }}", "{{ more }}"]\ndata: rows.parquet\n'
        'target: "{{ label }}"\nmetric: exact_match\n'
    )
    first, second = ([*example.messages[0].media] for example in load_tasks(tmp_path)[0].examples)
    assert [WAV, CAT, JPEG] == [read(media) for media in first]
    assert [MP3, GIF] == [read(media) for media in second]
    assert ["rows.parquet:1 sound", "rows.parquet:1 image", "rows.parquet:1 more[0]"] == [each.source for each in first]
    assert ["audio", "image", "image"] == [each.kind for each in first]
    text = 'prompt: "{{ image }}"\ndata: rows.parquet\ntarget: "{{ label }}"\nmetric: exact_match\n'
    (tmp_path / "t.yaml").write_text(text)
    assert "has bytes, which are no text: write them as images" in faults(tmp_path)


def faults(folder: Path) -> str:
    try:
        load_tasks(folder)
    except Exception as error:
        return str(error)
    return ""


GOT = "by its content, got"
FAULTS: tuple[tuple[Any, str], ...] = (
    ({"image": "gone.png"}, "prompt[1].image: gone.png: cannot be read: No such file or directory; did you mean 'gon"),
    ({"image": "folder"}, "prompt[1].image: folder: a folder; expected a file"),
    ({"image": "pipe"}, "prompt[1].image: pipe: not a regular file"),
    ({"image": "link.png"}, "prompt[1].image: link.png: outside of the project; expected a file below tasks or the"),
    ({"image": "/etc/hostname"}, "prompt[1].image: /etc/hostname: outside of the project"),
    ({"image": "text.png"}, f"prompt[1].image: text.png: expected PNG, JPEG, GIF or WebP {GOT} text"),
    ({"image": "a.svg"}, f"prompt[1].image: a.svg: expected PNG, JPEG, GIF or WebP {GOT} SVG, which is text: convert"),
    ({"image": "empty.png"}, "prompt[1].image: empty.png: empty"),
    ({"image": "large.png"}, "large.png: 25,000,000 bytes; at most 20,971,520 are read (ini lm_max_media_bytes)"),
    ({"image": "broken.jpg"}, "prompt[1].image: broken.jpg: a broken JPEG: it begins like one, but its end is missing"),
    ({"image": "cut.png"}, "prompt[1].image: cut.png: a broken PNG"),
    ({"image": "cut.gif"}, "prompt[1].image: cut.gif: a broken GIF"),
    ({"image": "cut.webp"}, "prompt[1].image: cut.webp: a broken WebP"),
    ({"image": "data:image/png;base64,iVBO*"}, "prompt[1].image: data:image/png;base64: not base64: "),
    ({"image": "data:image/png"}, "prompt[1].image: data:image/png: expected data:TYPE;base64,BYTES"),
    ({"image": "https://x.org/a.png"}, "https://x.org/a.png: an address, and a run fetches nothing: save the file"),
    ({"audio": "ok.png"}, f"prompt[1].audio: ok.png: expected WAV, MP3, FLAC, Ogg or M4A {GOT} image/png"),
    ({"image": "ok.png", "detail": "best"}, "detail 'best': expected one of low, high, auto, for an image"),
    ({"file": "ok.png", "detail": "low"}, "detail 'low': expected one of low, high, auto, for an image"),
    ({"video": "ok.png"}, "prompt[1]: expected a text, or an object such as"),
    ({"image": 5}, "prompt[1].image: expected a path or a data: address, got 5"),
    ({"type": "image_url", "image_url": {"url": "ok.png"}}, '; write {"image": "PATH"}'),
    ({"role": "user", "content": "ok"}, "prompt: expected a non-empty string, got an array; one text per record"),
    ("only text", "prompt: expected a non-empty string, got an array; one text per record"),
)


def test_every_bad_part_is_a_bad_record_with_its_line(project: Project, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.png"
    outside.write_bytes(CAT)
    files = {"gone_.png": CAT, "text.png": b"hello", "a.svg": SVG, "empty.png": b"", "broken.jpg": JPEG[:-2]}
    cut = {"cut.png": CAT[:-12], "cut.gif": GIF[:-2], "cut.webp": WEBP[:-4], "ok.png": CAT}
    for name, data in {**files, **cut}.items():
        project.write(f"tasks/{name}", data)
    folder = project.path / "tasks"
    (folder / "folder").mkdir()
    (folder / "link.png").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    with (folder / "large.png").open("wb") as large:
        large.truncate(25_000_000)
    records = [{"prompt": ["a", part], "targets": ["b"], "metric": "exact_match"} for part, _ in FAULTS]
    project.task("tasks/t.jsonl", *records)
    shown = project.lmeval("validate", "tasks").stdout.str()
    for number, (_, fault) in enumerate(FAULTS, 1):
        (line,) = [line for line in shown.splitlines() if f"t.jsonl:{number}: " in line]
        assert fault in line
    project.write("pytest.ini", "[pytest]\nlm_max_media_bytes = 50\n")
    project.task("tasks/t.jsonl", {"prompt": ["a", {"image": "ok.png"}], "targets": ["b"], "metric": "exact_match"})
    expected = ["*ok.png: 73 bytes; at most 50 are read (ini lm_max_media_bytes)*"]
    project.lmeval("validate", "tasks").stdout.fnmatch_lines(expected)
    project.run("tasks").stdout.fnmatch_lines(expected)


def test_the_bytes_are_not_kept(tmp_path: Path) -> None:
    (media,) = made(tmp_path)["address.jsonl"].media
    assert "base64" not in repr(media)
    assert {*Media.__slots__} == {"kind", "type", "sha256", "size", "source", "path", "detail"}
    assert 0o700 == Path(media.path).parent.stat().st_mode & 0o777


def test_an_animated_gif_goes_on_as_it_is(tmp_path: Path) -> None:
    frame = GIF[GIF.index(b",") : -1]
    animated = GIF[:-1] + frame + b";"
    (tmp_path / "a.gif").write_bytes(animated)
    record = {"prompt": ["What?", {"image": "a.gif"}], "targets": ["b"], "metric": "exact_match"}
    (tmp_path / "t.jsonl").write_text(json.dumps(record))
    (message,) = load_tasks(tmp_path)[0].examples[0].messages
    assert animated == read(message.media[0])
