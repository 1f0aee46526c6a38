"""Packages with the names that task files of other frameworks import, one package for each framework."""
