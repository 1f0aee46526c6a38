"""Images in prompts: a model that sees them answers as the library lets it answer, alone and in a batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.media import Image
from pytest_lmeval.types import Generate, LogLikelihood, Message
from tests.pictures import BLUE, CAT, DOG, png

from .asking import completion, one, texts
from .tiny_model import SKY

PICTURES = [CAT, DOG, png(90, 90), BLUE, png(250, 250, 250, size=5)]


@pytest.fixture(scope="module")
def llava(seeing_llava: Path) -> Iterator[HfAdapter]:
    adapter = HfAdapter(str(seeing_llava), device="cpu")
    yield adapter
    adapter.close()


def about(*pictures: bytes, question: str = "What?") -> tuple[Message, ...]:
    return (Message.of_parts("user", [*map(Image, pictures), question]),)


def by_the_library(folder: Path, prompt: tuple[Message, ...], most: int) -> str:
    """Return the library's own greedy answer to one prompt."""
    import torch
    import transformers
    from PIL import Image as Pictures

    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    ends = model.generation_config.eos_token_id
    turns: list[Any] = []
    for message in prompt:
        parts = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image", "image": Pictures.open(BytesIO(Path(part.path).read_bytes()))}
            for part in message.parts or (message.content,)
        ]
        turns.append({"role": message.role, "content": parts})
    inputs = processor.apply_chat_template(
        turns, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    model.generation_config = transformers.GenerationConfig(eos_token_id=ends, pad_token_id=2)
    with torch.inference_mode():
        written = model.generate(**inputs, max_new_tokens=most, do_sample=False)
    text: str = processor.decode(written[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return text


def test_it_answers_by_what_it_sees(llava: HfAdapter) -> None:
    assert ["cat", "dog"] == texts(llava.generate_requests([Generate(about(CAT)), Generate(about(DOG))]))
    assert llava.media == {"image"}


def test_alone_and_in_a_batch_it_writes_what_the_library_writes(llava: HfAdapter, seeing_llava: Path) -> None:
    prompts = [
        *[about(picture) for picture in PICTURES],
        about(CAT, question="What is the capital of France? Bees make honey."),
        about(CAT, DOG, question="Which?"),
        (Message("system", "Shout."), *about(DOG)),
        (Message("user", "What?"),),
    ]
    asked = [Generate(prompt, max_tokens=12) for prompt in prompts]
    expected = [by_the_library(seeing_llava, prompt, 12) for prompt in prompts]
    assert expected == texts(llava.generate_requests(asked))
    assert expected == [one(llava, prompt, max_tokens=12).text for prompt in prompts]
    assert {"cat", "dog", SKY[:20]} <= {answer[:20] for answer in expected}


def test_its_tokens_are_those_of_the_processor(llava: HfAdapter) -> None:
    # Four patches of 8 x 8 pixels.
    with_image, without = one(llava, about(CAT)), one(llava, (Message("user", "What?"),))
    assert (with_image.prompt_tokens or 0) - (without.prompt_tokens or 0) == 4


def test_draws_depend_on_the_image(llava: HfAdapter) -> None:
    drawn = [
        completion(llava.generate_requests([Generate(about(picture), options={"temperature": 5.0}, max_tokens=12)])[0])
        for picture in (*PICTURES, PICTURES[0])
    ]
    assert drawn[0] == drawn[-1]
    assert len({answer.text for answer in drawn}) == len(PICTURES)


def test_an_image_that_no_library_reads_is_an_error_of_its_request(llava: HfAdapter) -> None:
    broken = CAT[:40] + bytes(byte ^ 0xFF for byte in CAT[40:60]) + CAT[60:]
    bad, good = llava.generate_requests([Generate(about(broken)), Generate(about(DOG))])
    assert isinstance(bad, AdapterError)
    assert "cannot be decoded" in str(bad)
    assert completion(good).text == "dog"


def test_a_text_after_an_image_is_not_scored(llava: HfAdapter) -> None:
    (answer,) = llava.loglikelihood([LogLikelihood("", "cat", messages=about(CAT))])
    assert "an image cannot precede a text to score" in str(answer)


def test_a_seeing_model_without_its_processor_accepts_text_alone(seeing_llava: Path, tmp_path: Path) -> None:
    shutil.copytree(seeing_llava, tmp_path / "llava")
    for file in [*tmp_path.glob("llava/*processor*.json")]:
        file.unlink()
    adapter = HfAdapter(str(tmp_path / "llava"), device="cpu")
    assert adapter.media == frozenset()
    assert one(adapter, (Message("user", "What?"),)).text
    adapter.close()


def test_a_model_of_text_accepts_no_images(llama: HfAdapter) -> None:
    assert llama.media == frozenset()


def test_a_task_with_images_runs_with_a_seeing_model(seeing_llava: Path, pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("cat.png").write_bytes(CAT)
    pytester.path.joinpath("dog.png").write_bytes(DOG)
    rows = [
        {"id": name, "prompt": [{"image": f"{name}.png"}, "What?"], "targets": [name], "metric": "exact_match"}
        for name in ("cat", "dog")
    ]
    pytester.path.joinpath("pets.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    result = pytester.runpytest("pets.jsonl", f"--lm-adapter=hf:{seeing_llava}", "--lm-adapter-arg=device=cpu")
    result.assert_outcomes(passed=2)
