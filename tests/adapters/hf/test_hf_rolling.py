"""Whole texts, read in windows, and requests that draw in their own way."""

from __future__ import annotations

import math
from typing import Any

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.adapters.hf.scoring import windows
from pytest_lmeval.types import Generate, LogLikelihood
from tests.tables import each_row

LONG = " ".join(f"the cat {number} sat on the mat and ate a fish" for number in range(40))


@each_row(
    ("length", "size", "expected"),
    [
        (3, None, [([0, 1, 2, 3], 3)]),
        (3, 4, [([0, 1, 2, 3], 3)]),
        (4, 4, [([0, 1, 2, 3, 4], 4)]),
        (6, 4, [([0, 1, 2, 3, 4], 4), ([2, 3, 4, 5, 6], 2)]),
        (9, 4, [([0, 1, 2, 3, 4], 4), ([4, 5, 6, 7, 8], 4), ([5, 6, 7, 8, 9], 1)]),
        (1, 4, [([0, 1], 1)]),
    ],
)
def test_windows_of_the_model_s_length_predict_each_token_once(length: int, size: int | None, expected: Any) -> None:
    assert expected == [*windows([0], [*range(1, length + 1)], size)]


def test_a_text_over_the_model_s_length_is_the_sum_of_its_windows(gpt2: HfAdapter, libraries: Any) -> None:
    loaded = gpt2._open()
    start, tokens = gpt2._prompts.start, gpt2._prompts.plain(LONG)
    assert loaded.window is not None
    assert len(tokens) > 2 * loaded.window
    expected = 0.0
    for read, count in windows(start, tokens, loaded.window):
        with libraries.inference_mode():
            logits = loaded.model(libraries.tensor([read[:-1]])).logits[0].float().log_softmax(-1)
        places = range(len(read) - 1 - count, len(read) - 1)
        expected += math.fsum(float(logits[place, read[place + 1]]) for place in places)
    requests = [LogLikelihood("", LONG, rolling=True), LogLikelihood("", "a b", rolling=True)]
    assert [[0], [1]] == gpt2.plan_window(requests)
    whole, short = gpt2.loglikelihood(requests)
    assert math.isclose(expected, whole.total, rel_tol=1e-5)  # type: ignore[union-attr]  # no error
    assert len(tokens) == len(whole.tokens)  # type: ignore[union-attr]  # no error
    assert short.total < 0  # type: ignore[union-attr]  # no error


def test_requests_draw_in_their_own_way_beside_others(llama: HfAdapter) -> None:
    plain = [Generate(f"say {number}", max_tokens=6) for number in range(3)]
    drawn = [Generate(f"say {number}", max_tokens=6, options={"temperature": 5.0}) for number in range(3)]
    alone = llama.generate_requests(plain)
    mixed = llama.generate_requests([each for pair in zip(plain, drawn, strict=True) for each in pair])
    texts = [each.text for each in mixed]  # type: ignore[union-attr]  # no error
    assert [each.text for each in alone] == texts[::2]  # type: ignore[union-attr]  # no error
    assert texts[1::2] != texts[::2]
    assert texts[1::2] == [each.text for each in llama.generate_requests(drawn)]  # type: ignore[union-attr]  # no error


def test_a_temperature_that_cannot_be_is_an_error_of_its_request(llama: HfAdapter) -> None:
    good, bad = llama.generate_requests([Generate("a", max_tokens=1), Generate("a", options={"temperature": -1})])
    assert hasattr(good, "text")
    assert "an option of the request" in str(bad)
