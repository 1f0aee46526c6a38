from pytest_lmeval.tasks import AccuracyLoglikelihood, BaseTask, ResponseType, Task


class Moods(BaseTask[str]):
    NAME = "Moods"
    DATASET_PATH = "moods.csv"
    SAMPLE_SPLIT = "test"
    RESPONSE_TYPE = ResponseType.LOGLIKELIHOODS
    METRICS = [AccuracyLoglikelihood]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return item["text"]

    def _get_ground_truth(self, item):
        return item["mood"]

    def _get_possible_completions(self, item):
        return ["yes", "no", "maybe"]


class Letters(Task):
    eval_type = "categorical"

    def num_examples(self):
        return 3

    def get_example(self, index):
        answer = {"role": "assistant", "content": "ABA"[index]}
        return {"messages": [{"role": "user", "content": f"Which? {index}"}, answer], "letters": ["A", "B"]}

    def evaluate(self, conversation, response):
        return response == conversation["messages"][-1]["content"]
