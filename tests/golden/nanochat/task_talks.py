"""Tasks of nanochat, ported; their data is in the order of the files until it is shuffled."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from pytest_lmeval.tasks import Task, TaskMixture, TaskSequence, execute_code, load_dataset, render_mc

Talk = dict[str, Any]
LETTERS = ("A", "B", "C", "D")


def number_in(text: str) -> str | None:
    found = re.search(r"#### (-?[\d.,]+)", text)
    return found[1].replace(",", "") if found else None


class Arc(Task):
    name = "arc"

    def __init__(self, subset: str, split: str, **view: Any) -> None:
        super().__init__(**view)
        self.rows = load_dataset("data/arc", subset, split=split).shuffle(seed=42)

    @property
    def eval_type(self) -> str:
        return "categorical"

    def num_examples(self) -> int:
        return len(self.rows)

    def get_example(self, index: int) -> Talk:
        row = self.rows[index]
        letters = row["choices"]["label"]
        question = render_mc(row["question"], letters, row["choices"]["text"])
        return {"messages": [_user(question), _assistant(row["answerKey"])], "letters": letters}

    def evaluate(self, conversation: Talk, assistant_response: str) -> bool:
        return bool(assistant_response == conversation["messages"][-1]["content"])


class Mmlu(Task):
    name = "mmlu"

    def __init__(self, split: str, **view: Any) -> None:
        super().__init__(**view)
        self.rows = load_dataset("data/mmlu", split=split).shuffle(seed=42)

    @property
    def eval_type(self) -> str:
        return "categorical"

    def num_examples(self) -> int:
        return len(self.rows)

    def get_example(self, index: int) -> Talk:
        row = self.rows[index]
        question = render_mc(row["question"], LETTERS, row["choices"])
        talk = [_user(question), _assistant(LETTERS[row["answer"]])]
        return {"messages": talk, "subject": row["subject"], "letters": LETTERS}

    def evaluate(self, conversation: Talk, assistant_response: str) -> bool:
        return bool(assistant_response == conversation["messages"][-1]["content"])


class Numbers(Task):
    """What GSM8K and SpellingBee share: the number behind ``####`` counts."""

    @property
    def eval_type(self) -> str:
        return "generative"

    def evaluate(self, conversation: Talk, assistant_response: str) -> int:
        right = number_in(conversation["messages"][-1]["content"][-1]["text"])
        return int(number_in(assistant_response) == right)


class Gsm8k(Numbers):
    name = "gsm8k"

    def __init__(self, split: str, **view: Any) -> None:
        super().__init__(**view)
        self.rows = load_dataset("data/gsm8k", split=split).shuffle(seed=42)

    def num_examples(self) -> int:
        return len(self.rows)

    def get_example(self, index: int) -> Talk:
        row = self.rows[index]
        parts = []
        for text in re.split("(<<[^>]+>>)", row["answer"]):
            if text.startswith("<<"):
                asked, _, told = text[2:-2].rpartition("=")
                parts += [{"type": "python", "text": asked}, {"type": "python_output", "text": told}]
            else:
                parts.append({"type": "text", "text": text})
        return {"messages": [_user(row["question"]), {"role": "assistant", "content": parts}]}


class HumanEval(Task):
    name = "humaneval"

    def __init__(self, **view: Any) -> None:
        super().__init__(**view)
        self.rows = load_dataset("data/humaneval", split="test").shuffle(seed=42)

    @property
    def eval_type(self) -> str:
        return "generative"

    def num_examples(self) -> int:
        return len(self.rows)

    def get_example(self, index: int) -> Talk:
        row = self.rows[index]
        talk = [_user(row["prompt"]), _assistant(f"{row['prompt']}\n{row['canonical_solution']}")]
        return {"messages": talk, "entry_point": row["entry_point"], "test": row["test"]}

    def evaluate(self, conversation: Talk, assistant_response: str) -> bool:
        blocks = re.findall(r"```(?:python)?\s*\n(.*?)\n```", assistant_response, re.DOTALL)
        code = (blocks or [assistant_response])[0].strip()
        tests = f"{conversation['test']}\ncheck({conversation['entry_point']})"
        program = "\n\n".join([_imports(conversation["messages"][0]["content"]), code, tests])
        return execute_code(program).success


def _imports(prompt: str) -> str:
    found = []
    for line in filter(None, map(str.strip, prompt.split("\n"))):
        if line.startswith(("import ", "from ")):
            found.append(line)
        elif not line.startswith("#"):
            break
    return "\n".join(found)


def _words() -> list[str]:
    return (Path(__file__).parent / "data" / "words.txt").read_text("utf-8").split()


class SpellingBee(Numbers):
    name = "spelling_bee"
    # Three in place of the many that the original has: as it was recorded.
    asks = ("How many {letter} are in {word}", "Count the {letter} in {word}", "Wie oft kommt {letter} in {word} vor")

    def num_examples(self) -> int:
        return 8

    def get_example(self, index: int) -> Talk:
        draw = random.Random(10_000_000 + index)
        word = draw.choice(_words())
        letter = draw.choice(word) if draw.random() < 0.9 else draw.choice("abcdefghijklmnopqrstuvwxyz")
        asked = draw.choice(self.asks)
        asked = asked.lower() if draw.random() < 0.3 else asked
        quotes = [draw.choice(["", "'", '"']) for _ in range(2)]
        question = asked.format(letter=quotes[0] + letter + quotes[0], word=quotes[1] + word + quotes[1])
        question += "?" if draw.random() < 0.5 else ""
        answer = [{"type": "text", "text": f"#### {word.count(letter)}"}]
        return {"messages": [_user(question), {"role": "assistant", "content": answer}]}


class SimpleSpelling(Task):
    name = "simple_spelling"

    def __init__(self, **view: Any) -> None:
        super().__init__(**view)
        self.words = _words()
        random.Random(42).shuffle(self.words)

    @property
    def eval_type(self) -> str:
        return "generative"

    def num_examples(self) -> int:
        return 6

    def get_example(self, index: int) -> Talk:
        word = random.Random(10_000_000 + index).choice(self.words)
        return {"messages": [_user(f"Spell the word: {word}"), _assistant(f"{word}:{','.join(word)}")]}

    def evaluate(self, conversation: Talk, assistant_response: str) -> bool:
        return bool(assistant_response == conversation["messages"][-1]["content"])


class SmolTalk(Task):
    """Conversations to train on: nothing tells what an answer is worth."""

    def __init__(self, split: str, **view: Any) -> None:
        super().__init__(**view)
        self.rows = load_dataset("data/smoltalk", split=split).shuffle(seed=42)

    def num_examples(self) -> int:
        return len(self.rows)

    def get_example(self, index: int) -> Talk:
        return {"messages": self.rows[index]["messages"]}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


arc = Arc("ARC-Easy", split="test")
part = Mmlu(split="test", start=1, stop=8, step=3)
part.name = "mmlu_view"
mmlu = Mmlu(split="test")
gsm8k, humaneval, bee, spelling = Gsm8k("test"), HumanEval(), SpellingBee(), SimpleSpelling()
to_train_on = TaskMixture([arc, SmolTalk("train"), arc])
one_by_one = TaskSequence([arc, SmolTalk("train"), arc])
