"""Declarative tasks: one YAML file describes a data set, a solver, scorers, metrics and actions.

No module of this package is imported before the first such file is read.
"""
