"""Record how lm-evaluation-harness asks a model about images: ``record_images.py OUT DATA NAMES``.

``DATA`` has a parquet file for each data set. The record has the content of each document's conversation by the model
``hf-multimodal`` of the harness, and the hashes of the pixels of its images.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets


def record(data: Path, names: list[str]) -> dict[str, Any]:
    def load(path: str, name: str | None = None, **_: Any) -> Any:
        folder = data / path.replace("/", "__") / str(name or "default").replace("/", "__")
        files = {file.stem: str(file) for file in sorted(folder.glob("*.parquet"))}
        return datasets.DatasetDict({split: datasets.Dataset.from_parquet(file) for split, file in files.items()})

    datasets.load_dataset = load
    from lm_eval.models.hf_vlms import HFMultimodalLM
    from lm_eval.tasks import TaskManager

    # The processor writes nothing: the conversation itself is compared.
    plain = SimpleNamespace(apply_chat_template=lambda chat, **_: json.dumps(chat))
    model = SimpleNamespace(interleave=True, max_images=999, processor=plain)

    def chat_template(history: Any, **given: Any) -> Any:
        return HFMultimodalLM.apply_chat_template(model, [dict(each) for each in history], **given)

    found: dict[str, Any] = {}
    for name in names:
        task = TaskManager().load_task_or_group(name)[name]
        task.set_config(key="num_fewshot", value=0)
        task.build_all_requests(apply_chat_template=True, chat_template=chat_template, tokenizer_name="none")
        found[name] = []
        for instance in task.instances:
            context, options, visual = instance.args
            pixels = [hashlib.sha256(image.convert("RGB").tobytes()).hexdigest() for image in visual["visual"]]
            found[name].append([instance.doc_id, json.loads(context), dict(options), pixels])
    return found


if __name__ == "__main__":
    out, folder, *wanted = sys.argv[1:]
    Path(out).write_text(json.dumps(record(Path(folder), wanted)), "utf-8")
