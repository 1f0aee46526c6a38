"""Declarative tasks: one YAML file describes a data set, a solver, scorers, metrics and actions.

Nothing here is imported before the first such file is read.
"""
