"""Convert prompts with images into model inputs, with the model's processor."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from pytest_lmeval.adapters.hf.prompts import Seen
from pytest_lmeval.adapters.hf.rows import Prompted
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.media import read


def inputs_of(processor: Any, prompts: Sequence[Seen]) -> Any:
    """Return the input tensors of the prompts, padded on the left; raise AdapterError for unusable images."""
    from PIL import Image, UnidentifiedImageError

    images: list[list[Any]] = []
    for prompt in prompts:
        images.append([])
        for media in prompt.images:
            try:
                # Like the processors, take the first frame of an animation.
                images[-1].append(Image.open(BytesIO(read(media))).convert("RGB"))
            except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
                raise AdapterError(f"{media}: cannot be decoded: {error}") from error
    texts = [prompt.text for prompt in prompts]
    try:
        # The chat template has written the special tokens.
        return processor(
            text=texts,
            images=images,
            add_special_tokens=False,
            padding=True,
            padding_side="left",
            return_tensors="pt",
        )
    except Exception as error:
        raise AdapterError(f"the model's processor refuses the prompt: {error}") from error


def tokens_of(processor: Any, prompt: Seen) -> list[int]:
    """Return the tokens of a prompt, including placeholders for its images; raise the errors of :func:`inputs_of`."""
    tokens: list[int] = inputs_of(processor, [prompt])["input_ids"][0].tolist()
    return tokens


def batch_of(processor: Any, prompts: Sequence[Prompted], device: str) -> dict[str, Any]:
    """Return the model's arguments for the prompts, on ``device``; raise the errors of :func:`inputs_of`."""
    return dict(inputs_of(processor, [prompt.seen for prompt in prompts if prompt.seen is not None]).to(device))
