from pytest_lmeval.tasks import BaseMetricContext, BaseTask, CodeExecutionPassAtOne


class Cases(BaseMetricContext):
    test_cases: list
    entry_point: str


class Functions(BaseTask[str]):
    NAME = "Functions"
    DATASET_PATH = "functions"
    SAMPLE_SPLIT = "test"
    METRICS = [CodeExecutionPassAtOne]
    SUBJECTS = ["python"]

    def _get_instruction_text(self, item):
        return f"Finish this:\n{item['prompt']}"

    def _get_ground_truth(self, item):
        return item["solution"]

    def _get_context(self, item) -> Cases:
        return Cases(test_cases=item["tests"], entry_point=item["name"])
