"""The bare loop: asks, and compares."""

import asyncio

from model import EXAMPLES, answers, check

check(asyncio.run(answers()) == ["yes"] * EXAMPLES)
