"""Evals as test functions: an application queries the model, and a plain function scores the outcome.

A function with :func:`~pytest_lmeval.functions.declare.eval_task` is a task; each row of its data is an example. The
pytest plugin runs it; this package does not depend on pytest.
"""
