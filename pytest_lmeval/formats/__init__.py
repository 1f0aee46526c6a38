"""Load task files; each format has a module that returns the ``Task`` objects of a file."""
