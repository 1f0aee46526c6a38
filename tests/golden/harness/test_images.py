"""Tasks with images, against the harness's own model of images, which ``.ci/large --only=lm-eval`` installs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks
from pytest_lmeval.adapters.hf.prompts import _turn
from pytest_lmeval.media import read
from pytest_lmeval.types import Generate
from tests import needs
from tests.golden.harness.installed import NEEDS_HARNESS, PYTHON, published_root
from tests.golden.harness.test_harness_records import HERE
from tests.pictures import BLUE, CAT, DOG

pytestmark = NEEDS_HARNESS


def _image(data: bytes | None) -> Any:
    return None if data is None else {"bytes": data, "path": None}


def _mmmu(number: int, question: str, kind: str, options: str, answer: str, *images: bytes) -> dict[str, Any]:
    fields = {"id": f"validation_{number}", "question": question, "question_type": kind, "options": options}
    shown = {f"image_{place + 1}": _image(dict(enumerate(images)).get(place)) for place in range(7)}
    return {**fields, "answer": answer, **shown}


MMMU = [
    _mmmu(1, "Which animal is in <image 1>?", "multiple-choice", "['a cat', 'a dog']", "A", CAT),
    _mmmu(2, "<image 2> or <image 1>? Not <image 2>.", "multiple-choice", "['x <image 3>', 'y']", "B", CAT, DOG, BLUE),
    _mmmu(3, "How many cats are in <image 1>?", "open", "[]", "1", CAT),
]
CHARTS = [
    {"query": "How many bars?", "label": ["3"], "human_or_machine": 0, "image": _image(CAT)},
    {"query": "Which colour?", "label": ["blue"], "human_or_machine": 1, "image": _image(BLUE)},
]
ASKED = {"mmmu_val_accounting": ("MMMU__MMMU/Accounting/validation", MMMU)}
ASKED |= dict.fromkeys(
    ("chartqa", "chartqa_llama", "chartqa_llama_90"), ("HuggingFaceM4__ChartQA/default/test", CHARTS)
)


def laid_out(data: Path) -> None:
    pyarrow = needs.module("pyarrow")
    parquet = needs.module("pyarrow.parquet")
    for name, rows in ASKED.values():
        file = data / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        features = {key: {"_type": "Image"} for key in rows[0] if key.startswith("image")}
        table = pyarrow.Table.from_pylist(rows)
        for key in features:
            place = table.schema.get_field_index(key)
            kind = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
            table = table.set_column(place, key, table[key].cast(kind))
        described = {"info": {"features": {**_described(rows[0]), **features}}}
        parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(described)}), file)


def _described(row: dict[str, Any]) -> dict[str, Any]:
    def of(value: Any) -> Any:
        if isinstance(value, list):
            return {"_type": "List", "feature": {"_type": "Value", "dtype": "string"}}
        return {"_type": "Value", "dtype": "string" if isinstance(value, str) else "int64"}

    return {key: of(value) for key, value in row.items() if not key.startswith("image")}


@pytest.mark.parametrize("name", ASKED)
def test_documents_with_images_are_asked_as_in_the_harness(name: str, tmp_path: Path) -> None:
    pictures = needs.module("PIL.Image", "torch")
    data, out = tmp_path / "data", tmp_path / "out.json"
    laid_out(data)
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    subprocess.run([PYTHON, HERE / "record_images.py", out, data, name], check=True, timeout=600, env=variables)
    (said,) = json.loads(out.read_text("utf-8")).values()

    named = {"harness": {"from": str(published_root()), "tasks": [name], "data": str(data), "chat": "multiturn"}}
    (tmp_path / "t.yaml").write_text(json.dumps(named), "utf-8")
    (task,) = load_tasks(tmp_path / "t.yaml")
    assert len(said) == len(task.examples) > 1
    for example, (number, history, options, pixels) in zip(task.examples, said, strict=True):
        (request,) = task.requests(example, example.messages)
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        assert history == [_turn(message, as_parts=True) for message in request.prompt]
        images = [media for message in request.prompt for media in message.media]
        shown = [pictures.open(BytesIO(read(media))).convert("RGB").tobytes() for media in images]
        assert pixels == [hashlib.sha256(each).hexdigest() for each in shown]
        assert (str(number), options["until"]) == (example.id, [*request.stop])
        assert options["max_gen_toks"] == request.max_tokens
