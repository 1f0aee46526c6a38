"""Run tasks for pytest, the library and ``lmeval test``: plan, query the model, score and aggregate."""
