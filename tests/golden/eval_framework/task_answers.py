"""Tasks of eval-framework that have the model write an answer, ported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from pytest_lmeval.tasks import (
    F1,
    NO_SUBJECT,
    AccuracyCompletion,
    BaseTask,
    DropF1ExactMatch,
    MathReasoningCompletion,
    Sample,
    SquadF1,
    load_dataset,
)

Item = dict[str, Any]


class _Gsm8k(BaseTask[str]):
    DATASET_PATH = "data/gsm8k"
    METRICS = (AccuracyCompletion,)
    SUBJECTS = ("main",)

    def __init__(self, num_fewshot: int) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["Question:"]
        self.max_tokens = 1600

    def _number(self, text: str) -> str:
        found = re.search(r"#### (-?[\d.,]+)", text)
        return found[1].replace(",", "") if found else "[invalid]"

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f" {item['answer']}"

    def _get_ground_truth(self, item: Item) -> str:
        return self._number(item["answer"])

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        return self._number(completion_text)


class Gsm8k(_Gsm8k):
    NAME = "gsm8k"

    def __init__(self, num_fewshot: int = 3) -> None:
        super().__init__(num_fewshot)
        self.shown = load_dataset("data/gsm8k", "main", split="train")

    def _get_instruction_text(self, item: Item) -> str:
        return f"Question: {re.sub('<<.*?>>', '', item['question'])}\nAnswer:"

    def _sample_fewshot_examples(self, item: Item) -> list[Item]:
        return list(self.shown[: self.num_fewshot])


class Gsm8kDrawn(_Gsm8k):
    NAME = "gsm8k_harness"
    FEWSHOT_SPLIT = "train"

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)

    def _get_instruction_text(self, item: Item) -> str:
        return f"Question: {item['question']}\nAnswer:"


class MmluWithReasons(BaseTask[str]):
    NAME = "mmlu_cot"
    DATASET_PATH = "data/mmlu"
    METRICS = (AccuracyCompletion,)
    SUBJECTS = ("anatomy", "astronomy")
    stop_sequences = ("Question:",)

    def _get_initial_prompt_text(self, item: Item) -> str:
        return (
            f"The following are multiple choice questions about {item['subject']}. Summarize your reasoning concisely, "
            'then conclude with "Therefore, the answer is: X", where X is one of A, B, C, or D.'
        )

    def _get_instruction_text(self, item: Item) -> str:
        options = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCD", item["choices"], strict=True))
        return f"Question: {item['question'].strip()}\n{options}"

    def _get_ground_truth(self, item: Item) -> str:
        return "ABCD"[item["answer"]]

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        found = re.search("Therefore, the answer is: ([A-D])", completion_text)
        return found[1] if found else "[invalid]"


class Squad2(BaseTask[str]):
    NAME = "squad2"
    DATASET_PATH = "data/squad_v2"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    METRICS: ClassVar[Sequence[Any]] = (AccuracyCompletion, F1)
    SUBJECTS = (NO_SUBJECT,)

    def __init__(self, num_fewshot: int = 1) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = [".\n"]
        self.max_tokens = 300

    def _get_instruction_text(self, item: Item) -> str:
        return (
            "Given the following context, answer the question. If the question cannot be answered based on the context "
            f"alone, respond with 'unanswerable'.\n\nContext:\n{item['context']}\n\nQuestion:\n{item['question']}\n"
            "Answer:"
        )

    def _texts(self, item: Item) -> list[str]:
        return item["answers"]["text"] or ["unanswerable", "unanswerable ", "Unanswerable"]

    def _get_ground_truth(self, item: Item) -> list[str]:
        return [f" {text}" for text in self._texts(item)]


class Squad2Instructed(Squad2):
    NAME = "squad2_ma"
    METRICS = (AccuracyCompletion, SquadF1)

    def __init__(self, num_fewshot: int = 0) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = []
        self.max_tokens = 10_000

    def _get_system_prompt_text(self, item: Item) -> str:
        return (
            "You are a helpful assistant and will answer the user's questions carefully, logically, accurately and "
            "well-reasoned.\nUse the given context to answer the question faithfully. Answer only if the answer is "
            "present in the given context, otherwise respond with 'unanswerable' if the answer is not present in the "
            "context.Always begin your answer with 'Final answer:'"
        )

    def _get_instruction_text(self, item: Item) -> str:
        return f"Context:\n{item['context']}\n\nQuestion:\n{item['question']}\n"

    def _get_ground_truth(self, item: Item) -> list[str]:
        return self._texts(item)

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        for prefix in ("**Final answer**:", "**Answer**:", "Final answer:", "Answer:"):
            if prefix in completion_text:
                return completion_text.rpartition(prefix)[2].strip()
        return completion_text.strip()


class SquadOlmes(BaseTask[str]):
    NAME = "squad_olmes"
    DATASET_PATH = "data/squad"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    METRICS = (SquadF1,)
    SUBJECTS = (NO_SUBJECT,)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["Title:", "\n\n"]
        self.max_tokens = 50

    def _get_initial_prompt_text(self, item: Item) -> str:
        return (
            "The following are reading comprehension questions, where the answer to each question is a segment of text "
            "from the corresponding background text."
        )

    def _get_instruction_text(self, item: Item) -> str:
        return f"Title: {item['title']}\nBackground: {item['context']}\nQuestion: {item['question']}\n"

    def _get_cue_text(self, item: Item) -> str:
        return "Answer:"

    def _get_ground_truth(self, item: Item) -> list[str]:
        return [f" {text}" for text in item["answers"]["text"]]

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"Answer:{self._get_ground_truth(item)[0]}"


class Math500(BaseTask[str]):
    NAME = "math500"
    DATASET_PATH = "data/math500"
    METRICS = (MathReasoningCompletion,)
    SUBJECTS = (NO_SUBJECT,)

    def _get_instruction_text(self, item: Item) -> str:
        return (
            "Solve the following math problem step by step. The last line of your response should be of the form "
            "Answer: $ANSWER (without quotes) where $ANSWER is the answer to the problem.\n\n"
            f"    {item['problem']}\n\n"
            "    Remember to put your answer in $\\boxed{answer}$\n\n"
            "    where [answer] is just the final number or expression that solves the problem."
        )

    def _get_ground_truth(self, item: Item) -> str:
        answer: str = item["answer"]
        return answer

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        _, boxed, rest = completion_text.rpartition("\\boxed{")
        ends = [end for end in range(len(rest)) if rest[end] == "}" and rest[:end].count("{") == rest[:end].count("}")]
        if boxed and ends:
            return rest[: ends[0]]
        found = re.search(r"(?i)Answer\s*:\s*(.*)", completion_text)
        return found[1] if found else "[no_answer]"


class NaturalQuestions(BaseTask[str]):
    NAME = "natural_questions"
    DATASET_PATH = "data/nq_open"
    SAMPLE_SPLIT = "validation"
    FEWSHOT_SPLIT = "train"
    METRICS = (DropF1ExactMatch,)
    SUBJECTS = (NO_SUBJECT,)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)
        self.stop_sequences = ["Question:", "Q:", "\n\n"]
        self.max_tokens = 50

    def _get_instruction_text(self, item: Item) -> str:
        return f"Question: {item['question']}\n"

    def _get_cue_text(self, item: Item) -> str:
        return "Answer:"

    def _get_ground_truth(self, item: Item) -> list[str]:
        return [f" {text}" for text in item["answer"]]

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"Answer:{','.join(self._get_ground_truth(item))}"
