"""Makes the pictures of ``docs/images/``: terminal sessions as SVG, and pages in Chromium as PNG.

Usage: ``python -m website.pictures [NAME ...]``, by default all. Each is of a real run in a copy of an example.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from tests.report.html.browser import find_chromium, running_browser
from website.questions import QUESTIONS, Question, walk

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 112
_MODEL = "--lm-adapter=scripted:Model"
_GATED = ["pytest", "tests/", "-q", "--tb=no", _MODEL, "--lm-baseline=baseline.json"]
# The prompt's last line, and how the instruction before it then ends.
_CHANGE = ('order": "A17"}.\nLook the order up before you say anything about it."""', 'order": "A17"}."""')

# The line of the invoices' prompt that asks for JSON.
_REPLY = 'Reply with JSON alone: {"number": "...", "total": "..."}'
# What a terminal shows in lines of one kind, after the third of them.
_FURTHER = re.compile(r"(?<=\n)(?:interval: .*\n)|(?<=  worse: orders: late-a17\n)(?:  worse: .*\n)+")

_WIDTH, _HEIGHT, _MARGIN = 8.0, 18, 16
_PALE, _DARK = "#d0d7de", "#0d1117"
_COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#56d4dd"}
_CODE = re.compile(r"\x1b\[([\d;]*)m")


def copied(example: str, folder: Path) -> Path:
    """Return a copy of an example of ``examples/`` in ``folder``."""
    return shutil.copytree(
        ROOT / "examples" / example, folder / example, ignore=shutil.ignore_patterns("__pycache__", ".*", "reports")
    )


def printed(command: Sequence[str], folder: Path) -> str:
    """Return what a command prints in ``folder``, with the colours of a terminal."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    program = [sys.executable, "-m", *command, "--color=yes", "-p", "no:randomly"]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def parts(line: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the texts of a line, each with its colour and whether it is bold."""
    colour, bold = _PALE, False
    for number, text in enumerate(_CODE.split(line)):
        if not number % 2:
            if text:
                yield text, colour, bold
            continue
        for code in text.split(";"):
            if code in ("", "0"):
                colour, bold = _PALE, False
            colour = _COLOURS.get(code, colour)
            bold = bold or code == "1"


def wrapped(line: str) -> Iterator[list[tuple[str, str, bool]]]:
    """Yield the rows of a terminal of ``COLUMNS`` columns that a line takes."""
    row: list[tuple[str, str, bool]] = []
    room = COLUMNS
    for text, colour, bold in parts(line):
        while len(text) > room:
            yield [*row, (text[:room], colour, bold)]
            text, row, room = text[room:], [], COLUMNS
        row.append((text, colour, bold))
        room -= len(text)
    yield row


def svg(session: str, title: str) -> str:
    """Return a terminal that shows ``session``, text with the colour codes of a terminal, as a picture."""
    rows = [row for line in session.rstrip().splitlines() for row in wrapped(line)]
    width, height = COLUMNS * _WIDTH + 2 * _MARGIN, len(rows) * _HEIGHT + 2 * _MARGIN
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" role="img">\n',
        f"<title>{escape(title)}</title>\n",
        f'<rect width="100%" height="100%" rx="8" fill="{_DARK}"/>\n',
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13">\n',
    ]
    for number, row in enumerate(rows, 1):
        column = 0
        for text, colour, bold in row:
            weight = ' font-weight="bold"' if bold else ""
            place = f'x="{_MARGIN + column * _WIDTH:g}" y="{_MARGIN + number * _HEIGHT - 5}"'
            length = f'textLength="{len(text) * _WIDTH:g}" lengthAdjust="spacingAndGlyphs"'
            found.append(f'<text {place} {length} fill="{colour}"{weight} xml:space="preserve">{escape(text)}</text>\n')
            column += len(text)
    return "".join([*found, "</g>\n</svg>\n"])


def made_worse(folder: Path) -> tuple[Path, str]:
    """Run the example agent with a baseline, change its prompt, run it again; return its folder and the session."""
    agent = copied("agent", folder)
    first = printed([*_GATED, "--lm-update-baseline"], agent)
    source = agent / "shop_agent.py"
    source.write_text(source.read_text("utf-8").replace(*_CHANGE), "utf-8")
    second = _FURTHER.sub("  ...\n", printed(_GATED, agent))
    command = "$ " + " ".join(_GATED)
    return agent, "\n".join(
        [
            f"{command} --lm-update-baseline",
            *first.splitlines()[:1],
            "...",
            *first.splitlines()[-1:],
            "$ $EDITOR shop_agent.py   # the prompt gets shorter",
            command,
            second,
        ]
    )


def session(picture: Path) -> None:
    """Make the picture of a terminal with a run that is red."""
    with tempfile.TemporaryDirectory() as folder:
        picture.write_text(svg(made_worse(Path(folder))[1], "An agent whose prompt was changed, and its gate"), "utf-8")


def page(picture: Path) -> None:
    """Make the picture of the same run's page."""
    with tempfile.TemporaryDirectory() as folder:
        photograph(made_worse(Path(folder))[0] / "reports" / "report.html", picture, (1200, 860))


def media(picture: Path) -> None:
    """Make the picture of an example with an image, of the invoices after their prompt was changed."""
    with tempfile.TemporaryDirectory() as folder:
        invoices = copied("invoices", Path(folder))
        subprocess.run([sys.executable, "draw.py"], cwd=invoices, check=True, stdout=subprocess.DEVNULL)
        task = invoices / "tasks" / "invoices.yaml"
        task.write_text(task.read_text("utf-8").replace(_REPLY, "Reply in one sentence."), "utf-8")
        printed(["pytest", "tasks/", "-q", "--tb=no", "--lm-gate=none", "--lm-adapter=scripted:Reader"], invoices)
        photograph(invoices / "reports" / "report.html", picture, (1200, 640), fragment="#/task/invoices?id=a")


# Three models that are wrong in every sum whose number their own number divides, and half as often in rounding.
_MODELS = """
import re
from pytest_lmeval import Completion

class Model:
    def __init__(self, name, wrong, cost):
        self.name, self.wrong, self.cost = name, int(wrong), float(cost)

    async def complete(self, request):
        number = int(re.search("[0-9]+", request.text)[0])
        said = number * 2 if "+" in request.text else number
        wrong = self.wrong if "+" in request.text else 2 * self.wrong
        sure = f"It is {said}." if number % wrong else f"It is {said + 1}, I think."
        return Completion(sure, prompt_tokens=20, completion_tokens=6, cost=self.cost)
"""
_ASKED = {"sums": "What is {n} + {n}?", "rounding": "Round {n}.2 to a whole number."}
# Seven pictures are of one run.
_FOLDER = tempfile.TemporaryDirectory()
COMPARED = Path(_FOLDER.name)
_SEVERAL = (("large", 41, 0.004), ("medium", 11, 0.0015), ("small", 3, 0.0004))


def answering(question: Question) -> Callable[[Path], None]:
    """Return what makes the picture of a question's answer on the page of three models."""

    def make(picture: Path) -> None:
        photograph(compared(COMPARED) / "reports" / "report.html", picture, question.size, question)

    return make


def compared(folder: Path) -> Path:
    """Run two tasks of 40 examples with three models in ``folder``, if that is not done yet, and return it."""
    if (folder / "reports").exists():
        return folder
    (folder / "models.py").write_text(_MODELS, "utf-8")
    (folder / "tasks").mkdir()
    for task, asked in _ASKED.items():
        records = [
            {
                "id": f"{task}-{n}",
                "prompt": asked.format(n=n),
                "targets": [f"It is {2 * n if task == 'sums' else n}."],
                "metric": "exact_match",
            }
            for n in range(1, 41)
        ]
        (folder / "tasks" / f"{task}.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records), "utf-8"
        )
    options = [
        option
        for name, wrong, cost in _SEVERAL
        for option in (
            f"--lm-adapter={name}=models:Model",
            *(
                f"--lm-adapter-arg={name}:{key}={value}"
                for key, value in (("name", name), ("wrong", wrong), ("cost", cost))
            ),
        )
    ]
    printed(["pytest", "tasks/", "-q", "--tb=no", "--lm-gate=none", *options], folder)
    return folder


def photograph(
    source: Path, picture: Path, size: tuple[int, int], question: Question | None = None, fragment: str = ""
) -> None:
    """Open an HTML file in Chromium, make the clicks of a ``question``; write a PNG of a window of ``size`` pixels."""
    if not source.is_file():
        raise SystemExit(f"{source}: the run wrote no page")
    program = find_chromium()
    if program is None:
        raise SystemExit("no Chromium found; LMEVAL_TEST_CHROMIUM names one")
    with running_browser(program) as browser:
        browser.size(*size)
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(source, fragment)
        if question is not None:
            walk(browser, question)
            browser.js(f"document.querySelector({json.dumps(question.top)}).scrollIntoView()")
            browser.settle()
        browser.picture(picture)


PICTURES: Mapping[str, Callable[[Path], None]] = {
    **{question.picture: answering(question) for question in QUESTIONS},
    "media.png": media,
    "page.png": page,
    "session.svg": session,
}
"""How each picture is made, by the name of its file."""


def main(names: Sequence[str]) -> int:
    """Make the pictures of these names, by default all; return 0, or 2 where there is no such picture."""
    if unknown := [name for name in names if name not in PICTURES]:
        print(f"no such picture: {', '.join(unknown)}; choose from {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        PICTURES[name](IMAGES / name)
        print(f"{IMAGES / name}: {(IMAGES / name).stat().st_size // 1024} KiB")
    _FOLDER.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
