"""The harness where it is installed, and rows for its published tasks: what ``.ci/large --only=lm-eval`` compares with.

``LMEVAL_TESTS_LM_EVAL`` is a Python that has the harness, ``LMEVAL_TESTS_LM_EVAL_EARLIER`` the task folder of version
0.4.3, ``LMEVAL_TESTS_LM_EVAL_ROWS`` a folder with rows in
its ``index.json``: by ``dataset_path|dataset_name``; by default the one beside the checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.needs import DATA

__all__ = ["EARLIER", "NEEDS_HARNESS", "PYTHON", "ROWS", "laid_out", "published_root"]

PYTHON = os.environ.get("LMEVAL_TESTS_LM_EVAL", "")
EARLIER = os.environ.get("LMEVAL_TESTS_LM_EVAL_EARLIER", "")
ROWS = Path(os.environ.get("LMEVAL_TESTS_LM_EVAL_ROWS", DATA / "lm_eval" / "rows"))
NEEDS_HARNESS = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="LMEVAL_TESTS_LM_EVAL names no Python with lm-eval"),
]
# Asked with the rows of a task of the same columns.
_ALIKE = {
    "cais_mmlu_abstract_algebra": ["cais/mmlu|anatomy", "cais/mmlu|virology", "cais/mmlu|marketing"],
    "nyu-mll_blimp_adjunct_island": ["nyu-mll/blimp|causative", "nyu-mll/blimp|passive_1"],
    "allenai_ai2_arc_ARC-Easy": ["allenai/ai2_arc|ARC-Challenge"],
    "facebook_xnli_en": ["facebook/xnli|es", "facebook/xnli|fr"],
}


def published_root() -> Path:
    """Return the folder of the harness's own task files."""
    printed = subprocess.run(
        [PYTHON, "-c", "import lm_eval; print(lm_eval.__path__[0])"], check=True, capture_output=True, text=True
    )
    return Path(printed.stdout.strip()) / "tasks"


def laid_out(folder: Path) -> set[str]:
    """Link the rows as the key ``data`` wants them; return the data sets, with their configuration."""
    index = json.loads((ROWS / "index.json").read_text("utf-8"))
    index |= {name: rows for rows, names in _ALIKE.items() for name in names}
    for data_set, rows in index.items():
        path, _, name = data_set.partition("|")
        base = folder / path.replace("/", "__")
        place = base / name.replace("/", "__") if name not in ("None", "False") else base
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(ROWS / rows)
    return {*index}
