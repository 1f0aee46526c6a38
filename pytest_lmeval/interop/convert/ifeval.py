"""Convert IFEval (https://github.com/google-research/google-research/tree/master/instruction_following_eval).

Each instruction becomes a regex check that follows IFEval's strict checker, so an empty answer follows no instruction.
For a letter outside a to z, IFEval's checker counts a random letter, but the regex check counts the requested letter.
Instructions that need a language detector or a sentence tokenizer have no check.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.interop.files import NewFiles, check_new, encode_lines, read_records, text_of

_NOT_EMPTY = r"\A(?=.*\S)"
_ANSWERS = ["My answer is yes.", "My answer is no.", "My answer is maybe."]
_PLACEHOLDER = r"\[[^\n\]]*\]"
_TITLE = r"<<[^\n]*[^\s<>][^\n]*>>"


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of the instruction called ``name``.

    ``place`` is the line of the instruction's record.
    """

    place: str
    name: str
    values: Mapping[str, Any]

    def of(self, key: str, kind: type) -> Any:
        """Return one argument; raise UsageError if it is missing or has another type."""
        value = self.values.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UsageError(f"{self.place}: {self.name}: expected {key!r}, {kind.__name__}, got {value!r:.80}")
        return value

    def words(self, key: str) -> list[str]:
        """Return one argument that is a list of patterns."""
        return [f"(?:{word})" for word in self.of(key, list)]

    def times(self, part: str, number: str, relation: str = "") -> str:
        """Return a pattern for text that contains ``part`` as often as the arguments require."""
        count, how = self.of(number, int), self.of(relation, str) if relation else "at least"
        # The text before each match contains no other match, so there is only one way to count.
        return _related(self, rf"(?:(?:(?!{part}).)*{part}){{{count}}}", how)


def _related(given: Given, pattern: str, how: str) -> str:
    if how not in ("at least", "less than"):
        raise UsageError(f"{given.place}: {given.name}: expected 'at least' or 'less than', got {how!r:.80}")
    return f"(?{'=' if how == 'at least' else '!'}{pattern})"


def _number_of_words(given: Given) -> str:
    count = given.of("num_words", int)
    pattern = rf"\W*(?:\w+\W+){{{count - 1}}}\w" if count > 0 else ""
    return _related(given, pattern, given.of("relation", str))


def _postscript(given: Given) -> str:
    marker = given.of("postscript_marker", str)
    known = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return rf"(?=.*{known.get(marker) or marker})"


def _frequency(given: Given) -> str:
    return given.times(f"(?:{given.of('keyword', str).strip()})", "frequency", "relation")


def _letters(given: Given) -> str:
    return given.times(re.escape(given.of("letter", str)), "let_frequency", "let_relation")


def _sections(given: Given) -> str:
    return given.times(rf"{given.of('section_spliter', str)}\s?\d", "num_sections")


_PATTERNS: Mapping[str, tuple[str, Callable[[Given], str]]] = {
    "detectable_content:number_placeholders": ("s", lambda given: given.times(_PLACEHOLDER, "num_placeholders")),
    "detectable_content:postscript": ("is", _postscript),
    "detectable_format:constrained_response": ("s", lambda given: f"(?=.*(?:{'|'.join(map(re.escape, _ANSWERS))}))"),
    "detectable_format:multiple_sections": ("s", _sections),
    "detectable_format:title": ("s", lambda given: f"(?=.*{_TITLE})"),
    "keywords:existence": ("is", lambda given: "".join(f"(?=.*{word})" for word in given.words("keywords"))),
    "keywords:forbidden_words": ("is", lambda given: rf"(?!.*\b(?:{'|'.join(given.words('forbidden_words'))})\b)"),
    "keywords:frequency": ("is", _frequency),
    "keywords:letter_frequency": ("is", _letters),
    "length_constraints:number_words": ("s", _number_of_words),
    "punctuation:no_comma": ("s", lambda given: "(?!.*,)"),
    "startend:end_checker": ("is", lambda given: rf'(?=.*{re.escape(given.of("end_phrase", str).strip())}"*\s*\Z)'),
    "startend:quotation": ("s", lambda given: r'(?=\s*".*"\s*\Z)'),
    "combination:repeat_prompt": (
        "is",
        lambda given: rf"(?=\s*{re.escape(given.of('prompt_to_repeat', str).strip())})",
    ),
}
"""Flags, and the pattern of answers that follow an instruction."""


def convert_ifeval(source: Path, destination: Path) -> list[Path]:
    """Write ``ifeval.jsonl``, and ``ifeval.left_out.txt`` if records were skipped; return the paths.

    ``source`` is ``input_data.jsonl``; each line has ``key``, ``prompt``, ``instruction_id_list`` and ``kwargs``. A
    record passes if all its checks pass; the score is the share of checks that pass. A record with an instruction that
    has no check is skipped, and the text file counts such records by instruction.
    """
    tasks: list[dict[str, Any]] = []
    lacking: Counter[str] = Counter()
    places: dict[str, str] = {}
    left_out = 0
    for place, record in read_records(source):
        instructions = _instructions(record, place)
        check_new("key", f"ifeval-{record['key']}", place, places)
        if unknown := {given.name for given in instructions} - _PATTERNS.keys():
            lacking.update(unknown)
            left_out += 1
            continue
        tasks.append(
            {
                "id": f"ifeval-{record['key']}",
                "prompt": text_of(record, "prompt", place),
                "checks": [_check(given, number) for number, given in enumerate(instructions)],
            }
        )
    if not tasks:
        raise UsageError(f"{source}: no record has instructions that can all be checked: {', '.join(sorted(lacking))}")
    files = NewFiles(destination, {"ifeval.jsonl": encode_lines(tasks)})
    if left_out:
        lines = [f"left out: {left_out} of {left_out + len(tasks)} records, with instructions that have no check:"]
        lines += [f"  {name}: {count}" for name, count in sorted(lacking.items())]
        files.add("ifeval.left_out.txt", ("\n".join(lines) + "\n").encode())
    return files.write()


def _instructions(record: Mapping[str, Any], place: str) -> list[Given]:
    names, values, key = record.get("instruction_id_list"), record.get("kwargs"), record.get("key")
    if type(key) is not int:
        raise UsageError(f"{place}: 'key' must be a number, got {key!r:.80}")
    for field, given, kind in (("instruction_id_list", names, str), ("kwargs", values, dict)):
        if not isinstance(given, list) or not given or not all(isinstance(each, kind) for each in given):
            raise UsageError(f"{place}: {field!r} must be a list of {kind.__name__}, got {given!r:.80}")
    if len(names or ()) != len(values or ()):
        raise UsageError(f"{place}: 'kwargs' and 'instruction_id_list' must have the same length")
    return [Given(place, name, each) for name, each in zip(names or (), values or (), strict=True)]


def _check(given: Given, number: int) -> dict[str, Any]:
    flags, pattern = _PATTERNS[given.name]
    text = f"(?{flags}){_NOT_EMPTY}{pattern(given)}"
    try:
        re.compile(text)
    except (re.error, OverflowError) as error:
        raise UsageError(f"{given.place}: {given.name}: not a valid pattern: {error}") from None
    return {"metric": "regex", "targets": [text], "name": f"{number + 1} {given.name}"}
