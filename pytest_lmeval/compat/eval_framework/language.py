"""Whether a model answers in the language that it is asked in."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from pytest_lmeval.tasks.judging import JudgedAnswer

_LANGUAGES = ("ENGLISH", "GERMAN", "SPANISH", "ITALIAN", "FRENCH", "DUTCH", "PORTUGUESE", "FINNISH")


class LanguageRawConsistencyChecker:
    """The text of the model, as it wrote it, is in the language of the user's messages; one of eight.

    No value where no language is found in either. A ``language`` in the metric context is taken for both.
    """

    NAME = "language_consistency_raw"
    PACKAGE = "lingua"
    INSTALL = "lingua-language-detector"

    def of_answer(self, answer: JudgedAnswer) -> float | None:
        """Return 1.0 or 0.0."""
        if "language" in answer.extras:
            return 1.0
        asked = "\n\n".join(message.content for message in answer.messages if message.role == "user")
        found = (_language_of(answer.raw), _language_of(asked))
        return None if found == ("", "") else float(found[0] == found[1])


@cache
def _language_of(text: str) -> str:
    language = _detector().detect_language_of(text)
    return "" if language is None else str(language.iso_code_639_1.name)


@cache
def _detector() -> Any:
    lingua = import_module("lingua")
    return lingua.LanguageDetectorBuilder.from_languages(
        *(getattr(lingua.Language, name) for name in _LANGUAGES)
    ).build()
