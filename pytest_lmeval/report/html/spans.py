"""Where in an output a prediction was read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from pytest_lmeval.postprocess import RULES

# A letter may stand in a text a thousand times over; the rule reads one of the first, or the last line.
_MOST_TRIED = 40
_LONGEST_PATTERN = 80


def extracted_span(rule: str, output: str, prediction: str) -> tuple[int, int] | None:
    """Return start and end, in UTF-16 units, of what ``rule`` made the prediction of.

    None where that is no one part of the output, or all of it but blanks, or cannot be told.
    """
    if not prediction or output.strip() == prediction.strip():
        return None
    places = list(islice(_places(rule, output, prediction), _MOST_TRIED))
    if rule in RULES:
        places = [place for place in places if _is_read(rule, output, place)]
    elif len(places) > 1:
        return None
    return _utf16(output, places[0]) if places else None


def _places(rule: str, output: str, prediction: str) -> Iterator[tuple[int, int]]:
    pattern = re.escape(prediction)
    if rule == "extract_answer" and len(prediction) <= _LONGEST_PATTERN:
        # The rule drops the commas between digits.
        pattern = ",?".join(re.escape(char) for char in prediction)
    found = (match.span() for match in re.finditer(pattern, output))
    # That rule reads the last line that has an answer.
    return reversed(list(found)) if rule == "extract_answer" else found


def _is_read(rule: str, output: str, place: tuple[int, int]) -> bool:
    """Tell whether the rule reads this place: something else is put there, and the rule asked again."""
    start, end = place
    letter = "B" if output[start:end] == "A" else "A"
    probe = letter if rule == "extract_letter" else "probe"
    return RULES[rule](output[:start] + probe + output[end:]).text == probe


def _utf16(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = (len(text[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in span)
    return start, end
