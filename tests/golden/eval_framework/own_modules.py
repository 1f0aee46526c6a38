"""What eval-framework's own modules are run over: rows made up by hand, with the columns of the data that each asks."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Splits = dict[str, list[Row]]
MODULES = (
    *("piqa", "social_iqa", "medqa", "gpqa", "arc_de", "csqa"),
    *("math_reasoning", "mmlu_pro", "drop", "global_mmlu", "naturalqs_open"),
)
BENCHMARKS = Path("src/eval_framework/tasks/benchmarks")


def _goals(first: int) -> list[Row]:
    return [
        {"goal": f"Open jar {n}", "sol1": f"Turn lid {n}", "sol2": f"Sing to lid {n} times", "label": n % 2}
        for n in range(first, first + 4)
    ]


def _social(first: int) -> list[Row]:
    return [
        {
            "context": f"Ana lent {n} books.",
            "question": "Why?",
            "answerA": "to help",
            "answerB": f"to win {n}",
            "answerC": "by chance",
            "label": str(n % 3 + 1),
        }
        for n in range(first, first + 4)
    ]


def _medical(first: int) -> list[Row]:
    choices = ["rest", "cold water", "a long walk", "tea", "nothing"]
    return [
        {"question": f"Case {n}: what helps?", "choices": choices, "answer_idx": n % 5} for n in range(first, first + 4)
    ]


def _german(first: int) -> list[Row]:
    texts = {"text": ["Wärme", "Kälte", "Größe", "Licht"], "label": list("ABCD")}
    keys = ("A", "2", "C", "4")
    return [
        {"question_de": f"Was misst Gerät {n}?", "choices_de": texts, "answerKey": keys[n % 4]}
        for n in range(first, first + 4)
    ]


def _common(first: int) -> list[Row]:
    texts = {"text": ["shelf", "sea", "sky", "shoe box", "street"], "label": list("ABCDE")}
    return [
        {"question": f"Where is book {n}?", "choices": texts, "answerKey": "ABCDE"[n % 5]}
        for n in range(first, first + 4)
    ]


def _expert(count: int) -> list[Row]:
    return [
        {
            "Question": f" How heavy is stone {n}?\n",
            "Correct Answer": f"{n} kg",
            "Incorrect Answer 1": "no [title]weight",
            "Incorrect Answer 2": f"{n + 7} kg  [note]",
            "Incorrect Answer 3": None if n == 2 else "unknown",
        }
        for n in range(1, count)
    ]


def _maths(first: int) -> list[Row]:
    return [
        {
            "problem": f"What is {n} plus 2?",
            "solution": f"Add them: $\\boxed{{{n + 2}}}$.",
            "answer": str(n + 2),
            "level": f"Level {5 if n % 2 else 3}",
            "question": f"Tom has {n} pens and gets 2. How many?",
        }
        for n in range(first, first + 5)
    ]


def _school(first: int) -> list[Row]:
    return [
        {"question": f"Tom has {n} pens and gets 2. How many?", "answer": f"{n} + 2 is {n + 2}.\n#### {n + 2}"}
        for n in range(first, first + 3)
    ]


def _ten(subjects: Sequence[str], count: int = 3) -> list[Row]:
    return [
        {
            "question": f" Question {n} of {subject}? ",
            "options": [f"choice {place}" for place in range(10 - n)],
            "answer_index": n,
            "answer": "ABCDEFGHIJ"[n],
            "category": subject,
        }
        for n in range(count)
        for subject in subjects
    ]


def _passages(first: int) -> list[Row]:
    nobody = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": []}
    kinds = (
        {**nobody, "number": "3"},
        {**nobody, "spans": ["the red team", "the blue team"]},
        {**nobody, "date": {"day": "4", "month": "May", "year": "1901"}},
        nobody,
    )
    more = {"number": ["3", ""], "date": [{"day": "", "month": "", "year": ""}] * 2, "spans": [[], ["a draw"]]}
    return [
        {
            "passage": f" Game {n} was long. ",
            "question": "Who won?",
            "answer": kinds[n % 4],
            "validated_answers": more if n % 4 == 1 else {},
        }
        for n in range(first, first + 8)
    ]


def _chosen_passages(first: int) -> list[Row]:
    choices = {"text": ["red", "blue", "nobody"], "label": list("ABC")}
    return [
        {
            "passage_original": f"Game {n}. ",
            "question_original": "Who won?",
            "choices": choices,
            "answerKey": "ABC"[n % 3],
        }
        for n in range(first, first + 4)
    ]


def _world(subjects: Sequence[str], language: str, count: int) -> list[Row]:
    return [
        {
            "question": f" {language} {subject} {n}? ",
            "subject": subject,
            **{f"option_{letter}": f"{letter} {n}" for letter in "abcd"},
            "answer": "ABCD"[n],
        }
        for subject in subjects
        for n in range(count)
    ]


def _open(first: int) -> list[Row]:
    return [
        {"question": f"who came {n}th", "answer": [f"runner {n}", f"number {n}"][: n % 2 + 1]}
        for n in range(first, first + 4)
    ]


def _open_choices(first: int) -> list[Row]:
    choices = {"text": ["noon", "night", "never", "now"], "label": list("ABCD")}
    return [
        {"question": f"when is train {n}", "choices": choices, "answerKey": ("A", "2", "C", "4")[n % 4]}
        for n in range(first, first + 4)
    ]


def data(checkout: Path) -> dict[str, dict[str, Splits]]:
    """Return what stands for each data set: splits by configuration, ``""`` for one that has none.

    Subjects, and the question that one module leaves out, are read in the modules: they are not ours to write down.
    """
    maths = {"test": _maths(1), "train": _maths(20)}
    subjects = _listed(checkout, "math_reasoning", "MATH_SUBJECTS")
    stones = [*_expert(7), {**_expert(2)[0], "Question": _left_out(checkout)}]
    school = _listed(checkout, "mmlu", "MMLU_SUBJECTS")
    return {
        "ybisk/piqa": {"": {"train": _goals(20), "validation": _goals(1), "test": _goals(10)}},
        "allenai/social_i_qa": {"": {"train": _social(10), "validation": _social(1)}},
        "davidheineman/medqa-en": {"": {"train": _medical(20), "dev": _medical(10), "test": _medical(1)}},
        "Idavidrein/gpqa": {name: {"train": stones} for name in ("gpqa_extended", "gpqa_diamond")},
        "LeoLM/ArcChallenge_de": {"": {"validation": _german(10), "test": _german(1)}},
        "tau/commonsense_qa": {"": {"train": _common(10), "validation": _common(1)}},
        "HuggingFaceH4/aime_2024": {"": {"train": _maths(1)}},
        "math-ai/aime25": {"": {"test": _maths(3)}},
        "math-ai/aime26": {"": {"test": _maths(5)}},
        "HuggingFaceH4/MATH-500": {"": {"test": _maths(7)}},
        "EleutherAI/hendrycks_math": dict.fromkeys(subjects, maths),
        "openai/gsm8k": {"main": {"train": _school(10), "test": _school(1)}},
        "TIGER-Lab/MMLU-Pro": {"": {"test": _ten(_listed(checkout, "mmlu_pro", "MMLU_PRO_SUBJECTS"))}},
        "EleutherAI/drop": {"": {"train": _passages(20), "validation": _passages(1)}},
        "allenai/drop-gen2mc": {"": {"validation": _chosen_passages(1)}},
        "CohereLabs/Global-MMLU": {
            language: {"test": _world(school, language, 1), "dev": _world(school, language, 2)}
            for language in _listed(checkout, "global_mmlu", "GLOBAL_MMLU_LANGUAGES")
        },
        "google-research-datasets/nq_open": {"": {"train": _open(10), "validation": _open(1)}},
        "allenai/nq-gen2mc": {"": {"validation": _open_choices(1)}},
    }


def _tree(checkout: Path, module: str) -> ast.Module:
    return ast.parse((checkout / BENCHMARKS / f"{module}.py").read_text("utf-8"))


def _listed(checkout: Path, module: str, name: str) -> list[str]:
    """Return a list of texts that a module sets."""
    for node in _tree(checkout, module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return list(ast.literal_eval(node.value))
    raise LookupError(f"{module} sets no {name}")


def _left_out(checkout: Path) -> str:
    """Return the longest text that a module compares with: the question that it does not ask."""
    compared = [node.comparators[0] for node in ast.walk(_tree(checkout, "gpqa")) if isinstance(node, ast.Compare)]
    texts = [each.value for each in compared if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return max(texts, key=len)
