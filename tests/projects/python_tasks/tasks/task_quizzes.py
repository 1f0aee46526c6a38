from typing import Any

from pytest_lmeval.tasks import AccuracyCompletion, BaseTask, MathReasoningCompletion, ResponseType, Rouge1, Sample


class CapitalsQuiz(BaseTask[str]):
    NAME = "Capitals Quiz"
    DATASET_PATH = "capitals"
    SAMPLE_SPLIT = "test"
    FEWSHOT_SPLIT = "train"
    RESPONSE_TYPE = ResponseType.COMPLETION
    METRICS = [AccuracyCompletion]
    SUBJECTS = ["africa", "america"]

    def _get_instruction_text(self, item: dict[str, Any]) -> str:
        return f"Name the capital of {item['country']}.\n"

    def _get_ground_truth(self, item: dict[str, Any]) -> str:
        return str(item["capital"])

    def _get_system_prompt_text(self, item: dict[str, Any]) -> str:
        return "You know your geography."

    def _get_cue_text(self, item: dict[str, Any]) -> str:
        return "Answer:"

    def _get_fewshot_target_text(self, item: dict[str, Any]) -> str:
        return f"Answer: {self._get_ground_truth(item)}"

    def _sample_fewshot_examples(self, item: dict[str, Any]) -> list[dict]:
        pool = [other for other in self.dataset[self.FEWSHOT_SPLIT] if other["letter"] != item["country"][0]]
        return self.rnd.sample(pool, min(self.num_fewshot, len(pool)))

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        return completion_text.strip().removeprefix("Answer:").strip()


class Questions(BaseTask[str]):
    NAME = "Questions"
    DATASET_PATH = "questions.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion, "exact_match"]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"Question: {item['question']}\nAnswer:"

    def _get_ground_truth(self, item):
        return item["answer"]


class WordProblems(BaseTask[str]):
    NAME = "Word Problems"
    DATASET_PATH = "word_problems.jsonl"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion, Rouge1, MathReasoningCompletion]
    SUBJECTS = ["eggs", "flour"]

    def _get_instruction_text(self, item):
        return f"Problem: {item['problem']}\nSolution:"

    def _get_ground_truth(self, item):
        return item["solution"]

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        import re

        found = re.search(r"answer is (\d+)", completion_text)
        return found.group(1) if found else completion_text.strip()
