"""Tasks of eval-framework that override how items are loaded or asked about, or leave texts to a style, ported."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from pytest_lmeval.compat.eval_framework import (
    F1,
    NO_SUBJECT,
    RANDOM_SEED,
    AccuracyCompletion,
    AccuracyLoglikelihood,
    AccuracyNormLoglikelihood,
    BaseTask,
    BPBStyle,
    ConfidenceWeightedAccuracy,
    DistributionalCorrectnessScore,
    MathMinervaCompletion,
    MathMinervaCompletionRelaxed,
    MathReasoningCompletion,
    MCStyle,
    Message,
    PartialEvalAccuracy,
    ResponseType,
    Role,
    Sample,
    TernaryScore,
    answer_key_to_index,
    extract_answers,
    get_n_letters,
    normalized_gold_from_solution,
)

Item = dict[str, Any]
_PICK = "Answer only if you are confident, since mistakes may be penalised, while correct answers receive points. "


def _shuffled(task: Any, subject: str) -> dict[str, list[Item]]:
    """Return the splits as these tasks load them: the sample split in the order of a generator of its own."""
    name = None if subject == NO_SUBJECT else subject
    splits = {split: list(rows) for split, rows in task._load_hf_dataset(path=task.DATASET_PATH, name=name).items()}
    task.rnd = random.Random(RANDOM_SEED)
    task.rnd.shuffle(splits[task.SAMPLE_SPLIT])
    return splits


class _Math(BaseTask[str]):
    DATASET_PATH = "data/hendrycks_math"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = ("algebra", "geometry")


class MathLevel5(_Math):
    NAME = "math_level_5"
    METRICS: ClassVar[Sequence[Any]] = (MathReasoningCompletion,)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["\nProblem:", "\nProblem", "\n\nProblem:", "\n\nProblem"]

    def _load_dataset(self, subject: str) -> None:
        splits = _shuffled(self, subject)
        self.dataset = {name: [row for row in rows if row["level"] == "Level 5"] for name, rows in splits.items()}

    def _get_instruction_text(self, item: Item) -> str:
        lines = (
            "Solve the following math problem step by step. The last line of your response should be of the form "
            "Answer: $ANSWER (without quotes) where $ANSWER is the answer to the problem.",
            f"    {item['problem']}",
            "    Remember to put your answer in $\\boxed{answer}$",
            "    where [answer] is just the final number or expression that solves the problem.",
        )
        return "\n\n".join(lines) + "\n"

    def _get_ground_truth(self, item: Item) -> str:
        return str(item["solution"].rpartition("\\boxed{")[2].rpartition("}")[0])

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"Answer: {item['solution']}"


class MathMinerva(_Math):
    NAME = "math_minerva"
    METRICS: ClassVar[Sequence[Any]] = (MathMinervaCompletion, MathMinervaCompletionRelaxed)

    def __init__(self, num_fewshot: int = 1) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["Problem:", "\n\n"]
        self.max_tokens = 1024

    def _get_instruction_text(self, item: Item) -> str:
        return f"Problem:\n{item['problem']}\n\nSolution:"

    def _get_ground_truth(self, item: Item) -> str | None:
        return normalized_gold_from_solution(item["solution"])

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f" {item['solution']}"

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        return extract_answers(completion_text, relaxed=True)[0]


class Gpqa(BaseTask[str]):
    NAME = "gpqa"
    DATASET_PATH = "data/gpqa"
    SAMPLE_SPLIT = "train"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = ("gpqa_extended",)
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS: ClassVar[Sequence[Any]] = (AccuracyLoglikelihood, AccuracyNormLoglikelihood)

    def __init__(self, num_fewshot: int = 3) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["Question:"]

    def _load_dataset(self, subject: str) -> None:
        self.dataset = _shuffled(self, subject)

    def _choices(self, item: Item) -> tuple[list[str], int]:
        wrong = [_clean(item[f"Incorrect Answer {number}"]) for number in (1, 2, 3)]
        right = _clean(item["Correct Answer"])
        luck = random.Random(int(hashlib.sha256(f"{wrong} {right}".encode()).hexdigest(), 16))
        luck.shuffle(wrong)
        place = luck.randint(0, 3)
        return [*wrong[:place], right, *wrong[place:]], place

    def _get_initial_prompt_text(self, item: Item) -> str:
        return (
            "Here are some example questions from experts. An explanation is given before the final answer. "
            "Answer the final question yourself, giving your reasoning beforehand."
        )

    def _get_instruction_text(self, item: Item) -> str:
        choices, _ = self._choices(item)
        lines = [f"({letter}) {choice}" for letter, choice in zip(get_n_letters(4), choices, strict=True)]
        return "\n".join((f"Question: {item['Question'].strip()}", *lines, ""))

    def _get_cue_text(self, item: Item) -> str:
        return "Answer:"

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"Answer:{self._get_ground_truth(item)}"

    def _get_ground_truth(self, item: Item) -> str:
        return f" ({get_n_letters(4)[self._choices(item)[1]]})"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [f" ({letter})" for letter in get_n_letters(4)]


class GpqaUnsure(Gpqa):
    NAME = "gpqa_unsure"
    METRICS: ClassVar[Sequence[Any]] = (
        *Gpqa.METRICS,
        ConfidenceWeightedAccuracy,
        DistributionalCorrectnessScore,
        TernaryScore,
    )

    def __init__(self, num_fewshot: int = 0) -> None:
        super().__init__(num_fewshot)

    def _get_initial_prompt_text(self, item: Item) -> str:
        return f"{_PICK}It is acceptable to answer with '?' if you are unsure, and you will receive 0 points."

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [*super()._get_possible_completions(item), " (?)"]


class Squad2Loaded(BaseTask[str]):
    NAME = "squad2_loaded"
    DATASET_PATH = "data/squad_v2"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = (NO_SUBJECT,)
    METRICS: ClassVar[Sequence[Any]] = (AccuracyCompletion, F1)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = [".\n"]
        self.max_tokens = 300

    def _load_dataset(self, subject: str) -> None:
        self.dataset = _shuffled(self, subject)

    def _get_instruction_text(self, item: Item) -> str:
        asked = "Given the following context, answer the question. If the question cannot be answered based on the "
        rule = "context alone, respond with 'unanswerable'."
        return f"{asked}{rule}\n\nContext:\n{item['context']}\n\nQuestion:\n{item['question']}\nAnswer:"

    def _get_ground_truth(self, item: Item) -> list[str]:
        known = item["answers"]["text"] or ["unanswerable", "unanswerable ", "Unanswerable"]
        return [f" {answer}" for answer in known]


class WinograndeCloze(BaseTask[str]):
    NAME = "winogrande_cloze"
    DATASET_PATH = "data/winogrande"
    SAMPLE_SPLIT = "train"
    FEWSHOT_SPLIT = "train"
    SUBJECTS = ("winogrande_xl",)
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS: ClassVar[Sequence[Any]] = (PartialEvalAccuracy,)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)

    def _halves(self, item: Item) -> list[str]:
        return [half.replace("  ", " ") for half in item["sentence"].split("_", 1)]

    def _get_instruction_text(self, item: Item) -> str:
        return self._halves(item)[0].strip()

    def _get_ground_truth(self, item: Item) -> str:
        return f" {item['option' + item['answer']]}{self._halves(item)[1]}"

    def _create_samples(self, item: Item, index: int, subject: str) -> list[Sample]:
        shown = self._get_example_messages(item)
        before, after = self._halves(item)
        return [
            Sample(
                id=index + place,
                subject=str(subject),
                messages=[*shown, Message(role=Role.USER, content=f"{before}{item[f'option{place + 1}']}")],
                ground_truth=str(item["answer"] == str(place + 1)),
                possible_completions=[after],
            )
            for place in range(2)
        ]


class _NaturalChoice(BaseTask[str]):
    DATASET_PATH = "data/nq_gen2mc"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "validation"
    SUBJECTS = (NO_SUBJECT,)

    def _get_raw_question(self, item: Item) -> str:
        return str(item["question"])

    def _get_choices(self, item: Item) -> list[str]:
        return list(item["choices"]["text"])

    def _get_correct_index(self, item: Item) -> int:
        return answer_key_to_index(item["answerKey"])


class NaturalMC(_NaturalChoice):
    NAME = "natural_questions_mc"
    TASK_STYLER = MCStyle()

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)


class NaturalBPB(_NaturalChoice):
    NAME = "natural_questions_bpb"
    TASK_STYLER = BPBStyle()

    def __init__(self, num_fewshot: int = 1) -> None:
        super().__init__(num_fewshot)


def _clean(text: str) -> str:
    text = re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". "))
    return text.replace("  ", " ")
