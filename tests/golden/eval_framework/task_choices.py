"""Tasks of eval-framework that choose by log-probabilities, ported."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from pytest_lmeval.tasks import (
    NO_SUBJECT,
    AccuracyLoglikelihood,
    AccuracyNormLoglikelihood,
    BaseTask,
    BitsPerByteLoglikelihood,
    Language,
    ResponseType,
)

Item = dict[str, Any]


class _Choice(BaseTask[str]):
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS: ClassVar[Sequence[Any]] = (AccuracyLoglikelihood, AccuracyNormLoglikelihood, BitsPerByteLoglikelihood)
    LANGUAGE = Language.ENG

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)


class _Cued(_Choice):
    def _get_cue_text(self, item: Item) -> str:
        return "Answer:"

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"Answer:{self._get_ground_truth(item)}"


class Arc(_Cued):
    NAME = "arc"
    DATASET_PATH = "data/arc"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = ("ARC-Easy", "ARC-Challenge")

    def _get_instruction_text(self, item: Item) -> str:
        return f"Question: {item['question']}\n"

    def _right(self, item: Item) -> int:
        key = item["answerKey"]
        return int(key) - 1 if key.isdecimal() else "ABCDE".index(key)

    def _get_ground_truth(self, item: Item) -> str:
        return f" {item['choices']['text'][self._right(item)]}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [f" {text}" for text in item["choices"]["text"]]


class ArcWithLetters(Arc):
    NAME = "arc_olmes"

    def __init__(self, num_fewshot: int = 0) -> None:
        super().__init__(num_fewshot)

    def _get_instruction_text(self, item: Item) -> str:
        options = [f" {letter}. {text}\n" for letter, text in zip("ABCDE", item["choices"]["text"], strict=False)]
        return f"Question: {item['question']}\n{''.join(options)}"

    def _get_ground_truth(self, item: Item) -> str:
        return f" {'ABCDE'[self._right(item)]}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [f" {letter}" for letter in "ABCDE"[: len(item["choices"]["text"])]]


class HellaSwag(_Choice):
    NAME = "hellaswag"
    DATASET_PATH = "data/hellaswag"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = (NO_SUBJECT,)

    @staticmethod
    def _clean(text: str) -> str:
        return re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". ")).replace("  ", " ")

    def _get_instruction_text(self, item: Item) -> str:
        begun = self._clean(f"{item['ctx_a']} {item['ctx_b'].capitalize()}").strip()
        return f"{self._clean(item['activity_label'])}: {begun}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [f" {self._clean(ending)}" for ending in item["endings"]]

    def _get_ground_truth(self, item: Item) -> str:
        return self._get_possible_completions(item)[int(item["label"] or 0)]


class Mmlu(_Cued):
    NAME = "mmlu"
    DATASET_PATH = "data/mmlu"
    FEWSHOT_SPLIT = "dev"
    SUBJECTS = ("anatomy", "astronomy")

    def __init__(self, num_fewshot: int = 3) -> None:
        super().__init__(num_fewshot)

    def _get_initial_prompt_text(self, item: Item) -> str:
        about = item["subject"].replace("_", " ")
        return f"The following are multiple choice questions (with answers) about {about}."

    def _get_instruction_text(self, item: Item) -> str:
        options = "".join(f"{letter}. {text}\n" for letter, text in zip("ABCD", item["choices"], strict=True))
        return f"Question: {item['question'].strip()}\n{options}"

    def _get_ground_truth(self, item: Item) -> str:
        return f" {'ABCD'[item['answer']]}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [" A", " B", " C", " D"]


class Winogrande(_Choice):
    NAME = "winogrande"
    DATASET_PATH = "data/winogrande"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = ("winogrande_xl",)

    def _get_instruction_text(self, item: Item) -> str:
        before: str = item["sentence"].split("_")[0]
        return before.replace("  ", " ").strip()

    def _get_possible_completions(self, item: Item) -> list[str]:
        behind = item["sentence"].split("_")[1].replace("  ", " ")
        return [f" {item[option]}{behind}" for option in ("option1", "option2")]

    def _get_ground_truth(self, item: Item) -> str:
        return self._get_possible_completions(item)[int(item["answer"]) - 1]


class Copa(_Choice):
    NAME = "copa"
    DATASET_PATH = "data/copa"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "test"
    SUBJECTS = ("copa",)
    METRICS = (AccuracyLoglikelihood, AccuracyNormLoglikelihood)

    def __init__(self, num_fewshot: int = 1) -> None:
        super().__init__(num_fewshot)

    def _get_instruction_text(self, item: Item) -> str:
        connector = {"cause": "because", "effect": "therefore"}[item["question"]]
        return f"{item['premise'].strip()[:-1]} {connector} "

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [text[0].lower() + text[1:] for text in (item["choice1"], item["choice2"])]

    def _get_ground_truth(self, item: Item) -> str:
        return self._get_possible_completions(item)[0 if item["label"] == 0 else 1]


class SciQ(_Cued):
    NAME = "sciq"
    DATASET_PATH = "data/sciq"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "test"
    SUBJECTS = (NO_SUBJECT,)

    def _get_instruction_text(self, item: Item) -> str:
        return f"Question: {item['question']}\n"

    def _get_ground_truth(self, item: Item) -> str:
        return f" {item['correct_answer']}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        texts = [item[key] for key in ("distractor1", "distractor2", "distractor3", "correct_answer")]
        seed = int(hashlib.sha256((item["question"] + item["correct_answer"]).encode()).hexdigest(), 16)
        places = [0, 1, 2, 3]
        random.Random(seed).shuffle(places)
        return [f" {texts[place]}" for place in places]
