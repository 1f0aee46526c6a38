"""Declarative tasks: one YAML file describes a data set, a solver, scorers, metrics and actions.

The plugin imports this package's modules only when it reads the first declarative file.
"""
