"""Builds the docs as a site: a folder that any web server can serve, in ``build/site`` or the one that is named.

Usage: ``python website/build.py [FOLDER]``, with the extra ``docs``. A warning of Sphinx, a link or an anchor that
leads nowhere, and a file that would be fetched from elsewhere end it with 1, and the folder is as it was.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.cmd.build import build_main

ROOT = Path(__file__).parents[1]
_INDEX = "searchindex.js"
_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The links of a page, its anchors, and the files that a browser fetches with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names."""
        values = {key: value for key, value in attrs if value}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _FETCHED and _FETCHED[tag] in values and values.get("rel") != "canonical":
            self.fetched.append(values[_FETCHED[tag]])


def faults(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the site in ``folder``, a line each."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.fetched and parts.scheme != "data":
                    yield f"{name}: fetched from elsewhere: {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: no such file: {link}"
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: no such anchor: {link}"
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text("utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            yield f"{path.relative_to(folder)}: fetches from elsewhere"
    if not (folder / _INDEX).exists():
        yield f"{_INDEX}: there is no index to search"


def build(made: Path) -> list[str]:
    """Build the site in the folder ``made``; return what is wrong with it, a line each."""
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", str(Path(__file__).parent), "-d", f"{made}.read"]
    if build_main([*options, str(ROOT / "docs"), str(made)]):
        return ["Sphinx: see above"]
    return list(faults(made))


def main(arguments: list[str]) -> int:
    """Build the site; return 0, 1 after saying what is wrong, or 2 where the folder holds something else."""
    folder = Path(arguments[0] if arguments else ROOT / "build" / "site").resolve()
    if folder.exists() and any(folder.iterdir()) and not (folder / _INDEX).exists():
        print(f"{folder}: is not empty, and no site; name another folder", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / "site"
        if found := build(made):
            print(*found, sep="\n", file=sys.stderr)
            return 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)
    print(f"{len(list(folder.rglob('*.html')))} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
