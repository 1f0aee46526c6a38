"""The pipes of a sandbox: what a full one takes."""

from __future__ import annotations

import os
from contextlib import suppress

from pytest_lmeval.sandbox.pipes import Pipes


def test_a_full_pipe_takes_nothing_and_a_closed_one_takes_all() -> None:
    ends = [os.pipe() for _ in range(4)]
    (reader, request), *others = ends
    result, stdout, stderr = (read for read, _ in others)
    pipes = Pipes(request, result, stdout, stderr, 10)
    with suppress(BlockingIOError):
        while os.write(request, b"x" * 4096):
            pass
    assert 0 == pipes._write(b"xyz")
    os.close(reader)
    assert 3 == pipes._write(b"xyz")
    for fd in (request, *(fd for pair in others for fd in pair)):
        os.close(fd)
