"""Evals as test functions: an application asks the model, and a plain function scores the outcome.

A function marked by :func:`~pytest_lmeval.functions.declare.eval_task` is a task; each row of its data is an example.
pytest's plugin runs it; nothing in this package knows pytest.
"""
