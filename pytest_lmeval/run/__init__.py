"""One run: plan, ask, score, aggregate. pytest, the library and ``lmeval test`` use these modules."""
