"""Convert published data sets to task files, and their recorded outputs to recordings for the replay adapter.

To add a kind, write a function ``(source, destination) -> list of files``, and add it to ``KINDS``. Each function
raises UsageError for a source in any other format, and for a file in ``destination`` that it would replace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_lmeval.interop.convert.bfcl import convert_bfcl
from pytest_lmeval.interop.convert.choices import convert_arc, convert_hellaswag, convert_mmlu, convert_truthfulqa
from pytest_lmeval.interop.convert.gsm8k import convert_gsm8k
from pytest_lmeval.interop.convert.ifeval import convert_ifeval
from pytest_lmeval.interop.convert.programs import convert_humaneval, convert_mbpp

Converter = Callable[[Path, Path], list[Path]]

KINDS: Mapping[str, Converter] = {
    "arc": convert_arc,
    "bfcl": convert_bfcl,
    "gsm8k": convert_gsm8k,
    "hellaswag": convert_hellaswag,
    "humaneval": convert_humaneval,
    "ifeval": convert_ifeval,
    "mbpp": convert_mbpp,
    "mmlu": convert_mmlu,
    "truthfulqa": convert_truthfulqa,
}
