"""Tasks of eval-framework that have the model write programs, ported."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.tasks import (
    NO_SUBJECT,
    BaseMetricContext,
    BaseTask,
    BitsPerByteLoglikelihood,
    CodeExecutionPassAtOne,
    ResponseType,
    Sample,
)

Item = dict[str, Any]


class Tests(BaseMetricContext):
    test_cases: str
    entry_point: str


class Asserts(BaseMetricContext):
    test_cases: list[str]


class _HumanEval(BaseTask[str]):
    DATASET_PATH = "data/humaneval"
    SUBJECTS = (NO_SUBJECT,)
    stop_sequences = ("```",)

    def _get_instruction_text(self, item: Item) -> str:
        return f"```python\n{item['prompt'].lstrip()}"


class HumanEval(_HumanEval):
    NAME = "humaneval"
    METRICS = (CodeExecutionPassAtOne,)

    def _get_ground_truth(self, item: Item) -> str:
        return "Success"

    def _get_context(self, item: Item) -> Tests:
        return Tests(test_cases=item["test"], entry_point=item["entry_point"])

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        assert sample is not None
        prompt: str = sample.item["prompt"]
        return prompt + completion_text


class HumanEvalBits(_HumanEval):
    NAME = "humaneval_bpb"
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS = (BitsPerByteLoglikelihood,)

    def _get_ground_truth(self, item: Item) -> str:
        return f" {item['canonical_solution']}"

    def _get_possible_completions(self, item: Item) -> list[str]:
        return [self._get_ground_truth(item)]


class Mbpp(BaseTask[str]):
    NAME = "mbpp"
    DATASET_PATH = "data/mbpp"
    FEWSHOT_SPLIT = "train"
    METRICS = (CodeExecutionPassAtOne,)
    SUBJECTS = ("full",)
    stop_sequences = ("```",)

    def __init__(self, num_fewshot: int = 2) -> None:
        super().__init__(num_fewshot)

    def _get_instruction_text(self, item: Item) -> str:
        tests = "\n".join(item["test_list"])
        return (
            f"You are an expert Python programmer, and here is your task: {item['text']} Your code should pass these "
            f"tests:\n\n{tests}\n"
        )

    def _get_cue_text(self, item: Item) -> str:
        return "```python"

    def _get_ground_truth(self, item: Item) -> str:
        return str(item["test_list"])

    def _get_fewshot_target_text(self, item: Item) -> str:
        return f"```python\n{item['code']}\n```"

    def _get_context(self, item: Item) -> Asserts:
        return Asserts(test_cases=item["test_list"])
