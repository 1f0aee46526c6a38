"""Declarative tasks: a data set, a solver, scorers, metrics and actions, as one YAML file says them.

Nothing here is imported before the first such file is read.
"""
