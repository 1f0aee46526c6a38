"""Evals as test functions: an application asks the model as it likes, and a plain function scores what comes of it.

A function that :func:`~pytest_lmeval.functions.declare.eval_task` marks is a task; each row of its data is an example.
What runs it, pytest's plugin, is a room above: nothing in here knows of pytest.
"""
