"""Draws docs/house.svg from the imports: the rooms of the package, top to bottom, and the way of one example.

Usage: ``python -m tests.house_picture``. A room is a folder of the package or a module beside them; its row is that of
tests/test_imports_go_down.py. An arrow is an import; one that follows from two others is left out.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape
from pathlib import Path

from tests.test_imports_go_down import PACKAGE, ROWS, modules

PICTURE = Path(__file__).parents[1] / "docs" / "house.svg"
WAY = ("formats", "run", "asking", "adapters", "scoring", "records", "leaderboard", "compare", "report")
"""The rooms that an example enters, in this order."""
_WIDTH, _ROW, _HEIGHT, _LETTER = 1000, 78, 32, 7.4


def arrows() -> dict[str, set[str]]:
    """Return the rooms that each room imports, but for those that it reaches by another one anyway."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, module, imports in modules(PACKAGE):
        for _, name, for_types in imports if len(module) > 1 else ():
            if name[0] == "pytest_lmeval" and len(name) > 1 and not for_types and name[1] != module[1]:
                found[module[1]].add(name[1])
    rooms = {room for row in ROWS for room in row.split()}
    direct = {room: targets & rooms for room, targets in found.items()}
    return {
        room: {to for to in targets if not any(to in _reached(direct, other) for other in targets - {to})}
        for room, targets in direct.items()
    }


def _reached(direct: dict[str, set[str]], room: str) -> set[str]:
    seen: set[str] = set()
    left = [room]
    while left:
        for target in direct.get(left.pop(), ()):
            if target not in seen:
                seen.add(target)
                left.append(target)
    return seen


def _places() -> dict[str, tuple[float, float, float]]:
    """Return the middle, the top and the width of each room's box."""
    found = {}
    for number, row in enumerate(ROWS):
        rooms = row.split()
        widths = [max(64.0, _LETTER * len(room) + 22) for room in rooms]
        gap = (_WIDTH - sum(widths)) / (len(rooms) + 1)
        left = gap
        for room, width in zip(rooms, widths, strict=True):
            found[room] = (left + width / 2, 20.0 + number * _ROW, width)
            left += width + gap
    return found


def draw() -> str:
    """Return the picture as SVG."""
    places = _places()
    height = len(ROWS) * _ROW + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="The rooms of the package and the way of one example">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for room, targets in sorted(arrows().items()):
        x, y, _ = places[room]
        for target in sorted(targets):
            to_x, to_y, _ = places[target]
            start, end = (y + _HEIGHT, to_y) if to_y > y else (y + _HEIGHT / 2, to_y + _HEIGHT / 2)
            middle = (start + end) / 2
            parts.append(
                f'<path d="M{x:.0f} {start:.0f}C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {end:.0f}" '
                'fill="none" stroke="#b8c0cc"/>'
            )
    for room, (x, y, width) in places.items():
        number = WAY.index(room) + 1 if room in WAY else 0
        fill, edge = ("#e3edfb", "#2f6fc4") if number else ("#f6f7f9", "#9aa3b0")
        parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="5" fill="{fill}" '
            f'stroke="{edge}"/><text x="{x:.0f}" y="{y + 21:.0f}" text-anchor="middle">{escape(room)}</text>'
        )
        if number:
            parts.append(
                f'<circle cx="{x - width / 2:.0f}" cy="{y:.0f}" r="9" fill="#2f6fc4"/>'
                f'<text x="{x - width / 2:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="11" fill="#fff">'
                f"{number}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
