"""Substitutes for packages that need not be installed: the few names that most functions of task files import."""
