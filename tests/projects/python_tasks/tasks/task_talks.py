import re

from pytest_lmeval.tasks import Task, execute_code, load_dataset, render_mc


class Diagnoses(Task):
    def __init__(self, split, **kwargs):
        super().__init__(**kwargs)
        assert split in ("train", "test")
        self.ds = load_dataset("clinic/diagnoses", split=split)
        self.letters = ("A", "B", "C")

    @property
    def eval_type(self):
        return "categorical"

    def num_examples(self):
        return len(self.ds)

    def get_example(self, index):
        row = self.ds[index]
        letters = self.letters[: len(row["options"])]
        return {
            "messages": [
                {"role": "user", "content": render_mc(f"{row['symptoms']}: what is it?", letters, row["options"])},
                {"role": "assistant", "content": letters[row["options"].index(row["diagnosis"])]},
            ],
            "letters": letters,
            "specialty": row.get("specialty", "general"),
        }

    def evaluate(self, conversation, assistant_response):
        assert assistant_response in conversation["letters"]
        return assistant_response == conversation["messages"][-1]["content"]


class Programs(Task):
    def __init__(self, split, **kwargs):
        super().__init__(**kwargs)
        self.ds = load_dataset("clinic/programs", split=split)

    @property
    def eval_type(self):
        return "generative"

    def num_examples(self):
        return len(self.ds)

    def get_example(self, index):
        row = self.ds[index]
        return {
            "messages": [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["solution"]},
            ],
            "tests": row["tests"],
        }

    def code_in(self, completion):
        return re.findall(r"```python\n(.*?)\n```", completion, re.DOTALL)[0]

    def evaluate(self, conversation, completion):
        return execute_code(self.code_in(completion) + "\n\n" + conversation["tests"], timeout=2.0).success


class PartlyRightPrograms(Programs):
    threshold = 0.5

    def evaluate(self, conversation, completion):
        tests = conversation["tests"].splitlines()
        code = self.code_in(completion)
        return sum(execute_code(f"{code}\n\n{test}", timeout=2.0).success for test in tests) / len(tests)
