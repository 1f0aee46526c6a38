"""What is run of eval-framework: task classes over invented data, and texts that a model could have written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PAIRS", "PLANS", "Plan", "Row"]

Row = dict[str, Any]


def as_is(*texts: str) -> Callable[[Row], list[str]]:
    return lambda row: list(texts)


def _gsm8k(row: Row) -> list[str]:
    right = row["answer"].rpartition("#### ")[2]
    plain = right.replace(",", "")
    return [
        f" {row['answer']}",
        f" So\n#### {plain}\nQuestion: next?\nAnswer: 3\n#### 4",
        f"#### {plain}.",
        f"#### {plain}0",
        f" The answer is {right}",
        f"####{plain}",
        "",
        f"Question: x #### {plain}",
    ]


def _squad(row: Row) -> list[str]:
    known = row["answers"]["text"] or ["unanswerable"]
    first = known[0]
    return [
        f" {first}",
        first,
        f" {first} ",
        f" {first.upper()}",
        f" {first}.\nMore about it.",
        f" it is {first}, I think",
        f"\n {known[-1]}\n\nTitle: Another",
        "Final answer: " + first,
        "",
        " unanswerable",
        " The  A an",
    ]


def _humaneval(row: Row) -> list[str]:
    solution = row["canonical_solution"]
    return [
        solution,
        f"{solution}```\nThat is it.",
        "    return None\n",
        "    return (\n",
        "",
        "    raise ValueError\n",
    ]


def _mbpp(row: Row) -> list[str]:
    code = row["code"]
    return [
        f"\n{code}\n```",
        f"Here:\n```python\n{code}\n```\nand more",
        f"\n{code}",
        "\ndef nothing():\n    pass\n```",
        "\ndef (",
        "",
        f"\n{code}\nraise SystemExit\n",
    ]


def _math(row: Row) -> list[str]:
    right = row["answer"]
    return [
        f"So it is $\\boxed{{{right}}}$.",
        f"Answer: {right}",
        f"Answer: ${right}$",
        f"First \\boxed{{7}}, then \\boxed{{{right}}}",
        "\\boxed{0.5}",
        "\\boxed{x = 5}",
        "\\boxed{1+2x+x^2}",
        "\\boxed{\\sqrt{12}}",
        "\\boxed{60 \\text{ minutes}}",
        "\\boxed{ 9 ",
        right,
        "",
    ]


def _solved(row: Row) -> list[str]:
    right = row["solution"].rpartition("\\boxed{")[2].rpartition("}")[0]
    return [
        f"So it is $\\boxed{{{right}}}$.",
        f"Final Answer: The final answer is ${right}$. I hope it is correct.",
        f"the final  answer: the answer is {right}",
        f"It is $x = {right}$ dollars",
        f"\\boxed{{17}}, no: \\boxed {right}$ it is",
        f"Final Answer: The final answer is $17$. I hope it is correct. Or \\boxed{{{right}}}",
        "Final Answer: The final answer is $-17.5$. I hope it is correct.",
        right,
        "",
    ]


def _boxed(row: Row) -> list[str]:
    right = row["solution"].rpartition("\\boxed{")[2].rpartition("}")[0]
    return [
        f"So it is $\\boxed{{{right}}}$.",
        f"First $\\boxed{{17}}$, no: \\boxed{{{right}}}\nProblem: \\boxed{{2}}",
        f"Answer: ${right}$",
        "\\boxed{-17.5}",
        "",
    ]


def _natural(row: Row) -> list[str]:
    first = row["answer"][0]
    return [f" {first}", f" The {first.upper()}.", f" {', '.join(row['answer'])}", " 8", f" {first}\n\nQuestion: x", ""]


def _letter(row: Row) -> list[str]:
    right = "ABCD"[row["answer"]]
    return [
        f"It is clear. Therefore, the answer is: {right}",
        f"Therefore, the answer is: {right}. Question: another? Therefore, the answer is: A",
        f"the answer is {right}",
        "Therefore, the answer is: D",
        "",
    ]


@dataclass(frozen=True)
class Plan:
    """What is run: a task class, its data and, for tasks that generate, what a model is taken to have written.

    ``loads`` says that the class loads its items itself: in the order and choice that it makes.
    """

    name: str
    module: str
    kind: str
    data: str
    metrics: Sequence[str]
    subjects: Sequence[str] = ()
    num_fewshot: int = 0
    answers: Callable[[Row], list[str]] = field(default=as_is())
    loads: bool = False


LIKELIHOODS = ("AccuracyLoglikelihood", "AccuracyNormLoglikelihood", "BitsPerByteLoglikelihood")
UNSURE = ("ConfidenceWeightedAccuracy", "DistributionalCorrectnessScore", "TernaryScore")
MINERVA = ("MathMinervaCompletion", "MathMinervaCompletionRelaxed")
REASONING = ("MathReasoningCompletion",)
ALGEBRA = ("algebra", "geometry")
XL = ("winogrande_xl",)
PLANS = (
    Plan("arc", "arc", "ARC", "arc", LIKELIHOODS, ("ARC-Easy", "ARC-Challenge"), 2),
    Plan("arc_olmes", "arc", "ARC_OLMES", "arc", LIKELIHOODS, ("ARC-Easy", "ARC-Challenge"), 0),
    Plan("hellaswag", "hellaswag", "HELLASWAG", "hellaswag", LIKELIHOODS, (), 2),
    Plan("mmlu", "mmlu", "MMLU", "mmlu", LIKELIHOODS, ("anatomy", "astronomy"), 3),
    Plan("mmlu_cot", "mmlu", "MMLU_COT", "mmlu", ("AccuracyCompletion",), ("anatomy", "astronomy"), 0, _letter),
    Plan("winogrande", "winogrande", "WINOGRANDE", "winogrande", LIKELIHOODS, ("winogrande_xl",), 2),
    Plan("copa", "copa", "COPAEvalHarness", "copa", LIKELIHOODS[:2], ("copa",), 1),
    Plan("sciq", "sciq", "SCIQ", "sciq", LIKELIHOODS, (), 2),
    Plan("gsm8k", "gsm8k", "GSM8K", "gsm8k", ("AccuracyCompletion",), ("main",), 3, _gsm8k),
    Plan("gsm8k_harness", "gsm8k", "GSM8KEvalHarness", "gsm8k", ("AccuracyCompletion",), ("main",), 2, _gsm8k),
    Plan("squad2", "squad", "SQUAD2", "squad_v2", ("AccuracyCompletion", "F1"), (), 1, _squad),
    Plan("squad2_ma", "squad", "SQuAD2_MA", "squad_v2", ("AccuracyCompletion", "F1SquadNormalized"), (), 0, _squad),
    Plan("squad_olmes", "squad", "SQuAD_OLMES", "squad", ("F1SquadNormalized",), (), 2, _squad),
    Plan("math500", "math_reasoning", "MATH500", "math500", ("MathReasoningCompletion",), (), 0, _math),
    Plan("humaneval", "humaneval", "HumanEval", "humaneval", ("CodeCompletionAssertion",), (), 0, _humaneval),
    Plan("humaneval_bpb", "humaneval", "HumanEvalBPB", "humaneval", ("BitsPerByteLoglikelihood",), (), 0),
    Plan("mbpp", "mbpp", "MBPP", "mbpp", ("CodeCompletionAssertion",), ("full",), 2, _mbpp),
    Plan("math_level_5", "math_reasoning", "MATHLvl5", "hendrycks_math", REASONING, ALGEBRA, 2, _boxed, loads=True),
    Plan("math_minerva", "math_reasoning", "MATHMinerva", "hendrycks_math", MINERVA, ALGEBRA, 1, _solved),
    Plan("gpqa", "gpqa", "GPQA", "gpqa", LIKELIHOODS[:2], ("gpqa_extended",), 3, loads=True),
    Plan("gpqa_unsure", "gpqa", "GPQA_IDK", "gpqa", (*LIKELIHOODS[:2], *UNSURE), ("gpqa_extended",), 0, loads=True),
    Plan("squad2_loaded", "squad", "SQUAD2", "squad_v2", ("AccuracyCompletion", "F1"), (), 2, _squad, loads=True),
    Plan("winogrande_cloze", "winogrande", "WINOGRANDECloze", "winogrande", ("PartialEvalAccuracy",), XL, 2),
    Plan("natural_questions_mc", "naturalqs_open", "NaturalQsOpenMC", "nq_gen2mc", LIKELIHOODS, (), 2),
    Plan("natural_questions_bpb", "naturalqs_open", "NaturalQsOpenBPB", "nq_gen2mc", LIKELIHOODS[2:], (), 1),
    Plan("natural_questions", "naturalqs_open", "NaturalQsOpen", "nq_open", ("DropF1ExactMatch",), (), 2, _natural),
)

PAIRS = (
    ("the cat sat on the mat", ["the cat sat on the mat"]),
    ("The cat sat on the mat.", ["the cat sat on the mat"]),
    ("a cat sat", ["the cat sat on the mat", "a cat was sitting"]),
    ("blue", [" blue"]),
    (" blue", [" blue"]),
    ("Blue!", ["blue", "azure"]),
    ("", ["blue"]),
    ("blue", [""]),
    ("re-use the well-known  word", ["reuse the well known word"]),
    ("one two three four", ["four three two one"]),
    ("über Köln nach Süden", ["Über Köln, nach Süden"]),
)
