from dataclasses import dataclass
from pathlib import Path

from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.types import Example, Generate, RecordError, Score


@dataclass(frozen=True)
class Pairs:
    name: str
    path: Path
    examples: tuple
    sha256: str = "0" * 64
    metric: str = "exact_match"

    def requests(self, example, prompt):
        return (Generate(prompt, self.name, example.id),)

    def score(self, example, responses, tools):
        text = responses[0].text
        return Score(float(text in example.targets), {"length": len(text)}, text)

    def threshold(self, example):
        return None

    def metric_name(self, example):
        return "exact_match"

    def scoring(self, example):
        return {}


def read(path, data, name):
    examples, errors = [], []
    for number, line in enumerate(data.decode().splitlines(), start=1):
        prompt, arrow, target = line.partition(" -> ")
        if arrow:
            examples.append(Example(f"p{number}", prompt, (target,), "exact_match", line=number))
        else:
            errors.append(RecordError(number, None, "bad_value", "_line", "no arrow"))
    return LoadedFile((Pairs(name, path, tuple(examples)),), errors)  # type: ignore[arg-type]  # the least of a task
