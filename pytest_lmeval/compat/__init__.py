"""The names that task files of other frameworks import, with a package for each framework."""
