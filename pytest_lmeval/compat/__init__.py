"""The names that task files of other frameworks import, a package for each framework."""
