"""Evals as test functions: an application queries the model, and a plain function scores the outcome.

A function with the decorator :func:`~pytest_lmeval.functions.declare.eval_task` is a task, and each row of its data is
an example. The pytest plugin runs the functions, but this package does not depend on pytest.
"""
