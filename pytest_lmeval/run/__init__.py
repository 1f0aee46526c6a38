"""One run: plan, ask, score, aggregate. pytest, the library and ``lmeval test`` all go through it."""
